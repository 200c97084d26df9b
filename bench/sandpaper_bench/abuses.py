# SPDX-License-Identifier: BSD-2-Clause
"""The abuses: one entry each says who misbehaves, how, and what is fair.

An abuse is loadgen's groups, or actions: what an operator or the machine does
to varnishd meanwhile, see faults.py.  What the abusers' Hosts need of VCL is
in `vcl`, before the customers' own; DEAR stands for five times c1's work.

`fair` is the part of its throughput alone that the victim can claim: all of it
where the abuse takes next to no CPU time or link, half of it beside a tenant
that is greedy.

Clients that invent Hosts come with and without a map.  Without one, all
settings are Sandpaper's own, and the victim is proven: it is a tenant, the
invented Hosts are members of the group (new), which has NEW_WEIGHT together.
In the other cases each Host is a tenant at once, as if a map named it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from .customers import BIG, LARGE, backend, host
from .load import Group
from .testbed import Testbed
from .work import DEAR

KEPT = 0.9  # of the fair share
TIMES = 2.0  # p99 over p99 alone, at most
SETTLED = 1.0  # seconds until nothing runs and nobody waits, at most
POOLS = 2  # Varnish's thread_pools
SPARE_THREADS = 100  # beyond the pools' workers

HOLE = "192.0.2.1"  # from where nothing ever comes, see testbed.py
NEW_WEIGHT = 0.1  # Sandpaper's default
NEW_KEPT = 0.85  # of the victim's throughput alone, beside new Hosts
NEW_TIMES = 4.0
INVENTORS = 400  # clients that invent Hosts
INVENTED_RATE = 10  # requests/s of one that pauses
LATE_MS = 20  # a slow origin's answer, on average

H2 = ("feature=+http2",)
ACKS = 7  # the mark of packets whose ACKs are dropped
NO_ACKS = f"meta mark {ACKS} tcp flags & (fin|syn|rst|psh|ack) == ack drop"

TWIN = host("k0-twin")
PAGE = "/bytes/1000"


@dataclass(frozen=True)
class Abuse:
    """A kind of misbehaviour."""

    groups: tuple[Group, ...] = ()
    fair: float = 1.0
    kept: float = KEPT  # of that
    times: float = TIMES
    mapped: bool = False  # the VCL has a map, which has the victim
    new: bool = False  # no map, and the rule for new Hosts holds
    prime: bool = True  # ask for its page first
    greedy: bool = False  # takes CPU or link: not beside the victim alone
    flood: bool = False  # and goes on until it has sent enough
    actions: tuple[str, ...] = ()
    once: bool = False  # the actions, instead of again and again
    after: bool = False  # the victim is measured after it, which is once
    fifo: bool = False  # at times, in which nothing is said of p99
    restarts: bool = False  # the worker process, so that answers are lost
    lasts: bool = False  # fetches go on when their clients are gone
    needs: str = ""  # what only the testbed of namespaces has
    firewall: str = ""  # a rule for what the client sends
    vcl: str = ""
    parameters: tuple[str, ...] = ()
    threads: int = 0  # thread_pool_max, which has to hold
    memory_mb: float = 0  # by which varnishd may grow

    def runs_on(self, bed: Testbed) -> bool:
        """Has this testbed what it needs?"""
        return not self.needs or bed.mode == "namespaces"


def recv(name: str, statements: str) -> str:
    """Return VCL for an abuser's Host."""
    return (f'sub vcl_recv {{\n\tif (req.http.host == "{name}.example") {{\n'
            f"{statements}\t\treturn (hash);\n\t}}\n}}\n")


def abuser(name: str, path: str = "/", mode: str = "closed",
           conns: int = 100, **more: float) -> Group:
    """Return a group that misbehaves, with the Host NAME.example."""
    return Group("abuser", f"{name}.example", path, mode, conns,
                 **more)  # type: ignore[arg-type]


def twin(mode: str = "closed", conns: int = 100, **more: float) -> Group:
    """Return a group of another tenant with the no-op's page."""
    return Group("abuser", TWIN, PAGE, mode, conns,
                 **more)  # type: ignore[arg-type]


