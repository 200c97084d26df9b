# SPDX-License-Identifier: BSD-2-Clause
"""The demo's sites, attacks and stage.

Three sites share one varnishd.  `shop` and `blog` get a fixed number of
requests a second from many users, less than their share of the machine.
`bad` behaves until an attack starts.  All settings of varnishd are default,
apart from PARAMETERS, which stock and Sandpaper get alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from .load import Group, Load
from .origin import start_drip
from .reaper import Reaper
from .testbed import Proxy, Testbed
from .varnish import Variant, Varnish

SITES = ("shop", "blog", "bad")
STOCK, SANDPAPER = "stock", "sandpaper"
PARAMETERS = ("thread_pool_max=100",)

SHOP_PART = 0.15  # of the requests/s that the machine can serve for shop
BLOG_PART = 0.05
BAD_RPS = 5.0  # while it behaves
USERS = 100  # of shop at a time; blog has half as many
GREEDY = 40  # that ask for all that shop can get
PATIENCE = 2.0  # seconds until a user without a connection gives up

WORK, HEAVY_WORK = 80, 500  # searches in TEXT that find nothing
TEXT = "published-5 minutes-ago by-4 editors-in 12-cities, " * 40
PAGE = "/bytes/10000"
HUGE = "/bytes/600000"
SILENT_SECONDS = 2  # varnishd waits so long for the origin that is silent


@dataclass(frozen=True)
class Attack:
    """What `bad`, or a client that invents Hosts, does.

    `keeps` and `ahead` are the demo's thresholds.
    """

    key: str
    name: str
    what: str
    group: Group
    keeps: float  # the part of shop's throughput that Sandpaper must keep
    ahead: float  # and by how much more than stock
    wedges: bool = False  # a varnishd that it beats needs seconds to recover


def site(name: str) -> str:
    """Return a site's Host."""
    return f"{name}.example"


def bad(path: str, mode: str = "closed", conns: int = 400,
        **more: int) -> Group:
    """Return clients that ask `bad` for a page."""
    return Group("attack", site("bad"), path, mode, conns,
                 **more)  # type: ignore[arg-type]


KEEPS, AHEAD = 0.75, 0.3
ATTACKS = (
    Attack("1", "heavy VCL",
           "400 clients ask bad for pages that cost much CPU time",
           bad("/heavy"), KEEPS, AHEAD),
    Attack("2", "huge pages", "400 clients ask bad for pages of 600 kB",
           bad(HUGE), KEEPS, AHEAD),
    Attack("3", "silent origin",
           "400 clients ask bad for pages whose origin never answers",
           bad("/silent", unique=1), KEEPS, AHEAD, wedges=True),
    Attack("4", "pipelining",
           "400 clients send requests to bad, and never wait for an answer",
           bad(PAGE, "pipe"), KEEPS, AHEAD),
    Attack("5", "invented Hosts",
           "400 clients invent a new Host for each request",
           Group("attack", "invented.example", PAGE, conns=400,
                 random_host=1), KEEPS, AHEAD),
)


def backend(name: str, addr: str, port: int, seconds: int) -> str:
    """Return VCL's definition of an origin."""
    return (f'backend {name} {{\n\t.host = "{addr}";\n\t.port = "{port}";\n'
            f"\t.first_byte_timeout = {seconds}s;\n}}\n")


def work(searches: int) -> str:
    """Return VCL that costs CPU time, as a site's own VCL does."""
    search = ('\t\tif (req.http.X-Text ~ "([a-z]+)-([0-9a-z]+)-none") {\n'
              "\t\t\tunset req.http.X-Text;\n\t\t}\n")
    return f'\t\tset req.http.X-Text = "{TEXT}";\n' + search * searches


def demo_vcl(proxy: Proxy) -> str:
    """Return the VCL of all sites; there is no map of tenants."""
    known = "|".join(SITES)
    return f"""vcl 4.1;

{backend("default", proxy.origin_addr, proxy.drip_port, 60)}
{backend("silent", proxy.origin_addr, proxy.drip_port, SILENT_SECONDS)}
sub vcl_recv {{
	# What each request costs: to find the site, to rewrite the URL.
	if (req.url == "/heavy") {{
{work(HEAVY_WORK)}\t\tset req.url = "{PAGE}";
	}} else {{
{work(WORK)}\t}}
	unset req.http.X-Text;
	if (req.http.host !~ "^({known})[.]example$") {{
		return (synth(404));
	}}
	if (req.url ~ "^/silent") {{
		set req.backend_hint = silent;
	}}
	return (hash);
}}

sub vcl_backend_response {{
	set beresp.ttl = 1d;
}}
"""


def everyday(shop_rps: float) -> list[Group]:
    """Return the users of the three sites."""
    def users(name: str, conns: int, rate: float) -> Group:
        return Group(name, site(name), PAGE, "open", conns, rate=rate,
                     patience=PATIENCE, fresh=1)

    return [users("shop", USERS, shop_rps),
            users("blog", USERS // 2, shop_rps * BLOG_PART / SHOP_PART),
            users("bad", 4, BAD_RPS)]


class Stage:
    """The testbed with its origin, and the varnishds on it."""

    def __init__(self, bed: Testbed, reaper: Reaper, seed: int) -> None:
        self.bed, self.reaper = bed, reaper
        bed.up()
        self.load = Load(bed, reaper, seed)
        start_drip(bed, reaper)

    def varnish(self, variant: Variant, second: bool = False) -> Varnish:
        """Return a varnishd, to be entered as a context."""
        proxy = self.bed.proxies[second]
        return Varnish(variant, self.bed, self.reaper, demo_vcl(proxy),
                       proxy)

    def prime(self, varnish: Varnish) -> None:
        """Have all pages in the cache."""
        self.load.prime(varnish, [
            Group(name, site(name), path) for name in SITES
            for path in (PAGE, HUGE)])

    def capacity(self, varnish: Varnish) -> float:
        """Return the requests/s that shop gets when it asks for all."""
        greedy = Group("shop", site("shop"), PAGE, conns=GREEDY)
        return self.load.measure(varnish, [greedy], 1.0, 0.3)["shop"].rps
