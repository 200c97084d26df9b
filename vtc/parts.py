"""parts.py HOST PORT N: a connection sends a part of a request.  Then N - 1 others
do.  Then the last one and the first one send the rest: prints the status of both
answers, or "closed" for a connection that the server has closed.  Before each
step it prints a word and waits for a line."""

import socket
import sys

PART = b"GET / HTTP/1.1\r\nHost: a.example\r\nX-Part: "
REST = b"1\r\n\r\n"


def answer(s: socket.socket) -> str:
    try:
        s.sendall(REST)
        got = s.recv(1000)
    except ConnectionError:
        got = b""
    return got.split()[1].decode() if got else "closed"


def step(word: str) -> None:
    print(word, flush=True)
    sys.stdin.readline()


def main() -> None:
    where = sys.argv[1], int(sys.argv[2])
    connections = []
    for n in range(int(sys.argv[3])):
        s = socket.create_connection(where)
        s.settimeout(30)
        s.sendall(PART)
        connections.append(s)
        if n == 0:
            step("first")
    step("sent")
    step(f"{answer(connections[-1])} {answer(connections[0])}")


main()
