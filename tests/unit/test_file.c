/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The file of tenants: what a line says, each error with its line, and a large
 * file.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tenants/file.h"

#define MANY		50000		/* lines */

static char path[] = "/tmp/test_file.XXXXXX";
static struct hostmap map[1];
static char told[4096];			/* "LINE: WHY" of each error */

static void
tell(void *priv, unsigned line, const char *why)
{
	size_t l = strlen(told);

	assert_ptr_equal(priv, map);
	(void)snprintf(told + l, sizeof told - l, "%u: %s\n", line, why);
}

/* Read a file with this text into a new map, and return the errors. */
static unsigned
read_bytes(const void *text, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	MAP_Fini(map);
	MAP_Init(map);
	*told = '\0';
	return (FILE_Read(map, path, tell, map));
}

static unsigned
read_text(const char *text)
{

	return (read_bytes(text, strlen(text)));
}

#define GOOD(text)						\
	do {							\
		assert_int_equal(read_text(text), 0);		\
		assert_string_equal(told, "");			\
	} while (0)
#define BAD(text, error)					\
	do {							\
		assert_int_equal(read_text(text), 1);		\
		assert_non_null(strstr(told, error));		\
	} while (0)

static const char *
of(const char *host)
{
	static char name[TEN_NAME_MAX + 1];

	(void)MAP_Name(map, host, strlen(host), name);
	return (name);
}

static int
begin(void **state)
{

	(void)state;
	MAP_Init(map);
	return (close(mkstemp(path)));
}

static int
end(void **state)
{

	(void)state;
	MAP_Fini(map);
	return (unlink(path));
}

static void
test_a_line_is_a_tenant(void **state)
{
	const struct map_tenant *t, *g;

	(void)state;
	GOOD("# Our customers\n"
	    "\n"
	    "shop shop.example *.Shop.Example weight=2.5 queue_limit=500 "
	    "group=gold target=200ms queue_timeout=5s fetch_target=1m "
	    "reservation=.1 limit=0.5 memory_reservation=100MB "
	    "memory_limit=1.5GB status=429 admission=all # the best one\n"
	    "\tblog\tblog.example\r\n"
	    "(gold) weight=4 limit=1 target=1s\n"
	    "empty");
	t = map->first->next;
	g = map->first;
	assert_string_equal(g->name, "(gold)");
	assert_true(g->weight == 4 && g->limit == 0 &&
	    g->time[MAP_TARGET] == 1);
	assert_string_equal(t->name, "shop");
	assert_ptr_equal(t->group, g);
	assert_true(t->weight == 2.5);
	assert_int_equal(t->queue_limit, 500);
	assert_float_equal(t->time[MAP_TARGET], .2, 1e-9);
	assert_true(t->time[MAP_QUEUE_TIMEOUT] == 5);
	assert_true(t->time[MAP_FETCH_TARGET] == 60);
	assert_true(t->reservation == .1 && t->limit == .5);
	assert_int_equal(t->memory_reservation, 100 << 20);
	assert_int_equal(t->memory_limit, 3 << 29);
	assert_int_equal(t->refusal->status, 429);
	assert_int_equal(t->admit_all, 1);
	assert_true(t->next->weight == 1);
	assert_string_equal(t->next->next->name, "empty");
	assert_string_equal(of("shop.example"), "shop");
	assert_string_equal(of("a.shop.example"), "shop");
	assert_string_equal(of("blog.example"), "blog");
	assert_string_equal(of("other.example"), TEN_UNKNOWN);
	GOOD("*all *.sites.example group=g limit=0.5 memory_limit=1GB\n(g)");
	assert_string_equal(of("a.b.sites.example"), "a.b.sites.example");
	GOOD("(unknown) weight=50 queue_limit=9\n(g) weight=2");
	t = map->first->next;
	assert_string_equal(t->name, TEN_UNKNOWN);
	assert_true(t->weight == 50 && t->queue_limit == 9 && !t->is_group);
	GOOD("");
	GOOD("#");
	GOOD("\n\n");
	GOOD("a admission=by_size");
}

