# SPDX-License-Identifier: BSD-2-Clause
#
# Pages that are not cached: more of them are compressed while net is scarcer,
# fewer while cpu is. doc/overload.md explains it.

vcl 4.1;

import sandpaper;

backend shop { .host = "127.0.0.1"; .port = "8081"; }

sub vcl_recv {
	# Do not let clients set this header.
	unset req.http.X-Compress;
	if (req.http.Accept-Encoding ~ "gzip" && sandpaper.save(net)) {
		set req.http.X-Compress = "1";
	}
}

sub vcl_backend_fetch {
	# The origin sends pages as they are: Varnish compresses.
	unset bereq.http.Accept-Encoding;
}

sub vcl_backend_response {
	if (bereq.uncacheable && bereq.http.X-Compress && beresp.http.Content-Type ~ "^(text/|application/(json|javascript))") {
		set beresp.do_gzip = true;
	}
}
