# SPDX-License-Identifier: BSD-2-Clause
"""The tenants of the experiments and the VCL that serves them all.

A customer is a page size and an amount of VCL work in microseconds of CPU.
The work is regular-expression substitutions, as publishers' VCL does them;
how long one takes is measured at start (`_calibrate` in lab.py).
Every customer has two Hosts, its own and a twin, for runs against itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from .testbed import Proxy


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

PAIRS = [("c1", "c3"), ("c3", "c4"), ("c1", "c4"), ("k0", "k1"),
         ("k1", "k2"), ("k2", "k3")]

BIG = 10_000_000  # bytes: of a page that abusers ask for
LARGE = 230_000  # bytes: with c1's work, link-bound
PAGE_SIZES = sorted({c.size for c in CUSTOMERS.values()} | {BIG, LARGE})

CALIBRATION = "calibrate"  # the Host that does PROBE_UNITS units
PROBE_UNITS = 40

TEXT = "published-5 minutes-ago by-4 editors-in 12-cities, " * 4


def host(name: str, twin: bool = False) -> str:
    """Return the Host of a customer or of its twin."""
    return f"{name}-twin.example" if twin else f"{name}.example"


def work_vcl(units: int) -> str:
    """Return VCL statements that do `units` units of work."""
    step = ('\t\tset req.http.X-Work = regsuball(req.http.X-Text, '
            '"([a-z]+)-([0-9a-z]+)", "\\2-\\1");\n')
    if units == 0:
        return ""
    return f'\t\tset req.http.X-Text = "{TEXT}";\n' + step * units


def tenant_map() -> str:
    """Return VCL that makes each customer a tenant, its twin another."""
    calls = "".join(
        f'\tsandpaper.tenant("{name}");\n'
        f'\tsandpaper.host("{name}", "{name}.example");\n'
        for base in CUSTOMERS for name in (base, f"{base}-twin"))
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
        f'if (req.http.host ~ "^{name}(-twin)?\\.example$") {{\n'
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
