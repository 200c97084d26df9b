# SPDX-License-Identifier: BSD-2-Clause
#
# A tenant with a target. When its queue is too slow, it first gets stale objects
# from the cache. Only what this does not save is refused.
# doc/overload.md explains it.

vcl 4.1;

import sandpaper;

backend shop { .host = "127.0.0.1"; .port = "8081"; }

sub vcl_init {
	sandpaper.tenant("shop");
	sandpaper.host("shop", "shop.example");
	# No request of the shop waits for longer than half a second.
	sandpaper.target("shop", 0.5s);
}

sub vcl_recv {
	# Clients cannot say this.
	unset req.http.X-Stale;
	# An object is fresh, or at most 1 s too old.
	set req.grace = 1s;
	# The last requests waited for 0.02 of the target, 10 ms: an object that is
	# an hour too old is better than a refusal.
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
	# Keep objects for an hour after they are too old.
	set beresp.grace = 1h;
}
