# SPDX-License-Identifier: BSD-2-Clause
#
# A tenant with a target. While its queue is slow, its clients get stale objects
# from the cache. If that does not save enough work, requests are refused.
# doc/overload.md explains it.

vcl 4.1;

import sandpaper;

backend shop { .host = "127.0.0.1"; .port = "8081"; }

sub vcl_init {
	sandpaper.tenant("shop");
	sandpaper.host("shop", "shop.example");
	# A request that would wait for longer is refused.
	sandpaper.target("shop", 0.5s);
}

sub vcl_recv {
	# Do not let clients set this header.
	unset req.http.X-Stale;
	# At most 1 s past its TTL.
	set req.grace = 1s;
	# The last requests waited for 0.02 of the target, 10 ms: an object that is
	# up to an hour past its TTL is better than a refusal. Do not do this for
	# pages with prices or stock.
	if (sandpaper.pressure() > 0.02) {
		set req.grace = 1h;
		set req.http.X-Stale = "1";
	}
}

sub vcl_backend_fetch {
	# Varnish fetches a new copy of a stale object in the background. That
	# is work, too: let it wait for better times.
	if (bereq.is_bgfetch && bereq.http.X-Stale) {
		return (abandon);
	}
	unset bereq.http.X-Stale;
}

sub vcl_backend_response {
	# Keep good answers for an hour past their TTL.
	if (beresp.status == 200) {
		set beresp.grace = 1h;
	}
}
