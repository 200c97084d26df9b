/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Whose request is this: the Host header's name and the map, spd_tenant.c and
 * spd_hostmap.c, linked with the rest of varnishd.  An input is a sequence of
 * requests with any Host, tenants and patterns for the maps of a few VCLs,
 * vcl.use and vcl.discard.
 *
 * A plain list of each map's tenants and patterns, compared one by one, says
 * what a name should be.  After each call:
 *  - a name ends where it says, does not begin with a parenthesis unless it is
 *    Sandpaper's own, has 1 to 255 bytes, and is the same in
 *    capitals, with a port, with a dot at its end;
 *  - it is that of the exact pattern, else of the longest domain that it is
 *    below, else its own or (unknown);
 *  - the record of that name is its tenant, or (other) is;
 *  - what a pattern or tenant must not be is refused, and changes nothing;
 *  - pinned are tenants and groups of the map in force, no others; these have
 *    its weights, queue limits, groups, targets, queue timeouts and refusals,
 *    all others none; the map's number changes with the map.
 */

#include "config.h"

#include <ctype.h>

#include "varnishd/spd.h"
#include "varnishd/spd_hostmap.h"

#include "VSC_lck.h"

#include "fuzz.h"

#define VCLS		3
#define TENANTS		8
#define PATTERNS	24
#define LIMIT		10		/* sandpaper_tenants_max */
#define TEXT		300

struct tenant {
	char		name[TEXT];	/* a group's in parentheses */
	double		weight;
	unsigned	queue_limit;
	int		is_group;
	int		group;		/* whose member it is, or -1 */
	double		target, timeout, fetch;	/* s, 0: none */
	int		status;		/* of its refusal; -1: none */
};

struct pattern {
	char		host[TEXT];	/* in small letters, without "*." */
	int		wild;
	unsigned	tenant;
};

struct map {
	struct spd_map	*map;
	struct tenant	tenant[TENANTS];
	struct pattern	pattern[PATTERNS];
	unsigned	ntenant, npattern;
	int		own, used;
	int		names;		/* not only exempt requests */
};

struct fuzz {
	struct fuzz_in	in;
	struct map	map[VCLS];
	struct map	*active;
};

static const struct vcl *
vcl(unsigned i)
{
	static char address[VCLS + 1];	/* nobody looks behind it */

	return ((const struct vcl *)(const void *)&address[i]);
}

/* The linker's --wrap: the same hash in each run, and no log */
int __wrap_VRND_RandomCrypto(void *, size_t);
void __wrap_spd_tell_start(void);

int
__wrap_VRND_RandomCrypto(void *p, size_t len)
{
	memset(p, 7, len);
	return (0);
}

void
__wrap_spd_tell_start(void)
{
}

static void
setup(void)
{
	static struct VSC_sandpaper vsc;
	static struct params params;
	static struct VSC_lck lck;

	if (cache_param == NULL) {
		params.sandpaper_tenants_max = LIMIT;
		params.sandpaper_queue_limit = 1000;
		cache_param = &params;
		HTTP_Init();
		spd_vsc = &vsc;
		lck_sandpaper = &lck;
		spd_lock_init();
	}
	spd_rel = REL_New(0, 1, REL_OPT_ALL, NULL, NULL);
	AN(spd_rel);
	spd_lock();
	spd_tenants_init();
	spd_unlock();
}

static void
teardown(void)
{
	unsigned i;

	SPD_VclUse(vcl(VCLS));		/* it has no map */
	for (i = 0; i < VCLS; i++)
		SPD_MapDrop(vcl(i));
	spd_lock();
	TEN_Destroy(&spd_tenants);
	REL_Destroy(&spd_rel);
	spd_unlock();
}

/*--------------------------------------------------------------------
 * Texts.  From a few labels, so that they meet, or of any bytes.
 */

static void
some_bytes(struct fuzz_in *in, char *text)
{
	unsigned n = fuzz_byte(in), c, i;

	for (i = 0; i < n; i++) {
		c = i < 32 ? fuzz_byte(in) : 'a';
		/* No header has these */
		text[i] = c == '\0' || c == '\n' || c == '\r' ? 'b' : (char)c;
	}
	text[n] = '\0';
}

