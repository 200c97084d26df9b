# SPDX-License-Identifier: BSD-2-Clause
"""The metrics: a line for each, and the key of sandpaper.list that it is from.

doc/metrics.md explains each of them; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """A metric that has the label `tenant`, or none."""

    key: str  # in JSON
    name: str  # without the prefix sandpaper_ or sandpaper_tenant_
    text: str
    label: str = ""  # one label more, as it is written
    scale: float = 1  # of the value in JSON


CAUSES = ("full", "target", "late", "fetch")  # of refusals
REFUSED = tuple(f"refused_{cause}" for cause in CAUSES)

# Of each tenant.  Lines of one name stand together.
COUNTERS = (
    Field("completed", "requests_total", "Requests that ended."),
    *(Field(key, "refused_total", "Requests that a limit refused.",
            f'cause="{cause}"')
      for key, cause in zip(REFUSED, CAUSES, strict=True)),
    Field("cancelled", "cancelled_total",
          "Requests that ended before they ran."),
    Field("shed", "shed_total", "Slow readers that were cut off."),
    Field("cpu_s", "cpu_seconds_total", "CPU time of all cores."),
    Field("bytes", "sent_bytes_total", "Bytes that were sent to clients."),
    Field("wait_s", "waited_seconds_total", "The sum of all waits."),
    Field("hits", "cache_lookups_total", "Lookups in the cache.",
          'result="hit"'),
    Field("misses", "cache_lookups_total", "", 'result="miss"'),
    Field("hit_bytes", "cache_bytes_total", "Bytes of these objects.",
          'result="hit"'),
    Field("miss_bytes", "cache_bytes_total", "", 'result="miss"'),
)

# Of the tenants that do most now.
GAUGES = (
    Field("waiting", "waiting_requests", "Requests in the queue."),
    Field("running", "running_requests",
          "Requests that are released and not done."),
    Field("oldest_wait_s", "oldest_wait_seconds",
          "How long the oldest waiting request waits."),
    Field("cached_bytes", "cached_bytes", "Bytes of its objects in the cache."),
    Field("weight", "weight", "Its weight."),
    Field("share", "share", "Its share of the machine, from 0 to 1."),
)

# A histogram, of the largest tenants: counts that do not overlap.
WAITS = "waits"
HISTOGRAM = "wait_seconds"
HISTOGRAM_TEXT = "How long requests waited in the queue."

# Of varnishd as a whole.
WHOLE = (
    Field("started", "worker_start_time_seconds",
          "When the worker process began, in Unix time."),
    Field("slots", "slots", "Slots."),
    Field("slots_open", "open_slots", "Slots that are open."),
    Field("running", "used_slots", "Slots in use."),
    Field("lent", "lent_slots", "Slots that workers have lent."),
    Field("waiting", "waiting_requests", "Requests in all queues."),
    Field("tenants", "tenants", "Tenants that varnishd knows."),
    Field("tenants_overflow", "tenants_overflow_total",
          "Requests that had to use the tenant (other)."),
    Field("nic_rate_bps", "net_rate_bytes_per_second",
          "The rate of net; 0: not known.", scale=1 / 8),
    Field("nic_backlog_bytes", "net_backlog_bytes",
          "Bytes that are released and not sent yet."),
    Field("nic_closed_s", "net_closed_seconds_total",
          "For how long requests waited for net."),
)

MODES = ("on", "observe", "off")

# What is asked of each tenant
ROW_KEYS = ("mapped", "group", *(f.key for f in COUNTERS),
            *(f.key for f in GAUGES), WAITS)
