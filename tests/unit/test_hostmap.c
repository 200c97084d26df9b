/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The map from Host to tenant: look-ups, what may be declared, and a random map
 * against a search of all patterns.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tenants/hostmap.h"

/* Look a Host up */
static const char *
of(const struct hostmap *m, const char *host)
{
	static char name[TEN_NAME_MAX + 1];
	size_t l;

	l = MAP_Name(m, host, strlen(host), name);
	assert_int_equal(l, strlen(name));
	return (name);
}

#define OK(call)	assert_null(call)
#define BAD(call, text)	assert_non_null(strstr(call, text))

static int
begin(void **state)
{
	static struct hostmap m[1];

	MAP_Init(m);
	*state = m;
	return (0);
}

static int
end(void **state)
{
	MAP_Fini(*state);
	return (0);
}

static void
test_look_up(void **state)
{
	struct hostmap *m = *state;

	OK(MAP_Tenant(m, "shop", 1, 0));
	OK(MAP_Tenant(m, "blog", 1, 0));
	OK(MAP_Tenant(m, "wiki", 1, 0));
	OK(MAP_Host(m, "shop", "Shop.Example"));
	OK(MAP_Host(m, "blog", "*.example"));
	OK(MAP_Host(m, "wiki", "*.a.example"));
	OK(MAP_Host(m, "wiki", "[2001:db8::1]"));
	assert_string_equal(of(m, "shop.example"), "shop");
	assert_string_equal(of(m, "x.shop.example"), "blog");
	assert_string_equal(of(m, "a.example"), "blog");
	assert_string_equal(of(m, "x.a.example"), "wiki");
	assert_string_equal(of(m, "y.x.a.example"), "wiki");
	assert_string_equal(of(m, "[2001:db8::1]"), "wiki");
	/* A pattern is not of its own domain, nor of a part of a label */
	assert_string_equal(of(m, "example"), TEN_UNKNOWN);
	assert_string_equal(of(m, "xexample"), TEN_UNKNOWN);
	assert_string_equal(of(m, ""), TEN_UNKNOWN);
	OK(MAP_Tenant(m, TEN_UNKNOWN, 100, 5));
	assert_string_equal(of(m, "example"), TEN_UNKNOWN);
	OK(MAP_Host(m, TEN_UNKNOWN, "known.a.example"));
	assert_string_equal(of(m, "known.a.example"), TEN_UNKNOWN);
	MAP_Unknown(m, 1);
	assert_string_equal(of(m, "example"), "example");
	MAP_Unknown(m, 0);
	assert_string_equal(of(m, "example"), TEN_UNKNOWN);
}

/* Each Host of the pattern is a tenant, but those that others have. */
static void
test_each(void **state)
{
	struct hostmap *m = *state;
	const char *host = "a.b.example";

	OK(MAP_Group(m, "g", 1));
	OK(MAP_Tenant(m, "*", 2, 0));
	OK(MAP_Tenant(m, "b", 1, 0));
	BAD(MAP_Host(m, "*", "*.example"), "are in no group");
	OK(MAP_Member(m, "*", "g"));
	OK(MAP_Host(m, "*", "*.example"));
	OK(MAP_Host(m, "*", "one.test"));
	OK(MAP_Host(m, "b", "b.example"));
	assert_string_equal(of(m, host), host);
	assert_string_equal(of(m, "one.test"), "one.test");
	assert_string_equal(of(m, "b.example"), "b");
	assert_string_equal(of(m, "example"), TEN_UNKNOWN);
	assert_string_equal(MAP_Each(m, host, strlen(host))->name, "*");
	assert_null(MAP_Each(m, "b.example", 9));
	assert_null(MAP_Each(m, "example", 7));
	BAD(MAP_Limits(m, "*", .1, 1), "any number of Hosts");
	OK(MAP_Limits(m, "*", 0, .5));
	BAD(MAP_Memory(m, "*", 1, 0), "any number of Hosts");
	OK(MAP_Memory(m, "*", 0, 1));
}

