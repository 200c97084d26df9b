#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The made-up database of places that C3 looks addresses up in.

Each /24 of 198.18.0.0/15, which is for benchmarks (RFC 2544), is a place in
one of COUNTRIES, in turn.  `places.py FILE` writes it in MaxMind DB format; it
runs in the venv that has bench/requirements.txt.
"""

from __future__ import annotations

import sys

from mmdb_writer import MMDBWriter
from netaddr import IPNetwork, IPSet

COUNTRIES = ("DE", "FR", "IN", "US")


def main(path: str) -> None:
    """Write the database to `path`."""
    writer = MMDBWriter(ip_version=6, ipv4_compatible=True,
                        database_type="Sandpaper-Testbed")
    for i, net in enumerate(IPNetwork("198.18.0.0/15").subnet(24)):
        writer.insert_network(IPSet([net]), {
            "country": {"iso_code": COUNTRIES[i % len(COUNTRIES)]},
            "city": {"names": {"en": f"Town {i}"}},
            "location": {"latitude": i / 8, "longitude": -i / 8,
                         "time_zone": "Etc/UTC"},
        })
    writer.to_db_file(path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: places.py FILE")
    main(sys.argv[1])
