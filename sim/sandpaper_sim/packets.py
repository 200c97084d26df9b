# SPDX-License-Identifier: BSD-2-Clause
"""A network of packets: sim/packets in C, typed.

Times and costs are integers, ns. Queues, flows and paths are numbers. A flow
with several paths is a multipath flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from _sandpaper_glue import ffi, lib

MS, SECOND = 1_000_000, 1_000_000_000
KINDS = {"droptail": lib.PKT_DROPTAIL, "red": lib.PKT_RED,
         "red-4": lib.PKT_RED4, "fq": lib.PKT_FQ, "mq": lib.PKT_MQ}
MIN_RTO = 200 * MS              # as Linux has it; RFC 6298 says 1 s
WINDOW = 4096                   # packets, the largest window
LARGEST = 1 << 20               # packets, of a buffer and of a window


def senders() -> dict[str, str]:
    """What each is, by name: the table of senders.c."""
    return {ffi.string(lib.pkt_sender_name(n)).decode():
            ffi.string(lib.pkt_sender_summary(n)).decode()
            for n in range(lib.pkt_senders())}


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} {value} is not allowed: use {least} to "
                         f"{most}")


def _known(name: str, value: str, known: Sequence[str]) -> int:
    if value not in known:
        raise ValueError(f"{name} '{value}' is not known: use one of "
                         f"{', '.join(known)}")
    return list(known).index(value)


@dataclass(frozen=True)
class Queue:
    """Of one CPU. capacity: packets; `fq` and `mq`: of each path's ring.

    low, high: RED's thresholds, parts of the capacity. batch: packets of a
    turn, quantum: ns of a turn, 0 for no limit; both of `fq` and `mq`. weight:
    of the newest length in RED's average; 1 is the length itself. exponent:
    of the cost in `red-4` and `mq`. ecn: packets are marked where RED would
    drop them; a full ring drops. by_work: RED's length is what the packets
    cost, in packets of the cheapest path."""

    kind: str
    capacity: int
    low: float = 0.25
    high: float = 0.75
    p_max: float = 0.1
    exponent: float = 2.0
    weight: float = 1.0
    batch: int = 1
    quantum: int = 0
    ecn: bool = False
    by_work: bool = False

    def __post_init__(self) -> None:
        _known("queue", self.kind, list(KINDS))
        _within("capacity", self.capacity, 1, LARGEST)
        _within("low", self.low, 0, 1)
        if not self.low < self.high <= 1:
            raise ValueError(f"high {self.high} is not allowed: use above low, "
                             f"{self.low}, to 1")
        _within("p_max", self.p_max, 0, 1)
        _within("exponent", self.exponent, 0, 8)
        if not 0 < self.weight <= 1:
            raise ValueError(f"weight {self.weight} is not allowed: use above "
                             "0, to 1")
        _within("batch", self.batch, 1, LARGEST)
        _within("quantum", self.quantum, 0, SECOND)

    def c(self) -> object:
        """As the library has it."""
        return ffi.new("struct pkt_queue *", {
            "kind": KINDS[self.kind], "capacity": self.capacity,
            "batch": self.batch, "ecn": self.ecn, "by_work": self.by_work,
            "quantum": self.quantum,
            "low": self.low * self.capacity, "high": self.high * self.capacity,
            "p_max": self.p_max, "exponent": self.exponent,
            "weight": self.weight})

    def probability(self, length: float, factor: float = 1.0) -> float:
        """RED's, at an average length in packets, times a factor."""
        return lib.pkt_red(self.c(), length, factor)


@dataclass(frozen=True)
class Stat:
    """Of a path, from the start. Times are ns, all others packets.

    A packet is sent, and then delivered or dropped, or it is inside. lost: the
    sender thinks so. spurious: it thought so, and the packet was delivered."""

    sent: int
    delivered: int
    dropped: int
    marked: int
    lost: int
    spurious: int
    reductions: int
    timeouts: int
    inside: int
    rtt: int
    window: float
    window_ns: float            # the window's sum over time, packets ns
    rtt_sum: float
    rtt_samples: int