static void
test_exact_before_pattern(void **state)
{
	struct hostmap *m = *state;

	OK(MAP_Tenant(m, "a", 1, 0));
	OK(MAP_Tenant(m, "b", 1, 0));
	OK(MAP_Host(m, "a", "*.example"));
	OK(MAP_Host(m, "b", "example"));
	OK(MAP_Host(m, "b", "w.example"));
	assert_string_equal(of(m, "example"), "b");
	assert_string_equal(of(m, "w.example"), "b");
	assert_string_equal(of(m, "v.example"), "a");
	BAD(MAP_Host(m, "a", "example"), "assigned already");
	BAD(MAP_Host(m, "b", "*.EXAMPLE"), "assigned already");
}

static void
test_declare(void **state)
{
	struct hostmap *m = *state;
	char name[TEN_NAME_MAX + 2];

	BAD(MAP_Tenant(m, NULL, 1, 0), "empty");
	BAD(MAP_Tenant(m, "", 1, 0), "empty");
	BAD(MAP_Tenant(m, "a b", 1, 0), "not allowed");
	BAD(MAP_Tenant(m, "a\"", 1, 0), "not allowed");
	BAD(MAP_Tenant(m, "a\\", 1, 0), "not allowed");
	BAD(MAP_Tenant(m, "(a", 1, 0), "parenthesis");
	BAD(MAP_Group(m, "new", 1), "own");
	BAD(MAP_Group(m, "none", 1), "own");
	BAD(MAP_Group(m, "other", 1), "own");
	BAD(MAP_Group(m, "unknown", 1), "own");
	OK(MAP_Tenant(m, "new", 1, 0));
	BAD(MAP_Tenant(m, "a", 0.0009, 0), "weight");
	BAD(MAP_Tenant(m, "a", 1024.1, 0), "weight");
	BAD(MAP_Tenant(m, "a", 0. / 0., 0), "weight");
	BAD(MAP_Tenant(m, "a", 1, 1000001), "queue limit");
	OK(MAP_Tenant(m, "a", 0.001, 1000000));
	OK(MAP_Group(m, "g", 1024));
	BAD(MAP_Tenant(m, "a", 1, 0), "a tenant of this name");
	BAD(MAP_Tenant(m, "g", 1, 0), "a group of this name");
	BAD(MAP_Group(m, "a", 1), "a tenant of this name");
	BAD(MAP_Group(m, "g", 1), "a group of this name");
	/* 255 bytes; of a group 253, for its parentheses */
	memset(name, 'x', sizeof name);
	name[TEN_NAME_MAX + 1] = '\0';
	BAD(MAP_Tenant(m, name, 1, 0), "255");
	name[TEN_NAME_MAX] = '\0';
	OK(MAP_Tenant(m, name, 1, 0));
	BAD(MAP_Group(m, name, 1), "253");
	name[TEN_NAME_MAX - 1] = '\0';
	BAD(MAP_Group(m, name, 1), "253");
	name[TEN_NAME_MAX - 2] = '\0';
	OK(MAP_Group(m, name, 1));

	assert_string_equal(m->first->name, "new");
	assert_true(m->first->next->weight == 0.001);
	assert_int_equal(m->first->next->queue_limit, 1000000);
	assert_int_equal(m->first->next->is_group, 0);
	assert_string_equal(m->first->next->next->name, "(g)");
	assert_int_equal(m->first->next->next->is_group, 1);
}