GAME = recv("game", f"""\
		if (req.url ~ "dear$") {{
			set req.url = regsub(req.url, "[?].*", "");
{DEAR}\
		}}
		unset req.http.X-Text;
		unset req.http.X-Work;
""")
# Answers to invented Hosts are not kept: the cache is not what they are about
INVENTED = """\
sub vcl_recv {
	if (req.http.host ~ "late[0-9]+[.]invented[.]example$") {
		set req.backend_hint = dripping;
		return (pass);
	}
	if (req.http.host ~ "made200[.]invented[.]example$") {
		return (synth(200));
	}
	if (req.http.host ~ "made404[.]invented[.]example$") {
		return (synth(404));
	}
}
"""
PROBED = "".join(
    backend(f"probed{n}", HOLE, 80).replace(
        "}\n", "\t.probe = { .interval = 1s; .timeout = 5s; }\n}\n")
    for n in range(50)) + recv("probed", "".join(
        f"\t\tset req.backend_hint = probed{n};\n" for n in range(50)))


def inventing(
    paced: bool, status: int, lasting: bool, mapped: bool
) -> tuple[str, Abuse]:
    """Return the name and the case of clients that invent Hosts.

    Each request has a new Host, or each client one that lasts.  Answers come
    from a slow origin to those that pause, else from VCL.
    """
    domain = f"{'late' if paced else 'made'}{status}.invented.example"
    path = f"/late/100/{LATE_MS}" if status == 200 else f"/missing/{LATE_MS}"
    clients = abuser("invented", path, "paced" if paced else "closed",
                     INVENTORS, rate=INVENTED_RATE if paced else 0)
    clients = replace(clients, host=domain, random_host=int(not lasting),
                      hosts=INVENTORS if lasting else 0)
    name = "-".join(["lasting-hosts" if lasting else "new-hosts",
                     "paced" if paced else "closed", str(status),
                     *(["map"] if mapped else [])])
    fair = 0.5 if mapped else 1 / (1 + NEW_WEIGHT)
    return name, Abuse(
        (clients,), fair=fair, kept=KEPT if mapped else NEW_KEPT / fair,
        times=NEW_TIMES, prime=False, greedy=True, mapped=mapped,
        new=not mapped, vcl=INVENTED)


