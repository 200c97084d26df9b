/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * New Hosts in varnishd (tenants/newhosts.h says which Host is new).
 *
 * With sandpaper_new_hosts=group, a Host that no map names is a member of the
 * group (new) until it is proven.  The tenant (other) is a member, too: it has
 * the Hosts that found no room in the table of tenants.  A limit of one tenant
 * is a limit of all members of (new) together.  A member with evidence has 32
 * times the weight of one without.  So clients that invent Hosts and get errors
 * do not keep a real site from being proven.
 *
 * All state here is under spd_lock().  Log records are written without it.
 */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "spd.h"

#define SPD_NEWS	16		/* Hosts in one hold of the lock */
#define SPD_NEW_EVIDENT	(32U * REL_WEIGHT_ONE)	/* weight in (new) */

static struct newhosts newhosts;
static int started;			/* a new Host has come */
static struct spd_tenant *new_group;	/* (new); NULL: new Hosts are tenants */
static int64_t ahead;			/* ns, see spd_new_age() */

/* Move a tenant into a group, or out (NULL).  Caller holds spd_lock(). */
static void
spd_new_join(struct spd_tenant *t, struct spd_tenant *group)
{

	SPD_LOCKED();
	spd_dry_forget(t);
	t->group = group;
	REL_SetGroup(spd_rel, t->rel, group == NULL ? NULL : group->rel,
	    METER_Now());
}

/*
 * Return 1 if the tenant can be a new Host.  Names in parentheses are
 * Sandpaper's own.  (none) counts as a Host: its requests have no valid Host.
 */
static int
spd_new_is_host(const struct spd_tenant *t)
{
	const char *name = spd_name(t);

	return (*name != '(' || !strcmp(name, TEN_NONE));
}

/*
 * Make a tenant a new Host, if new Hosts are a group.  Call it for a tenant
 * that is seen for the first time, or that no map names any longer.  Caller
 * holds spd_lock().
 */
void
spd_new_begin(struct spd_tenant *t)
{

	SPD_LOCKED();
	if (new_group == NULL || !spd_new_is_host(t) ||
	    t->newhost.state != NEW_NONE)
		return;
	if (!started)
		NEW_Start(&newhosts, METER_Now() + ahead);
	started = 1;
	NEW_Begin(&newhosts, &t->newhost, METER_Now() + ahead);
	spd_new_join(t, new_group);
	spd_vsc->new_hosts = newhosts.nnew;
}

/*
 * End the state of a new or proven Host: its record goes, or the map names it.
 * The caller changes the group.  Caller holds spd_lock().
 */
void
spd_new_end(struct spd_tenant *t)
{

	SPD_LOCKED();
	NEW_End(&newhosts, &t->newhost);
	spd_vsc->new_hosts = newhosts.nnew;
}

/*
 * Note an answer to a request of the tenant.  good: its status is from 200 to
 * 399, which is evidence.  Caller holds spd_lock().
 */
void
spd_new_answer(struct spd_tenant *t, int good, int64_t now)
{

	SPD_LOCKED();
	if (t->newhost.state == NEW_NONE)
		return;
	NEW_Answer(&newhosts, &t->newhost, good, now + ahead);
	REL_SetWeight(spd_rel, t->rel, t->newhost.state == NEW_EVIDENT ?
	    SPD_NEW_EVIDENT : REL_WEIGHT_ONE);
}

/*
 * Return in how many of the last NEW_WINDOW seconds a new Host had evidence.
 * Caller holds spd_lock().
 */
unsigned
spd_new_seconds(const struct spd_tenant *t, int64_t now)
{

	SPD_LOCKED();
	return (NEW_Seconds(&t->newhost, now + ahead));
}

/* Advance the clock of new Hosts, for tests.  Caller holds spd_lock(). */
void
spd_new_age(int64_t ns)
{

	SPD_LOCKED();
	ahead += ns;
}

/*
 * Return 1 if the tenant's record must stay, however many Hosts clients
 * invent.  A proven Host stays.  A Host with evidence stays, unless many
 * Hosts have evidence: these would fill the table.  Caller holds spd_lock().
 */
int
spd_new_stays(const struct spd_tenant *t)
{

	SPD_LOCKED();
	return (t->newhost.state == NEW_PROVEN ||
	    (t->newhost.state == NEW_EVIDENT && !NEW_Crowded(&newhosts)));
}

