# SPDX-License-Identifier: BSD-2-Clause
"""The tenants of the experiments and the VCL that serves them all.

C1 to C4 are the paper's, see publishers.py.  The others are made up: such a
customer is a page size and an amount of VCL work in microseconds of CPU.
The work is regular-expression substitutions, as publishers' VCL does them;
how long one takes is measured at start (`_calibrate` in rig.py).
Every customer has two Hosts, its own and a twin's, for runs against itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .publishers import PUBLISHERS
from .testbed import Proxy, TestbedError


@dataclass(frozen=True)
class Customer:
    """One tenant: `size` in bytes, `work_us` in microseconds of CPU."""

    name: str
    size: int
    work_us: float

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

BIG = 10_000_000  # bytes: of a page that abusers ask for
LARGE = 230_000  # bytes: with c1's work, link-bound
PAGE_SIZES = sorted({c.size for c in CUSTOMERS.values()} | {BIG, LARGE})

DEAR = "\t\t# dear work\n"
DEAR_US = 2200

CALIBRATION = "calibrate"  # the Host that does PROBE_UNITS units
PROBE_UNITS = 40

TEXT = "published-5 minutes-ago by-4 editors-in 12-cities, " * 4


def check_names(names: Sequence[str]) -> None:
    """A customer that does not exist is the user's mistake."""
    for name in names:
        if name.removesuffix(TWIN) not in CUSTOMERS | PUBLISHERS:
            raise TestbedError(
                f"there is no customer {name}: use "
                + " ".join([*PUBLISHERS, *CUSTOMERS])
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
    return (PUBLISHERS if base in PUBLISHERS else CUSTOMERS)[base].path


def work_vcl(units: int) -> str:
    """Return VCL statements that do `units` units of work."""
    step = ('\t\tset req.http.X-Work = regsuball(req.http.X-Text, '
            '"([a-z]+)-([0-9a-z]+)", "\\2-\\1");\n')
    if units == 0:
        return ""
    return f'\t\tset req.http.X-Text = "{TEXT}";\n' + step * units


def with_work(text: str, unit_us: float) -> str:
    """Return VCL with the dear work in its place."""
    return text.replace(DEAR, work_vcl(round(DEAR_US / unit_us)))


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


def vcl(proxy: Proxy, unit_us: float, prelude: str = "") -> str:
    """Return the VCL of all customers; `prelude` follows the backends."""
    units = {
        name: round(c.work_us / unit_us) for name, c in CUSTOMERS.items()
    } | {CALIBRATION: PROBE_UNITS}
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