ABUSES = {
    # 400 clients that send a byte of a head at a time.
    "drip-headers": Abuse((abuser("drips", mode="drip", conns=400, rate=10),),
                          prime=False),
    # 400 clients that send a byte of a body at a time.
    "drip-bodies": Abuse(
        (abuser("post", PAGE, "post", 400, rate=10),), prime=False,
        vcl=recv("post", "\t\treturn (pass);\n")),
    # Clients that ask for 10 MB and never read.
    "slow-readers": Abuse(
        (abuser("big", f"/bytes/{BIG}", "stall", 40),)),
    # Clients that ask for 10 MB and read 100 KB/s.
    "trickle-readers": Abuse(
        (abuser("big", f"/bytes/{BIG}", "slow", 40, rate=100_000),)),
    # Clients that read, but whose ACKs never come.
    "dropped-acks": Abuse(
        (abuser("big", f"/bytes/{BIG}", conns=40, mark=ACKS),),
        needs="a network of its own", firewall=NO_ACKS),
    # One connection at a time asks for 10 MB, reads 1 KB and resets.
    "resets": Abuse(
        (abuser("big", f"/bytes/{BIG}", "reset", 1, rate=15),)),
    # 2000 connects a second, each closed at once.
    "connects": Abuse((twin("connect", 200, rate=2000),)),
    # Clients that ask on, whatever the answers do.
    "pipelining": Abuse((twin("pipe"),), fair=0.5, greedy=True),
    # Every request names a Host never seen before, --flood in all.
    "random-hosts": Abuse(
        (abuser("unknown", random_host=1),), fair=0.5, prime=False,
        greedy=True, flood=True, memory_mb=16, mapped=True),
    # Every fifth request is dear, as one that samples would miss.
    "alternates": Abuse(
        (abuser("game", PAGE, every=5),), fair=0.5, greedy=True, vcl=GAME),
    # All are dear, but there are pauses in which debt could be forgotten.  Of
    # few connections, or what still waits fills the pauses.
    "pauses": Abuse(
        (abuser("game", PAGE, conns=10, every=1, on=0.3, off=0.3),),
        fair=0.75, greedy=True, vcl=GAME),
    # A second bound by CPU, a second by the link.
    "flips": Abuse(
        (abuser("game", PAGE, every=1, on=1, off=1),
         Group("flipped", "game.example", f"/bytes/{LARGE}", on=1, off=1,
               shift=1)), fair=0.5, greedy=True, vcl=GAME),
    # 100 streams on each of 100 connections.
    "h2-streams": Abuse(
        (twin("h2", 100, streams=100),), fair=0.5, greedy=True,
        parameters=H2),
    # Streams that are reset as soon as they are asked for.
    "h2-resets": Abuse(
        (twin("h2-reset", 20, rate=500),), fair=0.5, greedy=True,
        parameters=H2),
    # Windows that never open, all streams of each connection: a thread each,
    # and a new connection once they are given up.
    "h2-window": Abuse(
        (twin("h2", 20, streams=100, window=0),), fair=0.5, greedy=True,
        parameters=H2),
    # PING and SETTINGS, 500 each a second and connection.
    "h2-pings": Abuse(
        (twin("h2-ping", 20, rate=500),), fair=0.5, greedy=True,
        parameters=H2),
    # An origin that sends 2 bytes/s, asked for a new page by each request.
    "drip-origin": Abuse(
        (abuser("drip", "/drip/1000/2", unique=1),), prime=False,
        lasts=True),
    # An origin that never answers, 1000 misses a second.
    "blackhole": Abuse(
        (abuser("hole", mode="open", conns=2000, rate=1000, unique=1),),
        prime=False, lasts=True, needs="a network of its own",
        vcl=backend("hole", HOLE, 80)
        + recv("hole", "\t\tset req.backend_hint = hole;\n"),
        parameters=("thread_pool_max=500",), threads=500),
    # 1000 clients that wait for one object, whose fetch fails.
    "failed-fetch": Abuse(
        (abuser("drip", "/fail/500", conns=1000),), prime=False, lasts=True),
    # Objects that are hit for pass.
    "hit-for-pass": Abuse(
        (abuser("pass", PAGE),), fair=0.5, greedy=True,
        vcl=recv("pass", "") + "sub vcl_backend_response {\n"
        '\tif (bereq.http.host == "pass.example") {\n'
        "\t\tset beresp.uncacheable = true;\n\t\treturn (deliver);\n"
        "\t}\n}\n"),
    # 100 pipes through which next to nothing comes.
    "pipes": Abuse(
        (abuser("pipe", "/drip/1000/2", conns=100),), prime=False,
        vcl=recv("pipe", "\t\tset req.backend_hint = dripping;\n"
                 "\t\treturn (pipe);\n")),
    # 50 backends that never answer their probes.
    "probes": Abuse(needs="a network of its own", vcl=PROBED),
    # What an operator changes while two tenants ask for all there is.
    "slots-live": Abuse(
        (twin(),), fair=0.5, greedy=True,
        actions=("param.set sandpaper_workers_per_core 5",
                 "param.set sandpaper_workers_per_core 40",
                 "param.set sandpaper_workers_per_core 20")),
    "policy-live": Abuse(
        (twin(),), fair=0.5, greedy=True,
        actions=("param.set sandpaper_policy mr3",
                 "param.set sandpaper_policy wfq",
                 "param.set sandpaper_policy 2dfqe",
                 "param.set sandpaper_policy drr",
                 "param.set sandpaper_policy mr3-rs")),
    # Half, and of what off and observe serve: 0.7 of what on does.
    "switch-live": Abuse(
        (twin(),), fair=0.4, greedy=True, fifo=True,
        actions=("param.set sandpaper off", "param.set sandpaper observe",
                 "param.set sandpaper on")),
    "reload": Abuse(
        (twin(),), after=True,
        actions=("vcl.load again {vcl}", "vcl.use again", "vcl.use boot",
                 "vcl.discard again")),
    "restart": Abuse(
        (twin(),), after=True, restarts=True, actions=("stop", "start")),
    # The process stands still.
    "stopped": Abuse(
        (twin(),), after=True, actions=("signal STOP", "wait 5",
                                        "signal CONT")),
    # Idle connections take all of varnishd's descriptors.
    "no-descriptors": Abuse(
        (abuser("idle", mode="drip", conns=400, rate=0.1),), prime=False,
        greedy=True, once=True, actions=("descriptors 300",)),
    # 400 clients that invent Hosts: each request a new one, or each client
    # one that lasts; with and without a map.
    **dict(inventing(paced, status, lasting, mapped)
           for (status, lasting), paced, mapped in product(
               ((404, False), (200, False), (200, True)), (True, False),
               (False, True))),
}
