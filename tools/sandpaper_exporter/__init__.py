# SPDX-License-Identifier: BSD-2-Clause
"""What sandpaper-exporter is made of.

    poll.py     asks varnishd once a second, and hands each answer to sinks
    totals.py   from answer to answer, by how much each tenant's counters grew
    fields.py   the table: which counter and gauge comes from which key
    metrics.py  a sink: /metrics, for Prometheus
    usage.py    a sink: CSV files by tenant and hour
    status.py   a sink: the status page, page.html, and its figures
    web.py      the HTTP server: a table of paths
    main.py     the options
"""