static void
test_an_error_has_its_line(void **state)
{

	(void)state;
	BAD("a\nb wieght=2", "2: there is no setting \"wieght\": use weight, "
	    "queue_limit, ");
	BAD("a weight=", "1: weight= is not allowed: use a number, such as 2");
	BAD("a weight=x", "weight=x is not allowed");
	BAD("a weight=-1", "weight=-1 is not allowed");
	BAD("a weight=nan", "weight=nan is not allowed");
	BAD("a weight=1e999", "weight=1e999 is not allowed");
	BAD("a weight=1e0", "weight=1e0 is not allowed");
	BAD("a status=0x1f7", "status=0x1f7 is not allowed");
	BAD("a weight=1.2.3", "weight=1.2.3 is not allowed");
	BAD("a weight=.", "weight=. is not allowed");
	BAD("a weight=2s", "weight=2s is not allowed");
	BAD("a weight=0", "\"a\": the weight is not allowed: use 0.001 to");
	BAD("a weight=2 weight=2", "weight is set twice");
	BAD("a queue_limit=1.5", "the queue limit is not allowed: use 1 to");
	BAD("a queue_limit=5000000000", "the queue limit is not allowed");
	BAD("a target=1", "target=1 is not allowed: use a time with ms");
	BAD("a target=11s", "target=11s: the target is not allowed: use");
	BAD("a limit=2", "limit=2: the limit is not allowed: use 0.001 to 1");
	BAD("a reservation=2", "reservation=2: the reservation is not");
	BAD("a reservation=0.6\nb reservation=0.6", "2: reservation=0.6: the "
	    "sum of all reservations is above 1");
	BAD("a memory_limit=5", "memory_limit=5 is not allowed: use bytes");
	BAD("a memory_reservation=2GB memory_limit=1GB",
	    "memory_reservation=2GB: the reservation is above the limit");
	BAD("a status=404", "status=404: the status is not allowed: use 429");
	BAD("a status=429.5", "status=429.5: the status is not allowed");
	BAD("a admission=none", "admission=none is not allowed: use all or");
	BAD("a group=", "group= is not allowed: use the name of a group");
	BAD("a group=b", "group=b: the group is not declared");
	BAD("(b)\na group=(b)", "2: group=(b): the group is not declared");
	BAD("a\n\n a", "3: \"a\": a tenant of this name is declared already");
	BAD("(g)\ng", "2: \"g\": a group of this name is declared already");
	BAD("(g", "\"(g\" is no name of a group: use one in parentheses");
	BAD("()", "\"()\" is no name of a group");
	BAD("weight=2 a", "\"weight=2\" is no name: begin the line with the");
	BAD("(g=h)", "\"(g=h)\" is no name");
	BAD("(new)", "the names other, unknown, none and new are");
	BAD("(g) queue_limit=5", "a group has no queue_limit");
	BAD("(g)\n(h) group=g", "2: a group is in no other group");
	BAD("(g) a.example", "\"a.example\": a group has no Hosts");
	BAD("(g) admission=all", "admission=all: this is a group");
	BAD("a a.*.example", "\"a.*.example\": * is not allowed here");
	BAD("a http://a.example", "the pattern is a URL");
	BAD("a a.example\nb A.example", "2: \"A.example\": this pattern is "
	    "assigned already");
	BAD("(g)\n*a *.a.example", "2: \"*.a.example\": these tenants are in no "
	    "group");
	BAD("(g)\n*a *.a.example group=g limit=0.5 reservation=0.1",
	    "2: reservation=0.1: any number of Hosts would have this");
	BAD("(g)\n*a *.a.example group=g memory_reservation=1MB",
	    "any number of Hosts would have this");
	BAD("a \x01", "has a character that is not allowed");
}

static void
test_all_errors_are_told(void **state)
{

	(void)state;
	assert_int_equal(read_text("a weight=x target=y b:80\n"
	    "b b..example c_example:80\n"
	    "(g) weight=x\n"
	    "c group=g"), 6);
	assert_string_equal(told, "3: weight=x is not allowed: use a number, "
	    "such as 2\n"
	    "1: weight=x is not allowed: use a number, such as 2\n"
	    "1: target=y is not allowed: use a time with ms, s, m, h or d, "
	    "such as 200ms\n"
	    "2: \"b..example\": a label is empty: use one dot between two "
	    "labels, and none at the start\n"
	    "2: \"c_example:80\": the pattern has a port: remove the port\n"
	    "4: group=g: the group is not declared: declare it first\n");
}

static void
test_a_file_that_is_none(void **state)
{

	(void)state;
	assert_int_equal(read_bytes("a\0b", 3), 1);
	assert_string_equal(told, "0: the file has a NUL byte: use a text "
	    "file\n");
	*told = '\0';
	assert_int_equal(FILE_Read(map, "/nonexistent", tell, map), 1);
	assert_string_equal(told, "0: the file cannot be opened: No such file "
	    "or directory\n");
	*told = '\0';
	assert_int_equal(truncate(path, (64 << 20) + 1), 0);
	assert_int_equal(FILE_Read(map, path, tell, map), 1);
	assert_string_equal(told, "0: the file is too large: use at most 64 "
	    "MB\n");
	*told = '\0';
	assert_int_equal(FILE_Read(map, "/dev/zero", tell, map), 1);
	assert_string_equal(told, "0: this is no regular file: use a text "
	    "file\n");
	*told = '\0';
	assert_int_equal(FILE_Read(map, "/", tell, map), 1);
	assert_string_equal(told, "0: the file cannot be read: Is a "
	    "directory\n");
}

static void
test_a_large_file(void **state)
{
	char *text = malloc(MANY * 100), *p = text, host[100], name[100];
	unsigned u;

	(void)state;
	assert_non_null(text);
	for (u = 0; u < MANY; u++)
		p += sprintf(p, "t%u www.t%u.example *.t%u.test weight=2 "
		    "group=all reservation=0.00001\n", u, u, u);
	(void)sprintf(p, "(all)\n");
	GOOD(text);
	assert_int_equal(map->tenants, MANY + 1);
	for (u = 0; u < MANY; u += 1009) {
		(void)sprintf(name, "t%u", u);
		(void)sprintf(host, "www.t%u.example", u);
		assert_string_equal(of(host), name);
		(void)sprintf(host, "a.b.t%u.test", u);
		assert_string_equal(of(host), name);
	}
	/* One line with many Hosts */
	p = text + sprintf(text, "one");
	for (u = 0; u < MANY; u++)
		p += sprintf(p, " h%u.example", u);
	GOOD(text);
	assert_int_equal(map->nhost, MANY);
	assert_string_equal(of("h49999.example"), "one");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line_is_a_tenant),
		cmocka_unit_test(test_an_error_has_its_line),
		cmocka_unit_test(test_all_errors_are_told),
		cmocka_unit_test(test_a_file_that_is_none),
		cmocka_unit_test(test_a_large_file),
	};

	return (cmocka_run_group_tests(tests, begin, end));
}