static void
some_text(struct fuzz_in *in, char *text)
{
	static const char * const label[] = {
		"a", "b", "A", "www", "example", "com", "", "*", "[::1]",
		":80", "x-1", "(other)", "(unknown)", ".", " ",
		"a-long-label-of-more-than-sixty-four-characters-that-goes-"
		"on-and-on-and-on-until-nobody-wants-to-hear-of-it-any-more",
	};
	unsigned how = fuzz_byte(in), n = how % 8, i, u;

	if (how & 128) {
		some_bytes(in, text);
		return;
	}
	*text = '\0';
	for (i = 0; i < n; i++) {
		if (i > 0 && !(how & 64))
			strcat(text, ".");
		u = fuzz_byte(in) % (sizeof label / sizeof label[0]);
		if (strlen(text) + strlen(label[u]) + 2 < TEXT)
			strcat(text, label[u]);
	}
	text[TEXT - 1] = '\0';
}

static void
small(char *text)
{
	for (; *text != '\0'; text++)
		*text = (char)tolower((unsigned char)*text);
}

/*--------------------------------------------------------------------
 * Names
 */

/* What the code under test says: name has TEN_NAME_MAX + 1 bytes */
static size_t
ask(const char *host, char *name)
{
	char header[2 * TEXT];
	struct req req = { 0 };
	struct http http = { 0 };
	txt hd[HTTP_HDR_FIRST + 2];
	unsigned char hdf[HTTP_HDR_FIRST + 2] = { 0 };
	size_t len;

	memset(hd, 0, sizeof hd);
	http.magic = HTTP_MAGIC;
	http.shd = HTTP_HDR_FIRST + 2;
	http.hd = hd;
	http.hdf = hdf;
	http.nhd = HTTP_HDR_FIRST;
	if (host != NULL) {
		(void)snprintf(header, sizeof header, "hOsT: %s", host);
		hd[HTTP_HDR_FIRST].b = header;
		hd[HTTP_HDR_FIRST].e = strchr(header, '\0');
		http.nhd++;
	}
	req.http = &http;
	len = spd_tenant_name(&req, name, NULL);
	assert(len >= 1 && len <= TEN_NAME_MAX && name[len] == '\0');
	return (len);
}

/* The longest domain of a wildcard that the name is below */
static const struct pattern *
below(const struct map *m, const char *name)
{
	size_t len = strlen(name), l, longest = 0;
	const struct pattern *found = NULL;
	unsigned i;

	for (i = 0; i < m->npattern; i++) {
		l = strlen(m->pattern[i].host);
		if (m->pattern[i].wild && l < len && l > longest &&
		    name[len - l - 1] == '.' &&
		    strcmp(name + len - l, m->pattern[i].host) == 0) {
			found = &m->pattern[i];
			longest = l;
		}
	}
	return (found);
}

/* Is each of its Hosts a tenant? */
static int
is_each(const struct tenant *t)
{

	return (t->name[0] == '*');
}

/* The tenant of a name without port and in small letters, or NULL */
static const struct tenant *
declared(const struct map *m, const char *name)
{
	const struct pattern *p;
	unsigned i;

	for (i = 0; i < m->npattern; i++)
		if (!m->pattern[i].wild &&
		    strcmp(m->pattern[i].host, name) == 0)
			return (&m->tenant[m->pattern[i].tenant]);
	p = below(m, name);
	return (p == NULL ? NULL : &m->tenant[p->tenant]);
}

/* Whose such a name is */
static const char *
expected(const struct map *m, const char *name)
{
	const struct tenant *t;

	if (m == NULL || !m->names)
		return (name);
	t = declared(m, name);
	if (t != NULL)
		return (is_each(t) ? name : t->name);
	return (m->own ? name : "(unknown)");
}

/* The name as the documentation says it */
static void
normal(const char *host, char *name)
{
	const char *colon;
	size_t len;

	while (*host == ' ' || *host == '\t')
		host++;
	if (*host == '(')		/* such names are Sandpaper's own */
		host = "";
	len = strlen(host);
	colon = strrchr(host, ':');	/* a port is digits to the end */
	if (colon != NULL && colon[1 + strspn(colon + 1, "0123456789")] == '\0')
		len = (size_t)(colon - host);
	if (len > TEN_NAME_MAX)
		len = TEN_NAME_MAX;
	if (len > 1 && host[len - 1] == '.')
		len--;
	memcpy(name, len > 0 ? host : "(none)", len > 0 ? len : 6);
	name[len > 0 ? len : 6] = '\0';
	small(name);
}

