# SPDX-License-Identifier: BSD-2-Clause
"""Packets, queues and senders against theory, and what must always hold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import numpy as np
import pytest

from sandpaper_sim.packets import (
    MS,
    SECOND,
    WINDOW,
    Network,
    Queue,
    Stat,
    senders,
)
from sandpaper_sim.theory import RENO_RANDOM, reno_fill, reno_window

SEED = 1
COST = 120_000                  # ns
RTT = 20 * MS
BDP = RTT // COST               # packets
KINDS = ("droptail", "red", "red-4", "fq", "mq")
RED = ("red", "red-4", "mq")
# Sent, delivered, dropped: see test_the_result_is_that_of_each_machine
EXACT = [(236059, 235683, 310), (126406, 126190, 160)]


def network(what: Queue, *flows: tuple[str, int, int], until: int = 30,
            seed: int = SEED, jitter: int = MS) -> Network:
    """Flows (sender, cost, round trip) on one queue. until: s."""
    net = Network(seed)
    q = net.queue(what)
    for n, (sender, cost, rtt) in enumerate(flows):
        net.path(net.flow(sender), [(q, cost)], rtt, start=n * 100 * MS,
                 jitter=jitter, rate=1e9 / cost)
    net.run(until * SECOND)
    return net


def stats(net: Network, paths: int) -> list[Stat]:
    return [net.stat(p) for p in range(paths)]


# Theory

def test_the_constant_of_random_losses() -> None:
    """Ott, Kemperman and Mathis: w^2 grows by 2 a packet, then w is halved."""
    rng = np.random.default_rng(SEED)
    p, w, packets, trips = 1e-6, 1000.0, 0.0, 0.0
    for x in rng.exponential(1 / p, 40_000):
        high = (w * w + 2 * x) ** 0.5
        packets, trips, w = packets + x, trips + high - w, high / 2
    assert packets / trips * p**0.5 == pytest.approx(RENO_RANDOM, rel=0.01)


@pytest.mark.parametrize("p", [1e-3, 3e-3, 1e-2])
def test_reno_with_random_losses(p: float) -> None:
    """Within 3 % for the randomness of 2700 losses or more, and within
    sqrt(p) for the round trip after a loss, in which the window is constant:
    of the 0.76/sqrt(p) round trips between losses, that one has 0.58 of the
    mean window."""
    net = Network(SEED)
    q = net.queue(Queue("droptail", 10_000))
    path = net.path(net.flow(), [(q, 1000)], RTT, loss=p)
    net.run(1500 * SECOND)
    st = net.stat(path)
    window = st.delivered * RTT / net.now
    assert window == pytest.approx(reno_window(p), rel=0.03 + p**0.5)
    assert st.lost == pytest.approx(p * st.sent, rel=0.1)


@pytest.mark.parametrize("buffer", [0.25, 0.5, 1.0])
def test_one_reno_flow_fills_a_link(buffer: float) -> None:
    net = network(Queue("droptail", round(buffer * BDP)),
                  ("reno", COST, RTT), until=300, jitter=0)
    assert net.busy(0) / net.now == pytest.approx(reno_fill(buffer), abs=0.02)


def test_droptail_by_round_trip() -> None:
    """Flows that lose together have rates by 1/RTT^2, flows with equal loss
    rates by 1/RTT. So 40 flows of two round trips are between these."""
    what = Queue("droptail", BDP)
    flows = [("reno", COST // 10, rtt) for rtt in (RTT, 3 * RTT)] * 20
    net = network(what, *flows, until=120)
    found = stats(net, 40)
    trips = [np.mean([s.rtt_sum / s.rtt_samples for s in found[i::2]])
             for i in (0, 1)]
    rates = [sum(s.delivered for s in found[i::2]) for i in (0, 1)]
    times = trips[1] / trips[0]
    assert times > 2
    assert 0.9 * times < rates[0] / rates[1] < 1.1 * times**2


def test_droptail_by_cost() -> None:
    """Equal losses give equal windows: 1/(1 + r) of the CPU."""
    net = network(Queue("droptail", BDP), ("reno", COST, RTT),
                  ("reno", 4 * COST, RTT), until=400)
    assert net.served(0) / net.busy(0) == pytest.approx(1 / 5, abs=0.05)


def test_fair_queueing_by_cost() -> None:
    net = network(Queue("fq", BDP), ("reno", COST, RTT),
                  ("reno", 4 * COST, RTT), until=60)
    assert net.served(0) / net.busy(0) == pytest.approx(1 / 5, abs=0.01)


def test_lia_leaves_the_worse_path() -> None:
    """RFC 6356: at most what one flow gets on its best path, and more on the
    path with fewer losses."""
    net = Network(SEED)
    q = net.queue(Queue("droptail", 10_000))
    flow = net.flow("lia")
    good, bad = (net.path(flow, [(q, 1000)], RTT, loss=p)
                 for p in (1e-3, 1e-2))
    net.run(600 * SECOND)
    windows = [net.stat(p).delivered * RTT / net.now for p in (good, bad)]
    assert windows[0] > 4 * windows[1]
    assert sum(windows) == pytest.approx(reno_window(1e-3), rel=0.1)


def test_coupled_windows_leave_the_worse_path_more() -> None:
    """LIA's windows go with 1/p, so the worse path has a third. The sum is
    Reno's on the better path."""
    net = Network(SEED)
    q = net.queue(Queue("droptail", 10_000))
    flow = net.flow("coupled")
    good, bad = (net.path(flow, [(q, 1000)], RTT, loss=p)
                 for p in (1e-3, 2e-3))
    net.run(600 * SECOND)
    windows = [net.stat(p).delivered * RTT / net.now for p in (good, bad)]
    assert windows[1] < 0.25 * sum(windows)
    assert sum(windows) == pytest.approx(reno_window(1e-3), rel=0.1)