static void
test_members_and_limits(void **state)
{
	struct hostmap *m = *state;
	struct map_tenant *a;

	OK(MAP_Tenant(m, "a", 1, 0));
	OK(MAP_Tenant(m, "b", 1, 0));
	OK(MAP_Group(m, "g", 1));
	a = m->first;
	BAD(MAP_Member(m, NULL, "g"), "tenant is not declared");
	BAD(MAP_Member(m, "x", "g"), "tenant is not declared");
	BAD(MAP_Member(m, "(g)", "g"), "tenant is not declared");
	BAD(MAP_Member(m, "g", "g"), "this is a group");
	BAD(MAP_Member(m, "a", NULL), "group is not declared");
	BAD(MAP_Member(m, "a", "b"), "group is not declared");
	OK(MAP_Member(m, "a", "g"));
	assert_string_equal(a->group->name, "(g)");
	BAD(MAP_Member(m, "a", "g"), "already");

	BAD(MAP_Limits(m, "x", 0, 1), "not declared");
	BAD(MAP_Limits(m, NULL, 0, 1), "not declared");
	BAD(MAP_Limits(m, "a", -0.1, 1), "reservation");
	BAD(MAP_Limits(m, "a", 1.1, 1), "reservation");
	BAD(MAP_Limits(m, "a", 0. / 0., 1), "reservation");
	BAD(MAP_Limits(m, "a", 0, 0.0009), "limit");
	BAD(MAP_Limits(m, "a", 0, 1.1), "limit");
	BAD(MAP_Limits(m, "a", 0, 0. / 0.), "limit");
	BAD(MAP_Limits(m, "a", 0.5, 0.4), "above the limit");
	OK(MAP_Limits(m, "a", 0.5, 0.5));
	assert_true(a->reservation == 0.5 && a->limit == 0.5);
	OK(MAP_Limits(m, "a", 0.5, 1));
	assert_true(a->limit == 0);
	OK(MAP_Limits(m, "g", 0.5, 1));
	BAD(MAP_Limits(m, "b", 0.01, 1), "sum");

	BAD(MAP_Memory(m, "x", 0, 0), "not declared");
	BAD(MAP_Memory(m, NULL, 0, 0), "not declared");
	BAD(MAP_Memory(m, "a", -1, 0), "reservation");
	BAD(MAP_Memory(m, "a", 0, -1), "limit");
	BAD(MAP_Memory(m, "a", 2, 1), "above the limit");
	OK(MAP_Memory(m, "a", 2, 2));
	assert_true(a->memory_reservation == 2 && a->memory_limit == 2);
	OK(MAP_Memory(m, "a", 3, 0));
	assert_true(a->memory_reservation == 3 && a->memory_limit == 0);
	OK(MAP_Memory(m, "g", 0, 1));

	BAD(MAP_Admission(m, "x", 1), "not declared");
	BAD(MAP_Admission(m, "g", 1), "this is a group");
	BAD(MAP_Admission(m, "(g)", 1), "not declared");
	BAD(MAP_Admission(m, NULL, 1), "not declared");
	OK(MAP_Admission(m, "a", 1));
	assert_int_equal(a->admit_all, 1);
	OK(MAP_Admission(m, "a", 0));
	assert_int_equal(a->admit_all, 0);
}

static void
test_refusal(void **state)
{
	struct hostmap *m = *state;
	const char *html = "text/html";
	char body[PAGE_BODY_MAX + 2], type[PAGE_TYPE_MAX + 2];
	struct page *p;

	OK(MAP_Group(m, "g", 1));
	OK(MAP_Tenant(m, "a", 1, 0));
	BAD(MAP_Refusal(m, "b", 0, "", html, 0), "is not declared");
	BAD(MAP_Refusal(m, NULL, 0, "", html, 0), "is not declared");
	BAD(MAP_Refusal(m, "a", 200, "", html, 0), "status is not allowed");
	BAD(MAP_Refusal(m, "a", -1, "", html, 0), "status is not allowed");
	BAD(MAP_Refusal(m, "a", 0, "", "", 0), "type is empty");
	BAD(MAP_Refusal(m, "a", 0, "", NULL, 0), "type is empty");
	BAD(MAP_Refusal(m, "a", 0, "", "a\r\nb: c", 0), "not allowed");
	memset(type, 'x', sizeof type);
	type[PAGE_TYPE_MAX + 1] = '\0';
	BAD(MAP_Refusal(m, "a", 0, "", type, 0), "type is too long");
	memset(body, 'x', sizeof body);
	body[PAGE_BODY_MAX + 1] = '\0';
	BAD(MAP_Refusal(m, "a", 0, body, html, 0), "body is too long");
	assert_null(m->first->refusal);
	body[PAGE_BODY_MAX] = type[PAGE_TYPE_MAX] = '\0';
	OK(MAP_Refusal(m, "g", 0, NULL, type, 0));
	OK(MAP_Refusal(m, "a", 503, "old", html, 0));
	OK(MAP_Refusal(m, "a", 429, body, html, 0));
	p = m->first->next->refusal;
	assert_int_equal(p->status, 429);
	assert_int_equal(p->body_len, PAGE_BODY_MAX);
	assert_memory_equal(p->body, body, PAGE_BODY_MAX);
	assert_string_equal(p->head, "Content-Type: text/html\r\n"
	    "Content-Length: 16384\r\n");
	assert_int_equal(m->first->refusal->body_len, 0);
}

