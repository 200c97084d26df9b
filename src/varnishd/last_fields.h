/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What sandpaper.list and sandpaper.show say of a tenant's last 1, 10 or 60
 * seconds, in the order in which they print it.
 *
 * A line has the name, whose last part is the unit, and the value.  PER_S() is the
 * growth of a counter (tenants/recent.h) per second.  PART() is the growth of one
 * in ns, divided by the ns that passed.  A part of cpu is one of all cores that
 * Sandpaper uses.
 */

LAST_FIELD(completed_per_s, PER_S(REC_COMPLETED))
LAST_FIELD(refused_per_s, PER_S(REC_REFUSED_FULL) + PER_S(REC_REFUSED_TARGET) +
    PER_S(REC_REFUSED_LATE) + PER_S(REC_REFUSED_FETCH))
LAST_FIELD(refused_full_per_s, PER_S(REC_REFUSED_FULL))
LAST_FIELD(refused_target_per_s, PER_S(REC_REFUSED_TARGET))
LAST_FIELD(refused_late_per_s, PER_S(REC_REFUSED_LATE))
LAST_FIELD(refused_fetch_per_s, PER_S(REC_REFUSED_FETCH))
LAST_FIELD(bytes_per_s, PER_S(REC_BYTES))
LAST_FIELD(cpu_part, PART(REC_CPU) / spd_set.cores)
LAST_FIELD(net_part, PART(REC_NET))
LAST_FIELD(used_part, fmax(PART(REC_CPU) / spd_set.cores, PART(REC_NET)))
LAST_FIELD(wait_p50_s, WAIT_Quantile(grown + REC_WAITS, .5))
LAST_FIELD(wait_p99_s, WAIT_Quantile(grown + REC_WAITS, .99))
#undef LAST_FIELD