/*
 * Return the tenant that must keep the limits: (new) for a member of (new),
 * else the tenant itself.  Caller holds spd_lock().
 */
struct spd_tenant *
spd_new_liable(struct spd_tenant *t)
{

	SPD_LOCKED();
	return (t->group != NULL && t->group == new_group ?
	    t->group : t);
}

/* Write the numbers of new and proven Hosts.  Caller holds spd_lock(). */
void
spd_new_stat(struct spd_new_stat *st)
{

	SPD_LOCKED();
	st->hosts = newhosts.nnew;
	st->evident = newhosts.nevident;
	st->proven = newhosts.nproven;
	st->crowded = NEW_Crowded(&newhosts);
}

/*--------------------------------------------------------------------
 * The parameters.  When sandpaper_new_hosts changes, it changes for all Hosts
 * that no map names.  They become new Hosts, or tenants of their own.
 */

/*
 * Apply the rule to each record: new Hosts are members of the group.  NULL:
 * there are no new Hosts.  Caller holds spd_lock().
 */
static void
spd_new_rule(struct spd_tenant *group)
{
	struct ten_record *r;
	struct spd_tenant *t;
	unsigned u;

	SPD_LOCKED();
	new_group = group;
	for (u = 0; (r = TEN_At(spd_tenants, u)) != NULL; u++) {
		t = TEN_Data(r);
		if (r == TEN_Other(spd_tenants)) {
			spd_new_join(t, group);
		} else if (!spd_new_is_host(t) || r->pinned ||
		    t->map != NULL) {
			continue;
		} else if (group != NULL) {
			spd_new_begin(t);
		} else {
			spd_new_end(t);
			REL_SetWeight(spd_rel, t->rel, REL_WEIGHT_ONE);
			spd_new_join(t, NULL);
		}
	}
}

/* Use the parameters of new Hosts.  Caller holds spd_lock(). */
void
spd_new_params(void)
{
	static struct spd_tenant *group;
	struct ten_record *r;
	int wanted = cache_param->sandpaper_new_hosts == SPD_NEW_GROUP;

	SPD_LOCKED();
	if (group == NULL && wanted) {
		NEW_Init(&newhosts, METER_Now() + ahead);
		r = TEN_Reserve(spd_tenants, TEN_NEW);
		if (r == NULL)
			return;			/* no memory: try later */
		group = TEN_Data(r);
	}
	if (wanted)
		REL_SetWeight(spd_rel, group->rel, (uint32_t)vmax(1.,
		    cache_param->sandpaper_new_weight * REL_WEIGHT_ONE + .5));
	if (wanted != (new_group != NULL))
		spd_new_rule(wanted ? group : NULL);
}

/*--------------------------------------------------------------------
 * The keeper's part: Hosts that are proven now, or new again
 */

struct spd_news {
	char			host[TEN_NAME_MAX + 1];
	int			proven;
};

/* Apply a Host's new state, and note it in *news.  Caller holds spd_lock(). */
static void
spd_new_change(struct newhost *h, struct spd_news *news)
{
	struct spd_tenant *t;

	SPD_LOCKED();
	t = (void *)((char *)h - offsetof(struct spd_tenant, newhost));
	CHECK_OBJ(t, SPD_TENANT_MAGIC);
	news->proven = !NEW_Is(h);
	bprintf(news->host, "%s", spd_name(t));
	if (news->proven)
		spd_vsc->new_proven++;
	else
		spd_vsc->new_again++;
	REL_SetWeight(spd_rel, t->rel, REL_WEIGHT_ONE);
	spd_new_join(t, news->proven ? NULL : new_group);
}

/* Let Hosts be proven, or new again.  Takes spd_lock(); now: ns. */
void
spd_new_keep(int64_t now)
{
	struct spd_news news[SPD_NEWS];
	struct newhost *h;
	unsigned n, u;

	do {
		n = 0;
		spd_lock();
		while (n < SPD_NEWS && new_group != NULL &&
		    (h = NEW_Next(&newhosts, now + ahead)) != NULL)
			spd_new_change(h, &news[n++]);
		spd_vsc->new_hosts = newhosts.nnew;
		spd_unlock();
		for (u = 0; u < n; u++)
			VSL(SLT_Debug, NO_VXID, news[u].proven ?
			    "Sandpaper: Host %s is proven: it is a tenant now"
			    : "Sandpaper: Host %s was idle: it is new again",
			    news[u].host);
	} while (n == SPD_NEWS);
}