class Network:
    """Queues, flows and their paths; run() simulates them."""

    def __init__(self, seed: int) -> None:
        net = lib.pkt_new(seed % 2**64)
        if net == ffi.NULL:
            raise MemoryError
        self._net = ffi.gc(net, lib.pkt_free)
        self.now = 0
        self._running = False
        self._queues: list[Queue] = []
        self._flows = 0
        self._hops: list[int] = []

    def queue(self, what: Queue) -> int:
        """A new one."""
        self._not_running()
        self._queues.append(what)
        return _number(lib.pkt_add_queue(self._net, what.c()))

    def flow(self, sender: str = "reno") -> int:
        """A new one, without paths."""
        self._not_running()
        n = _known("sender", sender, list(senders()))
        self._flows += 1
        return _number(lib.pkt_add_flow(self._net, n))

    def path(self, flow: int, hops: Sequence[tuple[int, int]], delay: int, *,
             start: int = 0, jitter: int = 0, min_rto: int = MIN_RTO,
             rate: float = 1.0, loss: float = 0.0, mark: float = 0.0,
             window: int = WINDOW) -> int:
        """A new one of a flow, over queues: (queue, cost of a packet in ns).

        delay: ns, round trip without queues. jitter: ns, up to this is added.
        rate: packets/s of `constant`. loss, mark: of each packet."""
        self._not_running()
        _within("flow", flow, 0, self._flows - 1)
        if not hops:
            raise ValueError("0 hops are not allowed: use 1 or more")
        for queue, cost in hops:
            _within("queue", queue, 0, len(self._queues) - 1)
            _within("cost", cost, 1, 100 * SECOND)
        _within("delay", delay, 1, 100 * SECOND)
        _within("start", start, 0, 10**6 * SECOND)
        _within("jitter", jitter, 0, SECOND)
        _within("min_rto", min_rto, 1, 100 * SECOND)
        _within("rate", rate, 1e-3, 1e9)
        _within("loss", loss, 0, 1)
        _within("mark", mark, 0, 1)
        _within("window", window, 1, LARGEST)
        what = ffi.new("struct pkt_path *", {
            "start": start, "delay": delay, "jitter": jitter,
            "min_rto": min_rto, "rate": rate, "loss": loss, "mark": mark,
            "window": window, "hops": len(hops)})
        self._hops.append(len(hops))
        return _number(lib.pkt_add_path(
            self._net, flow, what, [q for q, _ in hops], [c for _, c in hops]))

    def _not_running(self) -> None:
        if self._running:
            raise ValueError("the network has run: add everything before")

    def run(self, until: int) -> None:
        """Up to a time, ns, also what happens at it."""
        if until < self.now:
            raise ValueError(f"until {until} is not allowed: use {self.now} "
                             "or later")
        self._running = True
        if lib.pkt_run(self._net, until) < 0:
            raise MemoryError
        self.now = until

    def stat(self, path: int) -> Stat:
        """Of a path."""
        self._path(path)
        st = ffi.new("struct pkt_stat *")
        lib.pkt_stat(self._net, path, st)
        return Stat(**{name: getattr(st, name)
                       for name in Stat.__dataclass_fields__})

    def served(self, path: int, hop: int = 0) -> int:
        """CPU time that a path has used at a hop, ns."""
        self._path(path)
        _within("hop", hop, 0, self._hops[path] - 1)
        return lib.pkt_served(self._net, path, hop)

    def busy(self, queue: int) -> int:
        """CPU time of a queue, ns. A packet in service counts as served."""
        _within("queue", queue, 0, len(self._queues) - 1)
        return lib.pkt_busy(self._net, queue)

    def waiting(self, queue: int) -> int:
        """Packets that wait, without that in service."""
        _within("queue", queue, 0, len(self._queues) - 1)
        return lib.pkt_waiting(self._net, queue)

    def order(self, queue: int, most: int = 1000) -> list[int]:
        """The paths of the packets that were served last, the oldest first."""
        _within("queue", queue, 0, len(self._queues) - 1)
        _within("most", most, 1, LARGEST)
        paths = ffi.new("int32_t[]", most)
        n = lib.pkt_order(self._net, queue, paths, most)
        return list(paths[0:n])

    @property
    def events(self) -> int:
        """That have happened."""
        return lib.pkt_events(self._net)

    def _path(self, path: int) -> None:
        _within("path", path, 0, len(self._hops) - 1)


def _number(n: int) -> int:
    if n < 0:
        raise MemoryError
    return n