static void
same(const char *host, const char *name)
{
	char other[TEN_NAME_MAX + 1];

	(void)ask(host, other);
	assert(strcmp(other, name) == 0);
}

/* In capitals, with a port, with a dot */
static void
call_alike(char *host, const char *name)
{
	size_t l = strlen(host), i;

	for (i = 0; i < l; i++)
		host[i] = (char)toupper((unsigned char)host[i]);
	same(host, name);
	if (strchr(host, ':') != NULL)
		return;
	strcat(host, ":8080");
	same(host, name);
	host[l] = '\0';
	if (l < TEN_NAME_MAX && host[l - 1] != '.') {
		strcat(host, ".");
		same(host, name);
	}
}

static void
call_request(struct fuzz *f)
{
	char host[2 * TEXT] = "", name[TEN_NAME_MAX + 1], want[TEXT];
	struct spd_fields a;
	struct spd_tenant *t;
	size_t len;

	some_text(&f->in, host);
	if (fuzz_byte(&f->in) == 255) {
		*host = '\0';
		len = ask(NULL, name);
	} else
		len = ask(host, name);
	normal(host, want);
	assert(strcmp(name, expected(f->active, want)) == 0);
	if (strcmp(want, "(none)") != 0)
		call_alike(host, name);
	spd_lock();
	t = spd_tenant_check(spd_tenant_find(name, len), name, len);
	assert(strcmp(spd_name(t), name) == 0 ||
	    TEN_OfData(t) == TEN_Other(spd_tenants));
	assert(spd_tenant_check(t, name, len) == t);
	spd_unlock();
	assert((SPD_Ask(name, &a) == 0) == (strcmp(spd_name(t), name) == 0));
	assert(a.waiting + a.running == 0);
}

/*--------------------------------------------------------------------
 * Maps
 */

static struct map *
some_map(struct fuzz *f)
{
	unsigned i = fuzz_below(&f->in, VCLS);
	struct map *m = &f->map[i];

	if (m->used)			/* it never changes after */
		return (NULL);
	if (m->map == NULL)
		m->map = SPD_MapOf(vcl(i));
	assert(SPD_MapOf(vcl(i)) == m->map);
	return (m);
}

static int
tenant_of(const struct map *m, const char *name)
{
	unsigned i;

	for (i = 0; i < m->ntenant; i++)
		if (strcmp(m->tenant[i].name, name) == 0)
			return ((int)i);
	return (-1);
}

static int
group_of(const struct map *m, const char *name)
{
	char group[TEXT + 2];

	(void)snprintf(group, sizeof group, "(%s)", name);
	return (tenant_of(m, group));
}

/* A tenant or a group */
static void
call_tenant(struct fuzz *f, int is_group)
{
	struct map *m = some_map(f);
	double weight = fuzz_below(&f->in, 256) / 64.;
	unsigned limit = is_group ? 0 : fuzz_byte(&f->in) * 5000U;
	char name[TEXT] = "";
	const char *error, *p;
	int good;

	if (m == NULL || m->ntenant == TENANTS)
		return;
	some_text(&f->in, name);
	if (fuzz_below(&f->in, 16) == 15)
		weight = fuzz_byte(&f->in) & 1 ? -1. : 1e300 * 1e300;
	good = *name != '\0' && (*name != '(' ||
	    (!is_group && !strcmp(name, "(unknown)"))) &&
	    strlen(name) <= (is_group ? 253 : 255) &&
	    tenant_of(m, name) < 0 && group_of(m, name) < 0 &&
	    weight >= .001 && weight <= 1024 && limit <= 1000000;
	for (p = name; *p != '\0'; p++)
		good &= *p > ' ' && *p <= '~' && *p != '"' && *p != '\\';
	error = is_group ? SPD_MapGroup(m->map, name, weight) :
	    SPD_MapTenant(m->map, name, weight, limit);
	assert((error == NULL) == good);
	if (!good)
		return;
	m->names = 1;
	m->tenant[m->ntenant] = (struct tenant){ .weight = weight,
	    .queue_limit = limit, .is_group = is_group, .group = -1,
	    .status = -1 };
	(void)snprintf(m->tenant[m->ntenant++].name, TEXT,
	    is_group ? "(%s)" : "%s", name);
}

/* The name of a tenant or a group in VCL: without parentheses */
static void
plain(const struct tenant *t, char *name)
{

	strcpy(name, t->name + t->is_group);
	if (t->is_group)
		*strrchr(name, ')') = '\0';
}

