# The VCL of a new installation. The package made this file once and does not
# change it: it is yours. After a change run `systemctl reload varnish`.

vcl 4.1;

import sandpaper;

# Your origin
backend default {
	.host = "127.0.0.1";
	.port = "8080";
}

sub vcl_init {
	# Your tenants: which Hosts belong to which customer. Without this
	# map each Host becomes a tenant of its own.
	# /usr/share/doc/varnish-sandpaper/configure.md explains it.
	#
	# sandpaper.tenants_file("/etc/varnish/tenants");
}