/* Who has a reference can use the page after the map is gone. */
static void
test_page_outlives_its_map(void **state)
{
	struct hostmap *m = *state;
	struct page *p;

	OK(MAP_Tenant(m, "a", 1, 0));
	OK(MAP_Refusal(m, "a", 503, "page", "text/plain", 0));
	p = PAGE_Ref(m->first->refusal);
	assert_int_equal(p->refs, 2);
	MAP_Fini(m);
	assert_int_equal(p->refs, 1);
	assert_memory_equal(p->body, "page", 4);
	PAGE_Unref(p);
	PAGE_Unref(NULL);
	assert_null(PAGE_Ref(NULL));
	MAP_Init(m);
}

static void
test_times(void **state)
{
	struct hostmap *m = *state;
	static const struct {
		double		most;
		const char	*error;
	} times[MAP_TIMES] = {
		[MAP_TARGET] = { 10, "target is not allowed: use 0.001s to 10s" },
		[MAP_QUEUE_TIMEOUT] = { 86400, "use 0.001s to 86400s" },
		[MAP_FETCH_TARGET] = { 3600,
		    "target is not allowed: use 0.001s to 3600s" },
	};
	unsigned u;

	OK(MAP_Tenant(m, "a", 1, 0));
	OK(MAP_Group(m, "g", 1));
	for (u = 0; u < MAP_TIMES; u++) {
		BAD(MAP_Time(m, "x", u, 1), "not declared");
		BAD(MAP_Time(m, NULL, u, 1), "not declared");
		BAD(MAP_Time(m, "a", u, .0009), times[u].error);
		BAD(MAP_Time(m, "a", u, times[u].most + .1), times[u].error);
		BAD(MAP_Time(m, "a", u, 0. / 0.), times[u].error);
		assert_true(m->first->time[u] == 0);
	}
	for (u = 0; u < MAP_TIMES; u++) {
		OK(MAP_Time(m, "a", u, .001 + u));
		OK(MAP_Time(m, "g", u, times[u].most));
	}
	for (u = 0; u < MAP_TIMES; u++) {
		assert_true(m->first->time[u] == .001 + u);
		assert_true(m->first->next->time[u] == times[u].most);
	}
}

