# SPDX-License-Identifier: BSD-2-Clause
"""The tenants of the experiments and the VCL that serves them all.

C1 to C4 are the paper's, see publishers.py.  The others are made up: such a
customer is a page size and an amount of VCL work in microseconds of CPU
(work.py).  A user can describe more by their names.
Every customer has two Hosts, its own and a twin's, for runs against itself.
"""

from __future__ import annotations

import math
import operator
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .publishers import PUBLISHERS
from .testbed import Proxy, TestbedError
from .work import work_vcl


@dataclass(frozen=True)
class Customer:
    """One tenant: `size` in bytes, `work_us` in microseconds of CPU.

    0 `connections` are the plan's.
    """

    name: str
    size: int
    work_us: float
    connections: int = 0

    @property
    def path(self) -> str:
        """The URL of the page."""
        return f"/bytes/{self.size}"


CUSTOMERS = {
    c.name: c
    for c in (
        Customer("c1", 27_600, 440),  # CPU-bound
        Customer("c3", 115_000, 250),  # NIC-bound
        Customer("c4", 45_500, 195),  # NIC-bound, in the middle
        Customer("k0", 1_000, 0),  # a no-op
        Customer("k1", 1_000, 440),  # CPU-bound, nothing to send
        Customer("k2", 115_000, 0),  # NIC-bound, large pages
        Customer("k3", 45_500, 0),  # NIC-bound, smaller pages
    )
}

TWIN = "-twin"
NOOP = "k0"

# The paper's (Figures 3 and 9), and the made-up ones, for Varnish 6.0, too.
PAIRS = [("C1", "C3"), ("C1", "C2"), ("C1", "C4"), ("C2", "C3"),
         ("C2", "C4"), ("C3", "C4"), *((c, c + TWIN) for c in PUBLISHERS)]
MADE_UP_PAIRS = [("c1", "c3"), ("c3", "c4"), ("c1", "c4"), ("k0", "k1"),
                 ("k1", "k2"), ("k2", "k3")]

# A customer that a user describes: page, work and connections
OWN = re.compile(r"p([1-9][0-9]*)w([0-9]+)n([1-9][0-9]*)")
OWN_LIMITS = (10_000_000, 10_000, 10_000)
OWN_TEXT = ("p27600w440n100, which is a page of 27600 bytes, 440 us of work "
            "and 100 connections; at most p{}w{}n{}".format(*OWN_LIMITS))

NOOP_US = 15  # of a request without work, at least
BIG = 10_000_000  # bytes: of a page that abusers ask for
LARGE = 230_000  # bytes: with c1's work, link-bound
PAGE_SIZES = sorted({c.size for c in CUSTOMERS.values()} | {BIG, LARGE})

CALIBRATION = "calibrate"  # the Host that does PROBE_UNITS units
PROBE_UNITS = 40


def own(name: str) -> Customer | None:
    """Return the customer that a name such as p27600w440n100 describes."""
    base = name.removesuffix(TWIN)
    match = OWN.fullmatch(base)
    if match is None:
        return None
    numbers = [int(text) for text in match.groups()]
    if any(map(operator.gt, numbers, OWN_LIMITS)):
        return None
    return Customer(base, *numbers)


def all_own(names: Sequence[str]) -> Mapping[str, Customer]:
    """Return those that are described by their names, without twins."""
    found = [customer for customer in map(own, names) if customer is not None]
    return {customer.name: customer for customer in found}


def drawn(seed: int, number: int) -> list[tuple[str, str]]:
    """Return pairs of customers that nobody chose.

    Pages have 1 to 200 kB.  The work is 15 to 2000 us without NOOP_US.  In both
    each order of magnitude is as likely as another.  Tenants have 1 to 300
    connections, each number as likely.
    """
    rng = random.Random(seed)

    def between(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    def one() -> str:
        size, work_us = between(1000, 200_000), between(NOOP_US, 2000) - NOOP_US
        return f"p{size:.0f}w{work_us:.0f}n{rng.randint(1, 300)}"

    return [(one(), one()) for _ in range(number)]


def check_names(names: Sequence[str], described: bool = False) -> None:
    """A customer that does not exist is the user's mistake.

    Where it is `described`, its name may say what it is.
    """
    for name in names:
        if own(name) and not described:
            raise TestbedError(f"{name}: only --pairs and --customers take a "
                               "customer that you describe")
        if (name.removesuffix(TWIN) not in CUSTOMERS | PUBLISHERS
                and not (described and own(name))):
            raise TestbedError(
                f"there is no customer {name}: use "
                + " ".join([*PUBLISHERS, *CUSTOMERS])
                + (f" or one such as {OWN_TEXT}" if described else "")
                + f", each with a twin such as c1{TWIN}")


def publisher(name: str) -> str | None:
    """Return which of C1 to C4 a customer or twin is, if any."""
    base = name.removesuffix(TWIN)
    return base if base in PUBLISHERS else None


def host(name: str) -> str:
    """Return the Host of a customer or twin: C1's is not c1's.

    A twin's is as long, so that it costs no more to parse.
    """
    prefix = "customer-" if publisher(name) else ""
    which = TWIN if name.endswith(TWIN) else "-main"
    return f"{prefix}{name.removesuffix(TWIN).lower()}{which}.example"


def path(name: str) -> str:
    """Return the URL of the page of a customer or twin."""
    base = name.removesuffix(TWIN)
    return (own(name) or (PUBLISHERS | CUSTOMERS)[base]).path


def tenant_map() -> str:
    """Return VCL that makes each customer a tenant, its twin another."""
    calls = "".join(
        f'\tsandpaper.tenant("{name}");\n'
        f'\tsandpaper.host("{name}", "{host(name)}");\n'
        for base in CUSTOMERS | PUBLISHERS for name in (base, base + TWIN))
    return f"import sandpaper;\nsub vcl_init {{\n{calls}}}\n"


def backend(name: str, addr: str, port: int) -> str:
    """Return VCL's definition of an origin that may take its time."""
    return f"""backend {name} {{
	.host = "{addr}";
	.port = "{port}";
	.connect_timeout = 60s;
	.first_byte_timeout = 600s;
	.between_bytes_timeout = 600s;
}}
"""


def units_of(
    described: Mapping[str, Customer], unit_us: float
) -> dict[str, int]:
    """Return the units of work of each made-up customer."""
    return {name: round(c.work_us / unit_us)
            for name, c in {**CUSTOMERS, **described}.items()
            } | {CALIBRATION: PROBE_UNITS}


def vcl(
    proxy: Proxy, units: Mapping[str, int], prelude: str = ""
) -> str:
    """Return the VCL of all customers; `prelude` follows the backends."""
    tenants = " else ".join(
        f'if (req.http.host ~ "^{name}-(main|twin)\\.example$") {{\n'
        f"{work_vcl(n)}\t}}" for name, n in units.items()
    )
    return f"""vcl 4.1;

{backend("default", proxy.origin_addr, proxy.origin_port)}
{backend("dripping", proxy.origin_addr, proxy.drip_port)}
{prelude}
sub vcl_recv {{
	{tenants} else if (req.http.host == "drip.example") {{
		set req.backend_hint = dripping;
	}} else if (req.http.host !~ "^(big|h[0-9]+\\.many)\\.example$") {{
		return (synth(404));
	}}
	unset req.http.X-Text;
	unset req.http.X-Work;
	return (hash);
}}

sub vcl_backend_response {{
	set beresp.ttl = 1d;
	set beresp.grace = 0s;
}}

sub vcl_synth {{
	set resp.body = "nobody";
	return (deliver);
}}
"""
