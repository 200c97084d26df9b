/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Set and show Sandpaper's parameters, in the manager process.  And print its
 * lines of `varnishd -V`, and what is missing at the start.
 *
 * The child gets numbers and fixed arrays, in shared memory.  A wrong value
 * changes nothing, and is answered with what is allowed.  A tweak function
 * with arg NULL or JSON_FMT shows the parameter.
 *
 * Only the manager's main thread calls these functions, so there is no lock.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include "mgt/mgt.h"
#include "common/heritage.h"
#include "mgt/mgt_param.h"
#include "vav.h"
#include "vsa.h"

#include "overload/overload.h"
#include "perfctr/meter.h"
#include "releaser/releaser.h"
#include "varnishd/spd_names.h"

/* Print the lines of `varnishd -V`. */
void
mgt_sandpaper_version(void)
{

	(void)fprintf(stderr, "security patches: %s\n", SPD_SECURITY_PATCHES);
	(void)fprintf(stderr, "closed by Sandpaper: %s\n",
	    SANDPAPER_FIXES[0] != '\0' ? SANDPAPER_FIXES : "none");
}

/* Return 1 if clients of this machine alone can reach the address. */
static int
local(const struct listen_sock *ls)
{
	const unsigned char *p;
	unsigned i;

	if (ls->uds)
		return (1);
	if (VSA_GetPtr(ls->addr, &p) == PF_INET)
		return (*p == IN_LOOPBACKNET);
	for (i = 0; i < 15 && p[i] == 0; i++)
		continue;
	return (i == 15 && p[i] == 1);
}

/* Ask for the rate of net if nothing can tell it: all clients come through
 * another program of this machine, such as one for TLS. */
void
mgt_sandpaper_start(void)
{
	const struct listen_sock *ls;

	if (mgt_param.sandpaper == SPD_OFF || mgt_param.sandpaper_nic_rate > 0)
		return;
	VTAILQ_FOREACH(ls, &heritage.socks, list)
		if (!local(ls))
			return;
	MGT_Complain(C_INFO, "Sandpaper: all addresses (-a) are on this "
	    "machine, so the rate of net is not known, and only cpu is shared. "
	    "Set -p sandpaper_nic_rate=RATE, such as 1G, to what the link to "
	    "the clients carries");
}

/* Show a value, as JSON if arg says so. */
static void
show(struct vsb *vsb, const char *arg, const char *val)
{

	if (arg == JSON_FMT)
		VSB_printf(vsb, "\"%s\"", val);
	else
		VSB_cat(vsb, val);
}

/* Set or show a parameter that is one of n names. */
static int
tweak_name(struct vsb *vsb, const struct parspec *par, const char *arg,
    const char * const *names, unsigned n)
{
	volatile unsigned *dest = par->priv;
	unsigned u;

	if (arg == NULL || arg == JSON_FMT) {
		show(vsb, arg, names[*dest]);
		return (0);
	}
	for (u = 0; u < n; u++) {
		if (!strcasecmp(arg, names[u])) {
			*dest = u;
			return (0);
		}
	}
	VSB_printf(vsb, "\"%s\" is not allowed: use ", arg);
	for (u = 0; u < n; u++)
		VSB_printf(vsb, "\"%s\"%s", names[u],
		    u + 2 < n ? ", " : u + 1 < n ? " or " : "\n");
	return (-1);
}

#define TWEAK_NAME(name, ...)						\
int v_matchproto_(tweak_t)						\
tweak_sandpaper_##name(struct vsb *vsb, const struct parspec *par,	\
    const char *arg)							\
{									\
	static const char * const names[] = { __VA_ARGS__ };		\
									\
	return (tweak_name(vsb, par, arg, names,			\
	    sizeof names / sizeof *names));				\
}

TWEAK_NAME(mode, SPD_MODE_NAMES)
TWEAK_NAME(switch, SPD_SWITCH_NAMES)
TWEAK_NAME(new_hosts, SPD_NEW_NAMES)
TWEAK_NAME(status, SPD_STATUS_NAMES)

/* Set or show a parameter that names a row of a table, by its number. */
static int
tweak_row(struct vsb *vsb, const struct parspec *par, const char *arg,
    const char *what, unsigned rows, int (*by_name)(const char *),
    const char *(*name)(unsigned), const char *(*summary)(unsigned))
{
	volatile unsigned *dest = par->priv;
	unsigned u;
	int i;

	if (arg == NULL || arg == JSON_FMT) {
		show(vsb, arg, name(*dest));
		return (0);
	}
	i = by_name(arg);
	if (i >= 0) {
		*dest = (unsigned)i;
		return (0);
	}
	VSB_printf(vsb, "\"%s\" is not a %s: use one of these\n", arg, what);
	for (u = 0; u < rows; u++)
		VSB_printf(vsb, "  %-12s %s\n", name(u), summary(u));
	return (-1);
}

int v_matchproto_(tweak_t)
tweak_sandpaper_policy(struct vsb *vsb, const struct parspec *par,
    const char *arg)
{

	return (tweak_row(vsb, par, arg, "policy", REL_Policies(),
	    REL_PolicyByName, REL_PolicyName, REL_PolicySummary));
}

int v_matchproto_(tweak_t)
tweak_sandpaper_overload(struct vsb *vsb, const struct parspec *par,
    const char *arg)
{

	return (tweak_row(vsb, par, arg, "controller", OVL_Controllers(),
	    OVL_ByName, OVL_Name, OVL_Summary));
}

int v_matchproto_(tweak_t)
tweak_sandpaper_counter(struct vsb *vsb, const struct parspec *par,
    const char *arg)
{
	volatile char *dest = par->priv;
	char note[256];
	size_t l;

	if (arg == NULL || arg == JSON_FMT) {
		show(vsb, arg, TRUST_ME(dest));
		return (0);
	}
	l = strlen(arg);
	if (l >= SANDPAPER_COUNTER_MAX) {
		VSB_printf(vsb, "\"%s\" is too long: use at most %d "
		    "characters\n", arg, SANDPAPER_COUNTER_MAX - 1);
		return (-1);
	}
	note[0] = '\0';
	if (METER_Check(arg, note, sizeof note)) {
		VSB_printf(vsb, "%s\n", note);
		return (-1);
	}
	memcpy(TRUST_ME(dest), arg, l + 1);
	return (0);
}

int v_matchproto_(tweak_t)
tweak_sandpaper_rate(struct vsb *vsb, const struct parspec *par,
    const char *arg)
{
	volatile uint64_t *dest = par->priv;
	double d;
	char *e;

	if (arg == NULL || arg == JSON_FMT) {
		VSB_printf(vsb, "%ju", (uintmax_t)*dest);
		return (0);
	}
	d = strtod(arg, &e);
	if (e == arg || d != d)
		d = -1;
	switch (*e) {
	case 'k': case 'K': d *= 1e3; e++; break;
	case 'm': case 'M': d *= 1e6; e++; break;
	case 'g': case 'G': d *= 1e9; e++; break;
	default: break;
	}
	if (*e != '\0' || d < 0 || d > 1e13 || (d > 0 && d < 1e4)) {
		VSB_printf(vsb, "\"%s\" is not a rate: use 0 (no upper "
		    "bound), or 10k to 10000G bits/s\n", arg);
		return (-1);
	}
	*dest = (uint64_t)d;
	return (0);
}
