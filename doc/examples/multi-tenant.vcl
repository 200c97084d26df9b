# SPDX-License-Identifier: BSD-2-Clause
#
# Two customers behind one varnishd, and everybody else as a third tenant.
# Change the names and the backends' addresses. In force with `vcl.use`.

vcl 4.1;

import sandpaper;

backend shop { .host = "127.0.0.1"; .port = "8081"; }
backend blog { .host = "127.0.0.1"; .port = "8082"; }

sub vcl_init {
	# Twice the share of the others, and at most 500 requests waiting.
	sandpaper.tenant("shop", weight = 2.0, queue_limit = 500);
	sandpaper.host("shop", "shop.example");
	sandpaper.host("shop", "*.shop.example");
	# At least a fifth of the cores or the link, at most half of it.
	sandpaper.limits("shop", reservation = 0.2, limit = 0.5);

	# Weight 1, and the limit of the parameter sandpaper_queue_limit.
	sandpaper.tenant("blog");
	sandpaper.host("blog", "blog.example");

	# A reseller's sites have one share together, and theirs of that.
	sandpaper.group("reseller");
	sandpaper.member("blog", "reseller");

	# Hosts that are not named above share one tenant, "(unknown)".
	sandpaper.unknown(SHARED);
}

sub vcl_recv {
	# The request has been released by now: what it waits for from here
	# on is its backend, not another tenant.
	if (sandpaper.me() == "shop") {
		set req.backend_hint = shop;
	} else if (sandpaper.me() == "blog") {
		set req.backend_hint = blog;
	} else {
		return (synth(404));
	}
}

sub vcl_deliver {
	# Seconds that this request waited for its turn.
	set resp.http.X-Waited = sandpaper.wait();
}
