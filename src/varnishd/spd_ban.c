/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The tenant that made a ban pays for the tests of it.
 *
 * A ban is cheap to make.  Its cost comes later: each lookup of an older object
 * tests it, also for other tenants, and so does the ban lurker.  A test is
 * measured by the clock.  The thread keeps a sum for each tenant, and charges
 * the sums when its request is done, or when the lurker is done with a list of
 * objects: no lock is taken while it tests.  A request does not pay for what
 * others pay.  Bans without a tenant (CLI) are not measured.
 *
 * The sums are the thread's.  A charge is under spd_lock().
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

/* ns, at most charged for a test: other threads may have interrupted it */
#define TEST_MAX	100000

/* A ninth tenant is not charged: the request pays, or of the lurker nobody */
#define SUMS		8

static __thread struct {
	struct spd_ban	of;
	int64_t		ns;
} sums[SUMS];
static __thread unsigned nsums;

/* Note in a new ban who pays for its tests: who pays for this thread. */
void
SPD_BanMade(struct spd_ban *b)
{
	const struct rel_node *n;

	b->tenant = NULL;
	if (spd_me.magic != SPD_WORKER_MAGIC)
		return;
	n = spd_me.node;
	if (n != NULL) {
		/* A tenant keeps its record while a request of it runs */
		b->tenant = spd_tenant_rel(n->tenant);
		b->generation = TEN_OfData(b->tenant)->generation;
	} else {
		b->tenant = spd_me.payer;
		b->generation = spd_me.payer_generation;
	}
}

/* A test of this ban begins.  Return the time, ns, or 0 if it is not measured: the
 * ban has no tenant, or the tenant's own request tests it, or the mode is off. */
int64_t
SPD_BanTest(const struct spd_ban *b)
{
	const struct rel_node *n;

	if (b->tenant == NULL || spd_set.mode == SPD_OFF)
		return (0);
	if (spd_me.magic != SPD_WORKER_MAGIC)
		return (METER_Now());		/* the ban lurker */
	n = spd_me.node;
	if (n == NULL || (spd_tenant_rel(n->tenant) == b->tenant &&
	    TEN_OfData(b->tenant)->generation == b->generation))
		return (0);
	return (METER_Now());
}

/* Charge the sums to their tenants.  If one has ended, no tenant pays its sum.
 * Caller holds spd_lock(). */
void
spd_ban_pay(int64_t now)
{
	struct spd_tenant *t;
	unsigned u;

	SPD_LOCKED();
	for (u = 0; u < nsums; u++) {
		t = sums[u].of.tenant;
		spd_charge_apart(TEN_OfData(t)->generation ==
		    sums[u].of.generation ? t : NULL, sums[u].ns, now);
	}
	nsums = 0;
}

/* The ban lurker is done with a list of objects. */
void
SPD_BanPay(void)
{

	if (nsums == 0)
		return;
	spd_lock();
	spd_ban_pay(METER_Now());
	spd_unlock();
}

/* The test that began then is done. */
void
SPD_BanTested(const struct spd_ban *b, int64_t began)
{
	unsigned u;
	int64_t ns;

	if (began == 0)
		return;
	ns = vmin_t(int64_t, METER_Now() - began, TEST_MAX);
	for (u = 0; u < nsums; u++)
		if (sums[u].of.tenant == b->tenant &&
		    sums[u].of.generation == b->generation)
			break;
	if (u == SUMS)
		return;
	if (u == nsums) {
		nsums++;
		sums[u].of = *b;
		sums[u].ns = 0;
	}
	sums[u].ns += ns;
	if (spd_me.magic == SPD_WORKER_MAGIC)
		spd_me.banned += ns;
}