/* Any of the two as a member of any of the two */
static void
call_member(struct fuzz *f)
{
	struct map *m = some_map(f);
	struct tenant *t, *g;
	char name[TEXT];
	int good;

	if (m == NULL || m->ntenant == 0)
		return;
	t = &m->tenant[fuzz_below(&f->in, m->ntenant)];
	g = &m->tenant[fuzz_below(&f->in, m->ntenant)];
	plain(g, name);
	good = !t->is_group && g->is_group && t->group < 0;
	assert((SPD_MapMember(m->map, t->name, name) == NULL) == good);
	if (good)
		t->group = (int)(g - m->tenant);
}

/* What is done in overload, for a tenant or a group */
static void
call_overload(struct fuzz *f)
{
	static const double times[] = { 0, .0009, .001, .5, 10, 11, 3600, 3601,
	    86400, 86401, -1 };
	static const int64_t statuses[] = { 0, 429, 503, 404 };
	struct map *m = some_map(f);
	struct tenant *t;
	char name[TEXT];
	double s = times[fuzz_below(&f->in, sizeof times / sizeof times[0])];
	int64_t status = statuses[fuzz_below(&f->in, 4)];
	int good;

	if (m == NULL || m->ntenant == 0)
		return;
	t = &m->tenant[fuzz_below(&f->in, m->ntenant)];
	plain(t, name);
	assert(SPD_MapTarget(m->map, "(nobody)", 1) != NULL);
	switch (fuzz_below(&f->in, 4)) {
	case 0:
		good = s >= .001 && s <= 10;
		assert((SPD_MapTarget(m->map, name, s) == NULL) == good);
		t->target = good ? s : t->target;
		break;
	case 1:
		good = s >= .001 && s <= 86400;
		assert((SPD_MapQueueTimeout(m->map, name, s) == NULL) ==
		    good);
		t->timeout = good ? s : t->timeout;
		break;
	case 2:
		good = s >= .001 && s <= 3600;
		assert((SPD_MapFetchTarget(m->map, name, s) == NULL) == good);
		t->fetch = good ? s : t->fetch;
		break;
	default:
		good = status != 404;
		assert((SPD_MapRefusal(m->map, name, status, "page",
		    "text/plain", 0) == NULL) == good);
		t->status = good ? (int)status : t->status;
		break;
	}
}

static void
call_host(struct fuzz *f)
{
	struct map *m = some_map(f);
	char text[TEXT] = "", *p = text;
	struct pattern *n;
	unsigned i, t;
	size_t l;

	if (m == NULL || m->ntenant == 0 || m->npattern == PATTERNS)
		return;
	t = fuzz_below(&f->in, m->ntenant);
	some_text(&f->in, text);
	assert(SPD_MapHost(m->map, "(nobody)", text) != NULL);
	if (SPD_MapHost(m->map, m->tenant[t].name, text) != NULL)
		return;
	assert(!m->tenant[t].is_group);
	assert(!is_each(&m->tenant[t]) || m->tenant[t].group >= 0);
	n = &m->pattern[m->npattern++];
	n->wild = strncmp(text, "*.", 2) == 0;
	p += n->wild ? 2 : 0;
	small(p);
	l = strlen(p);
	assert(l >= 1 && l <= 255);
	if (*p != '[')
		assert(strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789-_.") ==
		    l && *p != '.' && p[l - 1] != '.' &&
		    strstr(p, "..") == NULL);
	strcpy(n->host, p);
	n->tenant = t;
	for (i = 0; i + 1 < m->npattern; i++)
		assert(strcmp(m->pattern[i].host, n->host) != 0 ||
		    m->pattern[i].wild != n->wild);
}

static void
call_use(struct fuzz *f)
{
	unsigned i = fuzz_below(&f->in, VCLS), before = spd_map_serial();

	SPD_VclUse(vcl(i));
	assert(spd_map_serial() != before);
	f->active = f->map[i].map == NULL ? NULL : &f->map[i];
	f->map[i].used = 1;
}

static void
call_drop(struct fuzz *f)
{
	unsigned i = fuzz_below(&f->in, VCLS), before = spd_map_serial();

	if (f->active == &f->map[i])
		return;			/* Varnish refuses that */
	SPD_MapDrop(vcl(i));
	assert(spd_map_serial() == before);
	memset(&f->map[i], 0, sizeof f->map[i]);
}

