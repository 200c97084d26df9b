/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * New Hosts in varnishd (tenants/newhosts.h says which Host is new).
 *
 * With sandpaper_new_hosts=group, a Host that no map names is a member of the
 * group (new) until it is proven.  The tenant (other) is a member, too, since
 * it has the Hosts that found no room in the table of tenants.  A limit of
 * one tenant is a limit of all members of (new) together.  A member with
 * evidence has 32 times the weight of one without: clients that invent Hosts
 * and get errors do not keep a real site from being proven.
 *
 * All of it is under the lock, but for the log.
 */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "spd.h"

#define SPD_NEWS	16		/* Hosts that change at a time */
#define SPD_NEW_EVIDENT	(32U * REL_WEIGHT_ONE)	/* weight in (new) */

static struct newhosts newhosts;
static int started;			/* there was a new Host */
static int64_t ahead;			/* ns, spd_new_age() */

static void
spd_new_join(struct spd_tenant *t, struct spd_tenant *group)
{

	SPD_LOCKED();
	t->group = group;
	REL_SetGroup(spd.rel, t->rel, group == NULL ? NULL : group->rel,
	    METER_Now());
}

/* Is the name a Host's?  Names in parentheses are ours, one of them for
 * requests without a Host */
static int
spd_new_is_host(const struct spd_tenant *t)
{
	const char *name = spd_name(t);

	return (*name != '(' || !strcmp(name, SPD_NOHOST));
}

/* No map names it from now on, or it is seen for the first time */
void
spd_new_begin(struct spd_tenant *t)
{

	SPD_LOCKED();
	if (spd.new_group == NULL || !spd_new_is_host(t) ||
	    t->newhost.state != NEW_NONE)
		return;
	if (!started)
		NEW_Start(&newhosts, METER_Now() + ahead);
	started = 1;
	NEW_Begin(&newhosts, &t->newhost, METER_Now() + ahead);
	spd_new_join(t, spd.new_group);
	spd.vsc->new_hosts = newhosts.nnew;
}

/* It goes, or the map names it; its group is the caller's to change */
void
spd_new_end(struct spd_tenant *t)
{

	SPD_LOCKED();
	NEW_End(&newhosts, &t->newhost);
	spd.vsc->new_hosts = newhosts.nnew;
}

void
spd_new_answer(struct spd_tenant *t, int good, int64_t now)
{

	SPD_LOCKED();
	if (t->newhost.state == NEW_NONE)
		return;
	NEW_Answer(&newhosts, &t->newhost, good, now + ahead);
	REL_SetWeight(spd.rel, t->rel, t->newhost.state == NEW_EVIDENT ?
	    SPD_NEW_EVIDENT : REL_WEIGHT_ONE);
}

unsigned
spd_new_seconds(const struct spd_tenant *t, int64_t now)
{

	SPD_LOCKED();
	return (NEW_Seconds(&t->newhost, now + ahead));
}

/* For tests: the clock of new Hosts alone */
void
spd_new_age(int64_t ns)
{

	SPD_LOCKED();
	ahead += ns;
}

/*
 * Must its record stay, however many Hosts are invented?  If it is proven, or
 * has evidence, unless many have: those would fill the table.
 */
int
spd_new_stays(const struct spd_tenant *t)
{

	SPD_LOCKED();
	return (t->newhost.state == NEW_PROVEN ||
	    (t->newhost.state == NEW_EVIDENT && !NEW_Crowded(&newhosts)));
}

/* Whose limits count for the tenant: its own, or those of (new) */
struct spd_tenant *
spd_new_liable(struct spd_tenant *t)
{

	SPD_LOCKED();
	return (t->group != NULL && t->group == spd.new_group ?
	    t->group : t);
}

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
 * The parameters.  When the rule changes, it changes for all: Hosts that are
 * tenants are new, or new Hosts are tenants.
 */

static void
spd_new_rule(struct spd_tenant *group)
{
	struct ten_record *r;
	struct spd_tenant *t;
	unsigned u;

	SPD_LOCKED();
	spd.new_group = group;
	for (u = 0; (r = TEN_At(spd.tenants, u)) != NULL; u++) {
		t = TEN_Host(r);
		if (r == TEN_Other(spd.tenants)) {
			spd_new_join(t, group);
		} else if (!spd_new_is_host(t) || r->pinned) {
			continue;
		} else if (group != NULL) {
			spd_new_begin(t);
		} else {
			spd_new_end(t);
			REL_SetWeight(spd.rel, t->rel, REL_WEIGHT_ONE);
			spd_new_join(t, NULL);
		}
	}
}

void
spd_new_params(void)
{
	static struct spd_tenant *group;
	struct ten_record *r;
	int wanted = cache_param->sandpaper_new_hosts == SPD_NEW_GROUP;

	SPD_LOCKED();
	if (group == NULL && wanted) {
		NEW_Init(&newhosts, METER_Now() + ahead);
		r = TEN_Reserve(spd.tenants, SPD_NEW);
		if (r == NULL)
			return;			/* no memory: try again */
		group = TEN_Host(r);
	}
	if (wanted)
		REL_SetWeight(spd.rel, group->rel, (uint32_t)vmax(1.,
		    cache_param->sandpaper_new_weight * REL_WEIGHT_ONE + .5));
	if (wanted != (spd.new_group != NULL))
		spd_new_rule(wanted ? group : NULL);
}

/*--------------------------------------------------------------------
 * The keeper's part: who is proven now, and who is new again
 */

struct spd_news {
	char			host[TEN_NAME_MAX + 1];
	int			proven;
};

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
		spd.vsc->new_proven++;
	else
		spd.vsc->new_again++;
	REL_SetWeight(spd.rel, t->rel, REL_WEIGHT_ONE);
	spd_new_join(t, news->proven ? NULL : spd.new_group);
}

void
spd_new_keep(int64_t now)
{
	struct spd_news news[SPD_NEWS];
	struct newhost *h;
	unsigned n, u;

	do {
		n = 0;
		spd_lock();
		while (n < SPD_NEWS && spd.new_group != NULL &&
		    (h = NEW_Next(&newhosts, now + ahead)) != NULL)
			spd_new_change(h, &news[n++]);
		spd.vsc->new_hosts = newhosts.nnew;
		spd_unlock();
		for (u = 0; u < n; u++)
			VSL(SLT_Debug, NO_VXID, news[u].proven ?
			    "Sandpaper: Host %s is proven: it is a tenant now"
			    : "Sandpaper: Host %s was idle: it is new again",
			    news[u].host);
	} while (n == SPD_NEWS);
}
