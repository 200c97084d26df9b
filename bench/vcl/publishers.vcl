# SPDX-License-Identifier: BSD-2-Clause
#
# What the VCL of the paper's four customers (Table 1) does.  The rules that C3
# knows phones by, and what is in {braces}, come from
# sandpaper_bench/publishers.py.

import customers from "{vmod}";
import std;

sub vcl_init {
	customers.syslog("{log}");
	customers.places("{places}");
}

# C2 logs headers, and shows its readers what their token entitles them to.
sub c2_recv {
	customers.log(req);
	set req.http.X-Role = customers.claim(
	    regsub(req.http.Authorization, "^Bearer ", ""),
	    "{secret}", "role");
	if (req.http.X-Role !~ "^(visitor|subscriber|editor)$") {
		set req.http.X-Role = "visitor";
	}
	set req.url = "/C2/" + req.http.X-Role + ".html";
}

# C3 has a copy of its page for each kind of device and each country.
sub c3_recv {
	set req.http.X-Device = "";
	call c3_phones;
	if (req.http.X-Device != "") {
		# a phone, by its name
	} else if (req.http.User-Agent ~ "(?i)smart-?tv|appletv|hbbtv|crkey") {
		set req.http.X-Device = "tv";
	} else if (req.http.User-Agent ~ "(?i)ipad|tablet|kindle|silk/" ||
	    (req.http.User-Agent ~ "(?i)android" &&
	    req.http.User-Agent !~ "(?i)mobile")) {
		set req.http.X-Device = "tablet";
	} else if (req.http.User-Agent ~ "(?i)mobile|iphone|opera mini") {
		set req.http.X-Device = "phone";
	} else {
		set req.http.X-Device = "desktop";
	}
	set req.http.X-Country = customers.country(
	    std.ip(regsub(req.http.X-Forwarded-For, ",.*$", ""), client.ip));
}

sub vcl_recv {
	unset req.http.X-Customer;
	if (req.http.host ~ "^customer-c[1-4]-(main|twin)\.example$") {
		set req.http.X-Customer = regsub(req.http.host,
		    "^customer-(c.).*$", "\1");
		if (req.http.X-Customer == "c2") {
			call c2_recv;
		} else if (req.http.X-Customer == "c3") {
			call c3_recv;
		}
		unset req.http.Authorization;
		return (hash);
	}
}

sub vcl_hash {
	if (req.http.X-Customer == "c3") {
		hash_data(req.http.X-Device);
		hash_data(req.http.X-Country);
	}
}

# C4's live blog: the page includes JSON objects, which are new every second.
sub vcl_backend_response {
	if (bereq.http.X-Customer == "c4") {
		if (bereq.url ~ "\.json$") {
			set beresp.ttl = 1s;
			set beresp.grace = 1m;
			return (deliver);
		}
		set beresp.do_esi = true;
	}
}

# C1's page says how old its articles are.
sub vcl_deliver {
	if (req.http.X-Customer == "c1") {
		set resp.filters = "published";
	} else if (req.http.X-Customer == "c2") {
		customers.log(resp);
	}
}
