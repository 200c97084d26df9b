# SPDX-License-Identifier: BSD-2-Clause
"""One nginx of an experiment, for the paper's comparison (section 3.2).

It caches the same pages of the same origin, and a made-up customer's work is
as many microseconds of Lua's regular-expression substitutions as it is of
VCL's in Varnish; how long one takes here is measured, too.  A worker process a
core, and as many connections as come.  C1 to C4 are VCL and VMODs: it has none.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

from .customers import TWIN, host
from .reaper import Reaper
from .testbed import Proxy, Testbed, TestbedError
from .varnish import START_TIMEOUT, Variant, Varnish
from .work import TEXT

NGINX = "nginx"
PROGRAM = Path("/usr/sbin/nginx")
MODULES = [Path("/usr/lib/nginx/modules") / name
           for name in ("ndk_http_module.so", "ngx_http_lua_module.so")]


class NginxVariant(Variant):
    """Debian's nginx."""

    @property
    def program(self) -> Path:
        """The executable; an error if it or its Lua are not there."""
        for path in (PROGRAM, *MODULES):
            if not path.exists():
                raise TestbedError(f"there is no {path}: run apt-get install "
                                   "nginx-light libnginx-mod-http-lua")
        return PROGRAM


def server(name: str, units: int, proxy: Proxy) -> str:
    """Return the configuration of one customer's Hosts."""
    work = (f"rewrite_by_lua_block {{ work({units}) }}" if units else "")
    return f"""	server {{
		listen {proxy.listen};
		server_name {host(name)} {host(name + TWIN)};
		location / {{
			{work}
			proxy_pass http://origin;
		}}
	}}
"""


def configuration(
    proxy: Proxy, folder: Path, cores: int, units: Mapping[str, int]
) -> str:
    """Return nginx.conf: all made-up customers, and files in the folder."""
    load = "".join(f"load_module {m};\n" for m in MODULES)
    temporary = "".join(
        f"\t{kind}_temp_path {folder}/{kind};\n" for kind in (
            "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    servers = "".join(server(n, u, proxy) for n, u in units.items())
    return f"""{load}user root;
daemon off;
worker_processes {cores};
worker_rlimit_nofile 40000;
error_log {folder}/log error;
pid {folder}/pid;
events {{
	worker_connections 20000;
	multi_accept on;
}}
http {{
	access_log off;
	keepalive_requests 1000000000;
	keepalive_timeout 600s;
	sendfile on;
	tcp_nopush on;
{temporary}	proxy_cache_path {folder}/cache keys_zone=pages:10m inactive=1d
	    use_temp_path=off;
	proxy_cache pages;
	proxy_cache_key $host$request_uri;
	proxy_cache_valid 200 1d;
	proxy_cache_lock on;
	proxy_http_version 1.1;
	proxy_set_header Connection "";
	proxy_set_header Host $host;
	upstream origin {{
		server {proxy.origin_addr}:{proxy.origin_port};
		keepalive 16;
	}}
	init_by_lua_block {{
		local text = "{TEXT}"
		function work(n)
			for _ = 1, n do
				ngx.re.gsub(text, "([a-z]+)-([0-9a-z]+)",
				    "$2-$1", "jo")
			end
		end
	}}
	server {{
		listen {proxy.listen} default_server backlog=20000;
		return 404;
	}}
{servers}}}
"""


class Nginx(Varnish):
    """A running nginx; what experiments ask of a varnishd it answers, too."""

    def __init__(
        self, variant: Variant, bed: Testbed, reaper: Reaper,
        units: Mapping[str, int], proxy: Proxy,
    ) -> None:
        super().__init__(variant, bed, reaper, "", proxy)
        self._units = units

    def _command(self) -> list[str]:
        conf = self._folder / "nginx.conf"
        self._bed.write(self.proxy.role, conf, configuration(
            self.proxy, self._folder, len(self._bed.proxy_cores),
            self._units).encode())
        return [str(self.variant.program), "-c", str(conf), "-e",
                str(self._folder / "log")]

    def _await_child(self) -> int:
        """Wait until the first worker process runs."""
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(TestbedError, ValueError):
                self._manager = int(self._read(self._folder / "pid"))
                children = self._children()
                if len(children) >= len(self._bed.proxy_cores):
                    return children[0]
            time.sleep(0.05)
        log = (self._folder / "log").read_text()[-500:]
        raise TestbedError(f"{PROGRAM} did not start: {log}")

    def cpu_seconds(self) -> float:
        """CPU time that all worker processes have used."""
        return sum(map(self._cpu_of, self._children()))