def test_dctcp_follows_the_part_that_is_marked() -> None:
    """Growth 1 and cut w p / 2 a round trip: about 2/p."""
    net = Network(SEED)
    q = net.queue(Queue("droptail", 10_000))
    path = net.path(net.flow("dctcp"), [(q, 1000)], RTT, mark=0.02)
    net.run(300 * SECOND)
    assert 0.8 < net.stat(path).delivered * RTT / net.now / (2 / 0.02) < 1.4


def test_cubic_has_more_than_reno_on_a_long_path() -> None:
    """RFC 9438, equation 5, with its C and beta."""
    net, p, rtt = Network(SEED), 1e-4, 200 * MS
    q = net.queue(Queue("droptail", 10_000))
    path = net.path(net.flow("cubic"), [(q, 1000)], rtt, loss=p)
    net.run(4000 * SECOND)
    found = net.stat(path).delivered * rtt / net.now
    assert found == pytest.approx(1.054 * (rtt / SECOND / p)**0.75, rel=0.2)


def test_bbr_keeps_its_rate_despite_losses() -> None:
    net = Network(SEED)
    q = net.queue(Queue("droptail", BDP))
    path = net.path(net.flow("bbr"), [(q, COST)], RTT, loss=0.03)
    net.run(60 * SECOND)
    assert net.busy(q) / net.now > 0.9
    assert net.stat(path).delivered * COST / net.now > 0.9


# What always holds

