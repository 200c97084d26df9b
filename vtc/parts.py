"""parts.py HOST PORT N: N connections send a part of a request each.  Then the
last one and the first one send the rest: prints the status of both answers, or
"closed" for a connection that the server has closed.  Each waits on a line of
standard input first."""

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


def main() -> None:
    where = sys.argv[1], int(sys.argv[2])
    connections = []
    for _ in range(int(sys.argv[3])):
        s = socket.create_connection(where)
        s.settimeout(30)
        s.sendall(PART)
        connections.append(s)
    print("sent", flush=True)
    sys.stdin.readline()
    print(answer(connections[-1]), answer(connections[0]), flush=True)
    sys.stdin.readline()


main()
