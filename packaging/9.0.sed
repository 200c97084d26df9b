# SPDX-License-Identifier: BSD-2-Clause
#
# From the packages of Varnish 7.7 to those of Vinyl Cache 9.0: packaging/debian
# and what tests them are written for 7.7, and differ in names only. Programs,
# libraries, users and ABIs begin with `vinyl`; packages, services and folders
# are called `vinyl-cache`. Programs have a link with the old name, so the
# package is in the way of those of Varnish.

# A line with this mark stays as it is
/# as it is$/b

# What keeps the name of Varnish, until the last rules
s,^\(usr/s*bin/\)varnish\(.*\)$,\1@OLD@\2\n\1varnish\2,
s/build-varnish/build-@OLD@/
s/Varnish Software/@Old@ Software/
s/^\( *\)varnish$/\1@OLD@,\n\1@OLD@-sandpaper,\n\1varnish/

s/Varnish Cache\|Varnish/Vinyl Cache/g
s/varnish-sandpaper/vinyl-cache-sandpaper/g
# The user and the group
s/\(\(ingroup\|group\|-[og]\|user\|--system\|--gid\) \|Group=\)varnish\b/\1vinyl/g
s/\(gn vcache)" = \)varnish/\1vinyl/
s/varnish\([a-z*]\)/vinyl\1/g
s/varnish/vinyl-cache/g
s,build/7\.7/,build/9.0/,g
# 9.0 adds /lib itself
s,localstatedir=/var/lib,localstatedir=/var,
s/abi-21\.0/abi-23.0/
s/@OLD@/varnish/g
s/@Old@/Varnish/