@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sender", senders())
def test_packets_are_conserved(kind: str, sender: str) -> None:
    net = network(Queue(kind, 40, batch=8), (sender, COST, RTT),
                  (sender, 3 * COST, RTT), until=20)
    for n, s in enumerate(stats(net, 2)):
        assert s.sent == s.delivered + s.dropped + s.inside
        assert s.sent > 100 and s.inside >= 0
        # What is called lost was dropped, or is spurious. The sender has not
        # yet found the losses of its last window.
        assert s.dropped - WINDOW <= s.lost <= s.dropped + s.spurious + BDP
        assert net.served(n) % (COST, 3 * COST)[n] == 0
    assert net.busy(0) == net.served(0) + net.served(1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_works_while_packets_wait(kind: str) -> None:
    """Two senders want more than all: the CPU is busy from the first packet
    on. The whole cost of the packet in service counts."""
    net = network(Queue(kind, 64, batch=16), ("constant", COST, RTT),
                  ("constant", COST, RTT), until=5)
    assert 5 * SECOND <= net.busy(0) < 5 * SECOND + COST


@pytest.mark.parametrize("kind", KINDS)
def test_one_seed_gives_one_result(kind: str) -> None:
    def found(seed: int) -> list[Stat]:
        return stats(network(Queue(kind, BDP, batch=16), ("reno", COST, RTT),
                             ("cubic", 2 * COST, RTT), seed=seed), 2)
    assert found(1) == found(1) != found(2)


def test_the_result_is_that_of_each_machine() -> None:
    """Numbers of one run: they change only if the model does."""
    net = network(Queue("mq", BDP, weight=0.012, batch=1024),
                  ("reno", COST, RTT), ("cubic", 2 * COST, RTT), until=60)
    assert [(s.sent, s.delivered, s.dropped) for s in stats(net, 2)] == EXACT


def test_steps_do_not_change_a_run() -> None:
    def found(step: int) -> list[Stat]:
        net = Network(SEED)
        q = net.queue(Queue("mq", BDP, batch=64))
        paths = [net.path(net.flow(), [(q, COST * r)], RTT) for r in (1, 3)]
        for at in range(step, 12 * SECOND + 1, step):
            net.run(at)
        return [net.stat(p) for p in paths]
    whole, parts = found(12 * SECOND), found(SECOND)
    for a, b in zip(whole, parts, strict=True):
        assert a == b


@pytest.mark.parametrize("kind", RED)
@pytest.mark.parametrize(("window", "drops"), [(800, False), (2000, True)])
def test_nothing_is_dropped_below_the_low_threshold(
        kind: str, window: int, drops: bool) -> None:
    """The low threshold is 900 packets."""
    net = Network(SEED)
    q = net.queue(Queue(kind, 1000, low=0.9, high=1.0))
    path = net.path(net.flow(), [(q, COST)], RTT, window=window)
    net.run(60 * SECOND)
    assert net.stat(path).window == 800 or drops
    assert (net.stat(path).dropped > 0) is drops


@pytest.mark.parametrize("kind", RED)
def test_ecn_marks_where_red_drops(kind: str) -> None:
    """The rings are never full: nothing is dropped, not even for slow start."""
    what = Queue(kind, 2000, low=0.02, high=0.06, ecn=True)
    net = network(what, ("reno", COST, RTT), ("reno", 2 * COST, RTT))
    for s in stats(net, 2):
        assert s.dropped == 0 and s.timeouts == 0
        assert s.marked > 0 and s.reductions > 0


def test_a_timeout_follows_when_all_is_lost() -> None:
    net = Network(SEED)
    q = net.queue(Queue("droptail", 10))
    path = net.path(net.flow(), [(q, COST)], RTT, loss=1.0, min_rto=200 * MS)
    net.run(8 * SECOND)
    # RFC 6298: 1 s, doubled each time, so at 1, 3 and 7 s
    assert net.stat(path).timeouts == 3
    assert net.stat(path).sent == 10 + 3
    assert net.stat(path).window == 1


def test_one_loss_in_a_small_window_needs_no_timeout() -> None:
    net = network(Queue("droptail", 3), ("reno", 5 * MS, RTT), until=60)
    assert net.stat(0).reductions > 20
    assert net.stat(0).timeouts == 0


def test_a_packet_that_was_called_lost_may_arrive() -> None:
    """The round trip is longer than the first timeout, 1 s."""
    net = Network(SEED)
    q = net.queue(Queue("droptail", 100))
    path = net.path(net.flow(), [(q, COST)], 1500 * MS)
    net.run(1600 * MS)
    st = net.stat(path)
    assert (st.timeouts, st.dropped, st.sent) == (1, 0, 10 + 1)
    assert (st.lost, st.spurious, st.delivered) == (10, 10, 10)


# Queues

@pytest.mark.parametrize("kind", ["droptail", "fq"])
def test_a_full_buffer_drops(kind: str) -> None:
    """Ten packets come at once: one is in service, the buffer keeps seven.
    With a ring for each of two paths, the buffer keeps seven of each."""
    net = Network(SEED)
    q = net.queue(Queue(kind, 7))
    for _ in range(2):
        net.path(net.flow(), [(q, COST)], RTT)
    net.run(1)
    rings = 2 if kind == "fq" else 1
    assert net.waiting(q) == 7 * rings
    assert sum(s.dropped for s in stats(net, 2)) == 20 - 1 - 7 * rings


@pytest.mark.parametrize(("length", "factor", "expected"), [
    (24.9, 1, 0), (25, 1, 0), (50, 1, 0.05), (74, 1, 0.098), (75, 1, 1),
    (200, 1, 1), (50, 4, 0.2), (50, 100, 1), (24.9, 100, 0)])
def test_red_by_its_formula(length: float, factor: float,
                            expected: float) -> None:
    found = Queue("red-4", 100).probability(length, factor)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("kind", "exponent", "factor"), [
    ("red", 2, 1), ("red-4", 2, 9), ("red-4", 1, 3), ("mq", 2, 9)])
