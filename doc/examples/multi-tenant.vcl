# SPDX-License-Identifier: BSD-2-Clause
#
# Two tenants behind one varnishd. All Hosts that are not in the map share a
# third tenant, "(unknown)". Change the names and the addresses of the origins.
# doc/configure.md explains the calls.

vcl 4.1;

import sandpaper;

backend shop { .host = "127.0.0.1"; .port = "8081"; }
backend blog { .host = "127.0.0.1"; .port = "8082"; }

sub vcl_init {
	# Weight 2: twice the share of a tenant of weight 1. At most 500 of its
	# requests wait.
	sandpaper.tenant("shop", weight = 2.0, queue_limit = 500);
	sandpaper.host("shop", "shop.example");
	sandpaper.host("shop", "*.shop.example");
	# At least a fifth and at most half of the resource that it uses most.
	sandpaper.limits("shop", reservation = 0.2, limit = 0.5);

	# Weight 1, and the queue limit of the parameter sandpaper_queue_limit.
	sandpaper.tenant("blog");
	sandpaper.host("blog", "blog.example");

	# All members of a group have one share together.
	sandpaper.group("reseller");
	sandpaper.member("blog", "reseller");

	# All other Hosts are the tenant "(unknown)".
	sandpaper.unknown(SHARED);
}

sub vcl_recv {
	# Sandpaper has released this request. It does not wait for other
	# tenants any more.
	if (sandpaper.me() == "shop") {
		set req.backend_hint = shop;
	} else if (sandpaper.me() == "blog") {
		set req.backend_hint = blog;
	} else {
		return (synth(404));
	}
}

sub vcl_deliver {
	# How long this request waited in its tenant's queue, in seconds.
	set resp.http.X-Waited = sandpaper.wait();
}
