/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Write log records without printf.
 *
 * A request logs ten values with six decimals.  printf("%.6f") takes 1 us for
 * each.  So these functions write two digits at a time, from a table.  They
 * keep no state and need no lock: the caller owns the request and its log.
 */

#include "config.h"

#include <string.h>

#include "spd.h"

static const char digits[] =
    "00010203040506070809" "10111213141516171819"
    "20212223242526272829" "30313233343536373839"
    "40414243444546474849" "50515253545556575859"
    "60616263646566676869" "70717273747576777879"
    "80818283848586878889" "90919293949596979899";

/* Write the last n digits of u, and return the end.  n is even. */
static char *
spd_digits(char *p, uint64_t u, unsigned n)
{
	char *q;

	for (q = p + n; q > p; u /= 100) {
		q -= 2;
		memcpy(q, digits + u % 100 * 2, 2);
	}
	return (p + n);
}

/* Write u in decimal, and return the end */
static char *
spd_uint(char *p, uint64_t u)
{
	uint64_t pairs = u;
	unsigned n = 0;

	while (pairs >= 100) {
		pairs /= 100;
		n += 2;
	}
	if (pairs >= 10)
		return (spd_digits(p, u, n + 2));
	*p++ = (char)('0' + pairs);
	return (spd_digits(p, u, n));
}

/* Write d seconds with six decimals, and return the end.  d < 0 becomes 0. */
static char *
spd_sec(char *p, double d)
{
	uint64_t us = d > 0 ? (uint64_t)(d * 1e6 + .5) : 0;

	p = spd_uint(p, us / 1000000);
	*p++ = '.';
	return (spd_digits(p, us % 1000000, 6));
}

/* Log a Timestamp record, as VSLb_ts_req() does.  now: s. */
void
spd_timestamp(struct req *req, const char *event, vtim_real now)
{
	char b[96], *p;

	p = b + strlen(event);
	memcpy(b, event, (size_t)(p - b));
	*p++ = ':';
	*p++ = ' ';
	p = spd_sec(p, now);
	*p++ = ' ';
	p = spd_sec(p, now - req->t_first);
	*p++ = ' ';
	p = spd_sec(p, now - req->t_prev);
	*p = '\0';
	VSLbs(req->vsl, SLT_Timestamp, TOSTRAND(b));
	req->t_prev = now;
}

/*
 * Log what a request has cost.  v: ns: the wait, CPU time of all cores, time
 * of net, and the charge at its release, which is one of these two.  bytes: sent.
 * measured: 0 if the CPU time is estimated.
 */
void
spd_log(struct req *req, struct spd_tenant *t, const int64_t v[4],
    uint64_t bytes, int measured)
{
	char b[TEN_NAME_MAX + 160], *p;
	const char *name = spd_name(t);
	int i;

	p = b + strlen(name);
	memcpy(b, name, (size_t)(p - b));
	for (i = 0; i < 4; i++) {
		*p++ = ' ';
		p = spd_sec(p, (double)v[i] * 1e-9);
	}
	*p++ = ' ';
	p = spd_uint(p, bytes);
	*p++ = ' ';
	*p++ = measured ? 'm' : 'e';
	*p = '\0';
	VSLbs(req->vsl, SLT_Sandpaper, TOSTRAND(b));
}

/* Log the limit that a tenant has reached, or that overload control refuses */
void
spd_log_limit(struct vsl_log *vsl, const struct spd_verdict *e)
{

	if (e->age > 0) {
		VSLb(vsl, SLT_Error, "Sandpaper: overload: a request of tenant "
		    "%s was parsed %.3f s after it came, too late for its "
		    "target of %.6g s (see sandpaper_target)", e->tenant,
		    (double)e->age * 1e-9, (double)e->target * 1e-9);
		return;
	}
	if (e->target > 0) {
		VSLb(vsl, SLT_Error, "Sandpaper: overload: controller %s "
		    "refuses, since tenant %s has %u waiting requests and a "
		    "target of %.6g s (see sandpaper_target, "
		    "sandpaper_standing)", e->what, e->tenant, e->value,
		    (double)e->target * 1e-9);
		return;
	}
	VSLb(vsl, SLT_Error, "Sandpaper: limit reached: tenant %s has %u of at "
	    "most %u %s", e->tenant, e->value, e->limit, e->what);
}
