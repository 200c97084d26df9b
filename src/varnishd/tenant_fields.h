/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The fields of a tenant, without its name, in the order in which
 * sandpaper.show prints them.
 *
 * From this table come struct spd_fields, the text and JSON of the CLI, and the
 * counters SANDPAPER_TENANT.*.  A line has:
 *  - kind: its C type is in spd_fields.h, how it is printed in cli_show.c
 *  - name: the member of struct spd_fields
 *  - key: in JSON
 *  - label: in text
 *  - VSC if VSC_sandpaper_tenant.vsc has a counter or gauge of this name, else
 *    NO.  The value of such a field must not use `first` or `now`
 *  - value: t is the tenant, st what the releaser says of it, first its first
 *    waiting request or NULL, and now the time
 */

TENANT_FIELD(NAME, group, "group", "group", NO,
    name_of(t->group != NULL ? spd_name(t->group) : ""))
TENANT_FIELD(PROOF, new_seconds, "new_seconds", "good answers", NO,
    NEW_Is(&t->newhost) ? (int)spd_new_seconds(t, now) : -1)
TENANT_FIELD(REAL, weight, "weight", "weight", NO,
    (double)st.weight / REL_WEIGHT_ONE)
TENANT_FIELD(PART, share, "share", "share", NO, REL_Share(spd_rel, t->rel))
TENANT_FIELD(PART, reservation, "reservation", "reservation", NO,
    (double)st.reservation / REL_PART_ONE)
TENANT_FIELD(PART, limit, "limit", "limit", NO,
    st.limit > 0 ? (double)st.limit / REL_PART_ONE : 1)
TENANT_FIELD(NUMBER, queue_limit, "queue_limit", "queue limit", NO,
    spd_waiting_limit(t))
TENANT_FIELD(TIME, queue_timeout_ns, "queue_timeout_s", "queue timeout, s", NO,
    spd_queue_timeout(t))
TENANT_FIELD(NUMBER, waiting, "waiting", "waiting", VSC, st.waiting)
TENANT_FIELD(NUMBER, running, "running", "running", VSC, st.running)
TENANT_FIELD(WORD, dominant, "dominant", "dominant resource", NO,
    resources[st.dominant])
TENANT_FIELD(COST, estimate_cpu_ns, "estimate_cpu_s", "estimated cpu, us",
    VSC, st.estimate[REL_CPU])
TENANT_FIELD(COST, estimate_net_ns, "estimate_net_s", "estimated net, us",
    VSC, st.estimate[REL_NET])
TENANT_FIELD(REAL, price_cpu, "price_cpu", "price of cpu", NO,
    spd_price(t, REL_CPU, now))
TENANT_FIELD(REAL, price_net, "price_net", "price of net", NO,
    spd_price(t, REL_NET, now))
TENANT_FIELD(NUMBER, requests, "requests", "requests", VSC, t->requests)
TENANT_FIELD(NUMBER, refused, "refused", "refused", VSC,
    t->refused_full + t->refused_target + t->refused_late + t->refused_fetch)
TENANT_FIELD(NUMBER, gone, "gone", "gone", VSC, t->gone)
TENANT_FIELD(NUMBER, shed, "shed", "shed", VSC, t->shed)
TENANT_FIELD(TIME, cpu_ns, "cpu_s", "cpu, s", VSC, t->cpu_ns)
TENANT_FIELD(NUMBER, bytes, "bytes", "bytes", VSC, t->bytes)
TENANT_FIELD(NUMBER, hits, "hits", "hits", VSC, t->hits)
TENANT_FIELD(NUMBER, hit_bytes, "hit_bytes", "bytes of hits", VSC, t->hit_bytes)
TENANT_FIELD(NUMBER, misses, "misses", "misses", VSC, t->misses)
TENANT_FIELD(NUMBER, miss_bytes, "miss_bytes", "bytes of misses", VSC,
    t->miss_bytes)
TENANT_FIELD(NUMBER, cached_bytes, "cached_bytes", "bytes in the cache", VSC,
    OWN_Bytes(spd_owners(), t->owner))
TENANT_FIELD(NUMBER, transit_bytes, "transit_bytes", "bytes in transit", VSC,
    OWN_InTransit(spd_owners(), t->owner))
TENANT_FIELD(TIME, wait_ns, "waited_s", "waited, s", VSC, t->wait_ns)
TENANT_FIELD(TIME, oldest_ns, "oldest_s", "oldest wait, s", NO,
    spd_oldest(first, now))
TENANT_FIELD(COST, account_ns, "account_s", "account, us", NO, st.account)
TENANT_FIELD(WORD, waits_for, "waits_for", "waits for", NO,
    spd_waits_for(first, st.dominant, now))
TENANT_FIELD(TIME, target_ns, "target_s", "target, s", NO, spd_target(t))
TENANT_FIELD(TIME, fetch_target_ns, "fetch_target_s", "fetch target, s", NO,
    t->fetch_target)
TENANT_FIELD(PART, pressure, "pressure", "pressure", NO,
    OVL_Pressure(&t->pressure, now))
TENANT_FIELD(PART, quality, "quality", "quality", NO,
    OVL_Quality(&t->pressure, now))
TENANT_FIELD(WORD, overload, "overload", "overload", NO,
    spd_overload_word(t, now))
TENANT_FIELD(NUMBER, refused_full, "refused_full", "refused, queue full", VSC,
    t->refused_full)
TENANT_FIELD(NUMBER, refused_target, "refused_target", "refused, target", VSC,
    t->refused_target)
TENANT_FIELD(NUMBER, refused_late, "refused_late", "refused, late", VSC,
    t->refused_late)
TENANT_FIELD(NUMBER, refused_fetch, "refused_fetch", "refused, fetches", VSC,
    t->refused_fetch)
TENANT_FIELD(NUMBER, would_refuse, "would_refuse", "would refuse", VSC,
    t->would_refuse_full + t->would_refuse_target + t->would_refuse_late +
    t->would_refuse_fetch)
TENANT_FIELD(NUMBER, would_refuse_full, "would_refuse_full",
    "would, queue full", VSC, t->would_refuse_full)
TENANT_FIELD(NUMBER, would_refuse_target, "would_refuse_target",
    "would, target", VSC, t->would_refuse_target)
TENANT_FIELD(NUMBER, would_refuse_late, "would_refuse_late", "would, late",
    VSC, t->would_refuse_late)
TENANT_FIELD(NUMBER, would_refuse_fetch, "would_refuse_fetch",
    "would, fetches", VSC, t->would_refuse_fetch)
TENANT_FIELD(NUMBER, would_shed, "would_shed", "would shed", VSC,
    t->would_shed)
TENANT_FIELD(WORD, by_hand, "by_hand", "set by hand", NO,
    t->by_hand ? "yes" : NULL)
#undef TENANT_FIELD