static void
test_patterns(void **state)
{
	struct hostmap *m = *state;
	static const struct {
		const char	*pattern, *error;
	} bad[] = {
		{ "", "empty" },
		{ "*.", "empty" },
		{ "*", "* is not allowed" },
		{ "a*.example", "* is not allowed" },
		{ "*.*.example", "* is not allowed" },
		{ "a.example:80", "port" },
		{ "http://a.example/", "is a URL" },
		{ "::1", "IPv6 address needs brackets" },
		{ ".example", "label is empty" },
		{ "a..example", "label is empty" },
		{ "a.example.", "ends in a dot" },
		{ "a b", "not allowed" },
		{ "[::1", "address" },
		{ "[::1]x", "address" },
		{ "[g]", "address" },
	};
	char host[TEN_NAME_MAX + 2];
	unsigned i;

	OK(MAP_Tenant(m, "a", 1, 0));
	OK(MAP_Group(m, "g", 1));
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
		BAD(MAP_Host(m, "a", bad[i].pattern), bad[i].error);
	BAD(MAP_Host(m, "a", NULL), "empty");
	BAD(MAP_Host(m, "x", "a.example"), "not declared");
	BAD(MAP_Host(m, NULL, "a.example"), "not declared");
	BAD(MAP_Host(m, "(g)", "a.example"), "not declared");
	BAD(MAP_Host(m, "g", "a.example"), "this is a group");
	memset(host, 'x', sizeof host);
	host[TEN_NAME_MAX + 1] = '\0';
	BAD(MAP_Host(m, "a", host), "255");
	host[TEN_NAME_MAX] = '\0';
	OK(MAP_Host(m, "a", host));
	OK(MAP_Host(m, "a", "a-b_c.Example0"));
	assert_int_equal(m->nhost, 2);
}

/*--------------------------------------------------------------------
 * Random names of one to four labels, of few letters
 */

#define HOSTS	300
#define NAME	16

static uint32_t
any(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525 + 1013904223;
	return ((*seed >> 16) % n);
}

static void
any_name(uint32_t *seed, char *name)
{
	unsigned labels = 1 + any(seed, 4);

	while (labels-- > 0) {
		*name++ = (char)('a' + any(seed, 3));
		if (any(seed, 3) == 0)
			*name++ = (char)('a' + any(seed, 3));
		*name++ = '.';
	}
	name[-1] = '\0';
}

/* Return the index of the pattern that a Host belongs to, or -1 */
static int
longest(char (*pattern)[NAME + 2], int n, const char *host)
{
	size_t h = strlen(host), l, most = 0;
	int i, found = -1;

	for (i = 0; i < n; i++) {
		l = strlen(pattern[i]);
		if (!strcmp(pattern[i], host))
			return (i);
		if (pattern[i][0] == '*' && h > l - 1 && l > most &&
		    !strcmp(host + h - (l - 1), pattern[i] + 1)) {
			found = i;
			most = l;
		}
	}
	return (found);
}

static void
test_random(void **state)
{
	struct hostmap *m = *state;
	char pattern[HOSTS][NAME + 2], tenant[16], host[NAME];
	uint32_t seed = 1;
	int n = 0, i, t, declared = 0;

	for (i = 0; i < HOSTS; i++) {
		strcpy(pattern[n], any(&seed, 2) ? "*." : "");
		any_name(&seed, pattern[n] + strlen(pattern[n]));
		(void)snprintf(tenant, sizeof tenant, "t%d", n);
		if (n == declared) {
			OK(MAP_Tenant(m, tenant, 1, 0));
			declared++;
		}
		if (MAP_Host(m, tenant, pattern[n]) == NULL)
			n++;			/* else it was there already */
	}
	assert_in_range(n, HOSTS / 4, HOSTS);
	for (i = 0; i < 20000; i++) {
		any_name(&seed, host);
		t = longest(pattern, n, host);
		if (t < 0)
			assert_string_equal(of(m, host), TEN_UNKNOWN);
		else {
			(void)snprintf(tenant, sizeof tenant, "t%d", t);
			assert_string_equal(of(m, host), tenant);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_look_up, begin, end),
		cmocka_unit_test_setup_teardown(test_exact_before_pattern,
		    begin, end),
		cmocka_unit_test_setup_teardown(test_each, begin, end),
		cmocka_unit_test_setup_teardown(test_declare, begin, end),
		cmocka_unit_test_setup_teardown(test_members_and_limits,
		    begin, end),
		cmocka_unit_test_setup_teardown(test_refusal, begin, end),
		cmocka_unit_test_setup_teardown(test_page_outlives_its_map,
		    begin, end),
		cmocka_unit_test_setup_teardown(test_times,
		    begin, end),
		cmocka_unit_test_setup_teardown(test_patterns, begin, end),
		cmocka_unit_test_setup_teardown(test_random, begin, end),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