/* A tenant without a value of its own has that of its group */
static void
judge_overload(const struct fuzz *f, const struct spd_tenant *t,
    const struct tenant *want)
{
	static const struct tenant none = { .status = -1 };
	const struct tenant *group = &none;

	if (want == NULL)
		want = &none;
	else if (want->group >= 0)
		group = &f->active->tenant[want->group];
	assert(t->target == (int64_t)((want->target > 0 ? want :
	    group)->target * 1e9));
	assert(t->queue_timeout == (int64_t)((want->timeout > 0 ? want :
	    group)->timeout * 1e9));
	assert(t->fetch_target == (int64_t)((want->fetch > 0 ? want :
	    group)->fetch * 1e9));
	assert((t->refusal == NULL ? -1 : (int)t->refusal->status) ==
	    (want->status >= 0 ? want : group)->status);
}

static void
judge_record(const struct fuzz *f, struct ten_record *r, int pinned)
{
	const struct spd_tenant *t = TEN_Data(r);
	const struct tenant *want = NULL;
	const char *group = "";
	struct rel_tenant_stat st;
	uint32_t weight = REL_WEIGHT_ONE;

	assert(r->pinned == (pinned || r == TEN_Other(spd_tenants)));
	if (pinned) {
		assert(f->active != NULL &&
		    tenant_of(f->active, r->name) >= 0);
		want = &f->active->tenant[tenant_of(f->active, r->name)];
	} else if (f->active != NULL && r->name[0] != '(') {
		want = declared(f->active, r->name);
		if (want != NULL && !is_each(want))
			want = NULL;
	}
	if (want != NULL) {
		weight = (uint32_t)(want->weight * REL_WEIGHT_ONE + .5);
		if (want->group >= 0)
			group = f->active->tenant[want->group].name;
	}
	assert(strcmp(t->group == NULL ? "" : spd_name(t->group), group) == 0);
	assert(REL_Group(t->rel) == (t->group == NULL ? NULL : t->group->rel));
	REL_TenantStat(spd_rel, t->rel, &st);
	assert(st.weight == weight);
	assert(t->queue_limit == (want == NULL ? 0 : want->queue_limit));
	judge_overload(f, t, want);
}

static void
judge(const struct fuzz *f)
{
	struct spd_mapped *pinned;
	struct ten_record *r;
	unsigned n, i, j, found = 0, each = 0;

	assert(spd_map_tenants(&pinned, &n) == spd_map_serial());
	assert(n <= (f->active == NULL ? 0 : f->active->ntenant));
	spd_lock();
	for (i = 0; (r = TEN_At(spd_tenants, i)) != NULL; i++) {
		for (j = 0; j < n && pinned[j].tenant != TEN_Data(r); j++)
			continue;
		found += j < n;
		assert(j == n || strcmp(pinned[j].name, r->name) == 0);
		judge_record(f, r, j < n);
	}
	spd_unlock();
	assert(found == n);
	/* Nobody else has work here, so there is room for them */
	for (i = 0; f->active != NULL && i < f->active->ntenant; i++)
		each += is_each(&f->active->tenant[i]);
	if (f->active != NULL)
		assert(n == f->active->ntenant - each);
	free(pinned);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz fuzz;
	struct fuzz *f = &fuzz;
	struct map *m;

	memset(f, 0, sizeof *f);
	f->in = (struct fuzz_in){ .p = data, .left = size };
	setup();
	while (f->in.left > 0) {
		switch (fuzz_below(&f->in, 8)) {
		case 0:
			call_tenant(f, fuzz_below(&f->in, 3) == 0);
			if (fuzz_byte(&f->in) & 1)
				call_member(f);
			break;
		case 1:
			call_host(f);
			break;
		case 2:
			if (fuzz_byte(&f->in) & 1)
				call_overload(f);
			else
				call_host(f);
			break;
		case 3:
			call_use(f);
			break;
		case 4:
			if (fuzz_byte(&f->in) & 1) {
				call_drop(f);
				break;
			}
			m = some_map(f);
			if (m == NULL)
				break;
			if (fuzz_byte(&f->in) & 1) {
				(void)SPD_MapExempt(m->map, "/", "x", 1);
				break;
			}
			m->own = !m->own;
			m->names = 1;
			SPD_MapUnknown(m->map, m->own);
			break;
		default:
			call_request(f);
			break;
		}
		judge(f);
	}
	teardown();
	return (0);
}