def test_drops_by_cost(kind: str, exponent: float, factor: int) -> None:
    """Packets of two open loops come one by one, so they see the same queue.
    A packet that costs three times as much is dropped factor times as
    often."""
    net = Network(SEED)
    q = net.queue(Queue(kind, 400, low=0.0, high=1.0, p_max=0.2,
                        exponent=exponent, weight=0.001))
    paths = [net.path(net.flow("constant"), [(q, cost)], RTT,
                      rate=1e9 / COST / 3.8, jitter=0, start=n * COST // 3)
             for n, cost in enumerate((COST, 3 * COST))]
    net.run(200 * SECOND)
    parts = [net.stat(p).dropped / net.stat(p).sent for p in paths]
    assert parts[0] > 0.002
    assert parts[1] / parts[0] == pytest.approx(factor, rel=0.1)


@pytest.mark.parametrize("kind", ["fq", "mq"])
@pytest.mark.parametrize("batch", [1, 4, 64])
def test_batches_take_turns(kind: str, batch: int) -> None:
    """Two windows of 20 packets, of which 4 fit on the path, so both rings
    have packets. A turn is a batch, or what the ring has when it begins."""
    net = Network(SEED)
    q = net.queue(Queue(kind, 64, low=0.9, high=1.0, batch=batch))
    for n in range(2):
        net.path(net.flow(), [(q, 5 * MS)], RTT, window=20, start=n * MS)
    net.run(20 * SECOND)
    turns = [len(list(of)) for _, of in groupby(net.order(q, 900))][1:-1]
    assert len(turns) > 20
    if batch < 20:
        assert set(turns) == {batch}
    else:
        assert 10 < min(turns) and max(turns) <= 20


def test_a_quantum_ends_a_turn() -> None:
    """A turn ends after the packet in which 1 ms is over."""
    net = network(Queue("fq", 64, batch=64, quantum=MS),
                  ("constant", COST, RTT), ("constant", 300_000, RTT), until=5)
    runs = [(path, len(list(of))) for path, of in groupby(net.order(0, 900))]
    assert set(runs[1:-1]) == {(0, 9), (1, 4)}


def test_droptail_serves_in_order_of_arrival() -> None:
    """At one time, in the order in which the paths were added."""
    net = Network(SEED)
    q = net.queue(Queue("droptail", 64))
    for _ in range(3):
        net.path(net.flow("constant"), [(q, COST)], RTT, rate=1e9 / COST / 3)
    net.run(30 * COST)
    assert net.order(q) == [0, 1, 2] * 10 + [0]


# What a user can get wrong

def path(**options: object) -> Callable[[], object]:
    def call() -> object:
        net = Network(SEED)
        q = net.queue(Queue("droptail", 10))
        arguments = {"hops": [(q, COST)], "delay": RTT} | options
        return net.path(net.flow(), **arguments)
    return call


def after_run() -> None:
    net = Network(SEED)
    net.run(0)
    net.flow()


def backwards() -> None:
    net = Network(SEED)
    net.run(10)
    net.run(9)


@pytest.mark.parametrize(("call", "says"), [
    (lambda: Queue("best", 1), "queue 'best' is not known: use one of dropt"),
    (lambda: Queue("red", 0), "capacity 0 is not allowed: use 1 to 1048576"),
    (lambda: Queue("red", 9, low=-1), "low -1 is not allowed: use 0 to 1"),
    (lambda: Queue("red", 9, low=0.8), "high 0.75 is not allowed: use above"),
    (lambda: Queue("red", 9, high=2), "high 2 is not allowed: use above low"),
    (lambda: Queue("red", 9, p_max=2), "p_max 2 is not allowed: use 0 to 1"),
    (lambda: Queue("red", 9, weight=0), "weight 0 is not allowed: use above"),
    (lambda: Queue("red", 9, exponent=9), "exponent 9 is not allowed: use 0"),
    (lambda: Queue("fq", 9, batch=0), "batch 0 is not allowed: use 1 to"),
    (lambda: Queue("fq", 9, quantum=-1), "quantum -1 is not allowed: use 0"),
    (lambda: Network(SEED).flow("tcp"), "sender 'tcp' is not known: use one"),
    (lambda: Network(SEED).path(0, [(0, 1)], 1), "flow 0 is not allowed"),
    (path(hops=[]), "0 hops are not allowed: use 1 or more"),
    (path(hops=[(1, COST)]), "queue 1 is not allowed: use 0 to 0"),
    (path(hops=[(0, 0)]), "cost 0 is not allowed: use 1 to"),
    (path(delay=0), "delay 0 is not allowed: use 1 to"),
    (path(jitter=-1), "jitter -1 is not allowed: use 0 to"),
    (path(min_rto=0), "min_rto 0 is not allowed: use 1 to"),
    (path(rate=0), "rate 0 is not allowed: use 0.001 to"),
    (path(loss=1.1), "loss 1.1 is not allowed: use 0 to 1"),
    (path(mark=-0.1), "mark -0.1 is not allowed: use 0 to 1"),
    (path(window=0), "window 0 is not allowed: use 1 to"),
    (path(start=-1), "start -1 is not allowed: use 0 to"),
    (lambda: Network(SEED).stat(0), "path 0 is not allowed"),
    (lambda: reno_fill(2), "buffer 2 is not allowed: use 0 to 1"),
    (lambda: reno_window(0), "loss 0 is not allowed: use above 0"),
    (after_run, "the network has run: add everything before"),
    (backwards, "until 9 is not allowed: use 10 or later")])
def test_errors(call: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
