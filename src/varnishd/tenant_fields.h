/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The fields of a tenant, without its name, in the order in which
 * sandpaper.show prints them.
 *
 * From this table come struct spd_fields, the text and JSON of the CLI, and the
 * counters SANDPAPER_TENANT.*.  A line has:
 *  - kind: its C type is in spd_fields.h, how it is printed in cli_row.c
 *  - name: the member of struct spd_fields
 *  - key: its name for users, whose last part is the unit, such as _s
 *  - where else it is: SUM: VSC_sandpaper_tenant.vsc has a counter of the
 *    member's name, and sandpaper.list the sum over all tenants.  VSC: it has a
 *    gauge.  NO: nowhere.  The value of a SUM or VSC must not use `first` or
 *    `now`
 *  - value: t is the tenant, st what the releaser says of it, first its first
 *    waiting request or NULL, now the time, and parts as for spd_fields()
 */

TENANT_FIELD(NAME, group, "group", NO, name_of(t->group != NULL ?
    spd_name(t->group) : ""))
TENANT_FIELD(PROOF, new_seconds, "new_seconds", NO, NEW_Is(&t->newhost) ?
    (int)spd_new_seconds(t, now) : -1)
TENANT_FIELD(REAL, weight, "weight", NO, (double)st.weight / REL_WEIGHT_ONE)
TENANT_FIELD(PART, share, "share", NO, REL_Share(spd_rel, t->rel))
TENANT_FIELD(PART, reservation, "reservation", NO, (double)st.reservation /
    REL_PART_ONE)
TENANT_FIELD(PART, limit, "limit", NO, st.limit > 0 ? (double)st.limit /
    REL_PART_ONE : 1)
TENANT_FIELD(NUMBER, queue_limit, "queue_limit", NO, spd_waiting_limit(t))
TENANT_FIELD(TIME, queue_timeout_ns, "queue_timeout_s", NO,
    spd_queue_timeout(t))
TENANT_FIELD(NUMBER, waiting, "waiting", VSC, st.waiting)
TENANT_FIELD(NUMBER, running, "running", VSC, st.running)
TENANT_FIELD(WORD, dominant, "dominant", NO, resources[st.dominant])
TENANT_FIELD(COST, estimate_cpu_ns, "estimate_cpu_s", VSC, st.estimate[REL_CPU])
TENANT_FIELD(COST, estimate_net_ns, "estimate_net_s", VSC, st.estimate[REL_NET])
TENANT_FIELD(REAL, price_cpu, "price_cpu", NO, spd_price(t, REL_CPU, now))
TENANT_FIELD(REAL, price_net, "price_net", NO, spd_price(t, REL_NET, now))
TENANT_FIELD(NUMBER, completed, "completed", SUM, t->completed)
TENANT_FIELD(NUMBER, refused, "refused", SUM, t->refused_full +
    t->refused_target + t->refused_late + t->refused_fetch)
TENANT_FIELD(NUMBER, cancelled, "cancelled", SUM, t->cancelled)
TENANT_FIELD(NUMBER, shed, "shed", SUM, t->shed)
TENANT_FIELD(TIME, cpu_ns, "cpu_s", SUM, t->cpu_ns)
TENANT_FIELD(TIME, net_ns, "net_s", SUM, t->net_ns)
TENANT_FIELD(NUMBER, bytes, "bytes", SUM, t->bytes)
TENANT_FIELD(NUMBER, hits, "hits", SUM, t->hits)
TENANT_FIELD(NUMBER, hit_bytes, "hit_bytes", SUM, t->hit_bytes)
TENANT_FIELD(NUMBER, misses, "misses", SUM, t->misses)
TENANT_FIELD(NUMBER, miss_bytes, "miss_bytes", SUM, t->miss_bytes)
TENANT_FIELD(NUMBER, cached_bytes, "cached_bytes", VSC,
    OWN_Bytes(spd_owners(), t->owner))
TENANT_FIELD(NUMBER, transit_bytes, "transit_bytes", VSC,
    OWN_InTransit(spd_owners(), t->owner))
TENANT_FIELD(TIME, wait_ns, "wait_s", SUM, t->wait_ns)
TENANT_FIELD(WAITS, waits, "waits", NO, waits_of(t))
TENANT_FIELD(LAST, last, "last", NO, last_of(t, parts))
TENANT_FIELD(TIME, oldest_wait_ns, "oldest_wait_s", NO, spd_oldest(first, now))
TENANT_FIELD(COST, account_ns, "account_s", NO, st.account)
TENANT_FIELD(WORD, waits_for, "waits_for", NO, spd_waits_for(first,
    st.dominant, now))
TENANT_FIELD(TIME, target_ns, "target_s", NO, spd_target(t))
TENANT_FIELD(TIME, fetch_target_ns, "fetch_target_s", NO, t->fetch_target)
TENANT_FIELD(PART, pressure, "pressure", NO, OVL_Pressure(&t->pressure, now))
TENANT_FIELD(PART, quality, "quality", NO, OVL_Quality(&t->pressure, now))
TENANT_FIELD(WORD, overload, "overload", NO, spd_overload_word(t, now))
TENANT_FIELD(NUMBER, refused_full, "refused_full", SUM, t->refused_full)
TENANT_FIELD(NUMBER, refused_target, "refused_target", SUM, t->refused_target)
TENANT_FIELD(NUMBER, refused_late, "refused_late", SUM, t->refused_late)
TENANT_FIELD(NUMBER, refused_fetch, "refused_fetch", SUM, t->refused_fetch)
TENANT_FIELD(NUMBER, would_refuse, "would_refuse", SUM, t->would_refuse_full +
    t->would_refuse_target + t->would_refuse_late + t->would_refuse_fetch)
TENANT_FIELD(NUMBER, would_refuse_full, "would_refuse_full", SUM,
    t->would_refuse_full)
TENANT_FIELD(NUMBER, would_refuse_target, "would_refuse_target", SUM,
    t->would_refuse_target)
TENANT_FIELD(NUMBER, would_refuse_late, "would_refuse_late", SUM,
    t->would_refuse_late)
TENANT_FIELD(NUMBER, would_refuse_fetch, "would_refuse_fetch", SUM,
    t->would_refuse_fetch)
TENANT_FIELD(NUMBER, would_shed, "would_shed", SUM, t->would_shed)
TENANT_FIELD(FLAG, mapped, "mapped", NO, t->map != NULL &&
    TEN_OfData(t)->pinned)
TENANT_FIELD(MEMBERS, members, "members", NO, REL_Members(t->rel))
TENANT_FIELD(WORD, by_hand, "by_hand", NO, t->by_hand ? "yes" : NULL)
#undef TENANT_FIELD
