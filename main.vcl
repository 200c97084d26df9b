vcl 4.1;
import sandpaper;
include "/tmp/tutorial/map.vcl";

backend origin { .host = "127.0.0.1"; .port = "8081"; }

sub work {
	set req.http.X = regsuball(req.http.X, "a", "b");
	set req.http.X = regsuball(req.http.X, "b", "a");
}

sub vcl_recv {
	if (req.url ~ "^/heavy") {
		set req.http.X = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
		set req.http.X = regsuball(req.http.X, "a",
		    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
		call work;
		call work;
		call work;
		unset req.http.X;
		set req.url = "/";
	}
}

sub vcl_deliver {
	set resp.http.Tenant = sandpaper.me();
}
