/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Names to tenants: the hash, the slab, eviction, and looking up while the
 * set changes.
 */

#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tenants/siphash.h"
#include "tenants/table.h"

static const uint8_t seed[16] = { 1, 2, 3, 4, 5, 6, 7, 8 };

struct life {
	unsigned	born, died;
	int		busy;		/* nobody may go */
	const char	*keep;		/* nor may this one */
};

static int
idle(void *priv, struct ten_record *r)
{
	const struct life *l = priv;

	return (!l->busy && (l->keep == NULL || strcmp(l->keep, r->name)));
}

static void
born(void *priv, struct ten_record *r)
{
	struct life *l = priv;

	assert_true(r->generation & 1);
	assert_int_equal(*(uint64_t *)TEN_Data(r), 0);
	*(uint64_t *)TEN_Data(r) = ++l->born;
}

static void
died(void *priv, struct ten_record *r)
{
	struct life *l = priv;

	assert_true(r->generation & 1);
	l->died++;
}

static struct ten_table *
new_table(unsigned max, struct life *l)
{
	const struct ten_ops ops = {
		.host_size = 100, .idle = idle, .born = born, .died = died,
		.priv = l,
	};

	memset(l, 0, sizeof *l);
	return (TEN_New(max, &ops, seed));
}

static struct ten_record *
add(struct ten_table *t, unsigned i)
{
	char name[32];

	(void)snprintf(name, sizeof name, "host%u.example", i);
	return (TEN_Add(t, name, strlen(name)));
}

static struct ten_record *
find(const struct ten_table *t, unsigned i)
{
	char name[32];

	(void)snprintf(name, sizeof name, "host%u.example", i);
	return (TEN_Find(t, name, strlen(name)));
}

/* Vectors of the paper's appendix A and of the reference implementation */
static void
test_siphash(void **priv)
{
	uint8_t key[16], in[15];
	unsigned i;

	(void)priv;
	for (i = 0; i < 16; i++)
		key[i] = (uint8_t)i;
	for (i = 0; i < 15; i++)
		in[i] = (uint8_t)i;
	assert_true(siphash(key, in, 15) == UINT64_C(0xa129ca6149be45e5));
	assert_true(siphash(key, in, 0) == UINT64_C(0x726fdb47dd0e0e31));
	assert_true(siphash(key, in, 8) == UINT64_C(0x93f5f5799a932462));
}

static void
test_find(void **priv)
{
	char name[300], zero[3] = { 'a', '\0', 'b' };
	struct ten_record *r;
	struct ten_table *t;
	struct life l;
	unsigned i;

	(void)priv;
	t = new_table(1000, &l);
	assert_non_null(t);
	for (i = 0; i < 1000; i++) {
		assert_null(find(t, i));
		r = add(t, i);
		assert_ptr_not_equal(r, TEN_Other(t));
		assert_ptr_equal(r, add(t, i));
		assert_ptr_equal(TEN_OfData(TEN_Data(r)), r);
		assert_int_equal((uintptr_t)TEN_Data(r) % 64, 0);
	}
	assert_int_equal(TEN_Count(t), 1000);
	assert_int_equal(l.born, 1001);
	for (i = 0; i < 1000; i++)
		assert_int_equal(*(uint64_t *)TEN_Data(find(t, i)), i + 2);
	assert_int_equal(TEN_SetMax(t, 2000), 0);
	for (i = 0; i < 1000; i++)
		assert_non_null(find(t, i));

	memset(name, 'x', sizeof name);
	r = TEN_Add(t, name, sizeof name);
	assert_int_equal(r->namelen, TEN_NAME_MAX);
	assert_ptr_equal(TEN_Find(t, name, TEN_NAME_MAX), r);
	assert_null(TEN_Find(t, name, TEN_NAME_MAX - 1));
	r = TEN_Add(t, "", 0);
	assert_ptr_equal(TEN_Find(t, "", 0), r);
	assert_ptr_equal(TEN_Add(t, TEN_OTHER, 7), TEN_Other(t));
	r = TEN_Add(t, zero, 3);
	assert_null(TEN_Find(t, zero, 1));
	assert_ptr_equal(TEN_Find(t, zero, 3), r);
	TEN_Destroy(&t);
	assert_null(t);
	assert_int_equal(l.born, l.died);
}

static void
test_full(void **priv)
{
	struct ten_record *r;
	struct ten_table *t;
	struct life l;
	unsigned i;

	(void)priv;
	t = new_table(100, &l);
	l.busy = 1;
	for (i = 0; i < 100; i++)
		(void)add(t, i);
	/* All have work: newcomers are (other), counted */
	assert_ptr_equal(add(t, 100), TEN_Other(t));
	assert_int_equal(TEN_Overflows(t), 1);
	assert_int_equal(TEN_Count(t), 100);
	/* None has: a newcomer takes an old place; pinned ones stay */
	l.busy = 0;
	for (i = 0; i < 10; i++)
		TEN_Pin(t, find(t, i), 1);
	for (i = 1000; i < 2000; i++)
		assert_ptr_not_equal(add(t, i), TEN_Other(t));
	for (i = 0; i < 10; i++)
		assert_non_null(find(t, i));
	assert_int_equal(TEN_Evict(t, find(t, 3)), -1);
	assert_int_equal(TEN_Evict(t, TEN_Other(t)), -1);
	assert_int_equal(TEN_Count(t), 100);
	/* A lower limit: the idle ones go at once, the pinned ones stay */
	assert_int_equal(TEN_SetMax(t, 4), 0);
	assert_int_equal(TEN_Count(t), 10);
	assert_ptr_equal(add(t, 5000), TEN_Other(t));
	TEN_Pin(t, find(t, 0), 0);
	r = find(t, 0);
	assert_int_equal(TEN_Evict(t, r), 0);
	assert_int_equal(r->generation & 1, 0);
	assert_null(find(t, 0));
	assert_false(TEN_Is(r, "host0.example", 13));
	TEN_Destroy(&t);
	assert_int_equal(l.born, l.died);
}

/* Who is looked up in every tick survives a flood of other names */
static void
test_clock(void **priv)
{
	struct ten_table *t;
	unsigned i, j;
	struct life l;

	(void)priv;
	t = new_table(200, &l);
	for (i = 0; i < 20; i++)
		(void)add(t, i);
	for (i = 0; i < 20000; i++) {
		if (i % 10 == 0)
			TEN_Tick(t);
		for (j = 0; j < 20; j++)
			assert_non_null(find(t, j));
		assert_ptr_not_equal(add(t, 1000 + i), TEN_Other(t));
	}
	assert_int_equal(TEN_Count(t), 200);
	assert_int_equal(TEN_Overflows(t), 0);
	TEN_Destroy(&t);
}

/* One with work is never evicted, however many come */
static void
test_keep(void **priv)
{
	struct ten_table *t;
	struct life l;
	unsigned i;

	(void)priv;
	t = new_table(50, &l);
	l.keep = "host7.example";
	for (i = 0; i < 5000; i++) {
		(void)add(t, i);
		TEN_Tick(t);
	}
	assert_non_null(find(t, 7));
	TEN_Destroy(&t);
}

static void
test_at(void **priv)
{
	struct ten_record *r;
	struct ten_table *t;
	unsigned i, n = 0;
	struct life l;

	(void)priv;
	t = new_table(500, &l);
	for (i = 0; i < 500; i++)
		(void)add(t, i);
	for (i = 0; i < 500; i += 3)
		assert_int_equal(TEN_Evict(t, find(t, i)), 0);
	assert_ptr_equal(TEN_At(t, 0), TEN_Other(t));
	for (i = 1; (r = TEN_At(t, i)) != NULL; i++) {
		assert_ptr_equal(TEN_Find(t, r->name, r->namelen), r);
		n++;
	}
	assert_int_equal(n, 333);
	assert_int_equal(n, TEN_Count(t));
	TEN_Destroy(&t);
}

/* The one not seen for longest goes, and nobody else */
static void
test_oldest_goes(void **priv)
{
	struct ten_table *t;
	struct life l;
	unsigned i;

	(void)priv;
	t = new_table(20, &l);
	for (i = 0; i < 20; i++)
		(void)add(t, i);
	for (i = 0; i < 20; i++) {
		TEN_Tick(t);
		assert_non_null(find(t, i * 7 % 20));
	}
	for (i = 0; i < 20; i++) {
		TEN_Tick(t);
		(void)add(t, 100 + i);
		assert_int_equal(TEN_Count(t), 20);
		assert_null(find(t, i * 7 % 20));
	}
	/* Of those of one tick any may go, but one */
	(void)add(t, 200);
	assert_int_equal(TEN_Count(t), 20);
	assert_int_equal(l.died, 21);
	TEN_Destroy(&t);
}

/* A lowered limit that could not be kept is reached by those who come: each
 * makes two go */
static void
test_limit_is_reached(void **priv)
{
	struct ten_table *t;
	struct life l;
	unsigned i;

	(void)priv;
	t = new_table(10, &l);
	l.busy = 1;
	for (i = 0; i < 10; i++)
		(void)add(t, i);
	assert_int_equal(TEN_SetMax(t, 4), 0);
	assert_int_equal(TEN_Count(t), 10);
	l.busy = 0;
	for (i = 1; i <= 3; i++) {
		assert_ptr_equal(add(t, 100), TEN_Other(t));
		assert_int_equal(TEN_Count(t), 10 - 2 * i);
	}
	assert_ptr_not_equal(add(t, 100), TEN_Other(t));
	assert_int_equal(TEN_Count(t), 4);
	assert_int_equal(TEN_Overflows(t), 3);
	/* No more go than have to */
	assert_int_equal(TEN_SetMax(t, 3), 0);
	assert_int_equal(TEN_Count(t), 3);
	/* A limit of nobody */
	assert_int_equal(TEN_SetMax(t, 0), 0);
	assert_int_equal(TEN_Count(t), 0);
	assert_ptr_equal(add(t, 5), TEN_Other(t));
	TEN_Destroy(&t);
}

/* A record of the host's own: found, never evicted, not counted, the last */
static void
test_reserve(void **priv)
{
	struct ten_record *r;
	struct ten_table *t;
	struct life l;
	unsigned i;

	(void)priv;
	t = new_table(3, &l);
	assert_null(TEN_At(t, 1));
	r = TEN_Reserve(t, "own");
	assert_non_null(r);
	assert_int_equal(TEN_Count(t), 0);
	assert_ptr_equal(TEN_At(t, 1), r);
	assert_null(TEN_At(t, 2));
	for (i = 0; i < 20; i++)
		assert_ptr_not_equal(add(t, i), TEN_Other(t));
	assert_int_equal(TEN_Count(t), 3);
	assert_ptr_equal(TEN_Find(t, "own", 3), r);
	assert_ptr_equal(TEN_Add(t, "own", 3), r);
	assert_true(TEN_Is(r, "own", 3));
	assert_int_equal(TEN_Evict(t, r), -1);
	assert_ptr_equal(TEN_At(t, 4), r);
	assert_null(TEN_At(t, 5));
	assert_int_equal((uintptr_t)TEN_Data(r) % 64, 0);
	TEN_Destroy(&t);
	assert_int_equal(l.born, l.died);
}

/* A record whose tenant has gone is nobody's, though its name is still there;
 * a pin goes with the tenant */
static void
test_gone(void **priv)
{
	struct ten_record *r, *q;
	struct ten_table *t;
	struct life l;

	(void)priv;
	t = new_table(10, &l);
	r = add(t, 1);
	assert_true(TEN_Is(r, "host1.example", 13));
	assert_false(TEN_Is(r, "host1.example", 12));
	assert_false(TEN_Is(r, "host2.example", 13));
	assert_false(TEN_Is(r, "host1.exampl_", 13));
	assert_false(TEN_Is(r, "_ost1.example", 13));
	TEN_Pin(t, r, 1);
	TEN_Pin(t, r, 0);
	assert_int_equal(TEN_Evict(t, r), 0);
	assert_string_equal(r->name, "host1.example");
	assert_false(TEN_Is(r, "host1.example", 13));
	q = add(t, 1);
	assert_ptr_equal(q, r);
	assert_true(TEN_Is(r, "host1.example", 13));
	TEN_Destroy(&t);
}

/* The host's bytes are its own, whatever their number */
static void
test_host_bytes(void **priv)
{
	static const size_t sizes[] = { 1, 63, 64, 65, 128, 129 };
	struct ten_ops ops = { 0 };
	struct ten_table *t;
	unsigned i, j;
	char *host;

	(void)priv;
	for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		ops.host_size = sizes[i];
		t = TEN_New(100, &ops, seed);
		assert_non_null(TEN_Reserve(t, "own"));
		for (j = 0; j < 100; j++)
			memset(TEN_Data(add(t, j)), (int)j, sizes[i]);
		memset(TEN_Data(TEN_At(t, 0)), 0xff, sizes[i]);
		memset(TEN_Data(TEN_At(t, 101)), 0xff, sizes[i]);
		for (j = 0; j < 100; j++) {
			assert_non_null(find(t, j));
			host = TEN_Data(find(t, j));
			assert_int_equal((uintptr_t)host % 64, 0);
			assert_int_equal(host[0], j);
			assert_int_equal(host[sizes[i] - 1], j);
		}
		TEN_Destroy(&t);
	}
}

/* A table leaves no memory behind */
static void
test_nothing_left(void **priv)
{
	struct mallinfo2 before = { 0 }, after;
	struct ten_table *t;
	struct life l;
	unsigned i, j;

	(void)priv;
	for (i = 0; i < 202; i++) {
		if (i == 2)
			before = mallinfo2();
		t = new_table(500, &l);
		(void)TEN_Reserve(t, "own");
		for (j = 0; j < 500; j++)
			(void)add(t, j);
		TEN_Destroy(&t);
		assert_int_equal(l.born, 502);
		assert_int_equal(l.died, 502);
	}
	after = mallinfo2();
	assert_true(after.uordblks + after.hblkhd <
	    before.uordblks + before.hblkhd + 20000);
}

static struct {
	struct ten_table	*t;
	struct ten_record	*r;
	char			*name;
	size_t			page;
} look;

/* Between two looks another name takes the record */
static void
take_over(int sig)
{

	(void)sig;
	if (mprotect(look.name, look.page, PROT_READ) != 0 ||
	    TEN_Evict(look.t, look.r) != 0 ||
	    TEN_Add(look.t, "bx", 2) != look.r)
		abort();
}

/* The name changes after its first byte was compared: the look at the
 * generation behind the comparison tells */
static void
test_second_look(void **priv)
{
	struct sigaction sa = { .sa_handler = take_over }, before;
	struct life l;

	(void)priv;
	look.page = (size_t)sysconf(_SC_PAGESIZE);
	look.t = new_table(10, &l);
	look.r = TEN_Add(look.t, "ax", 2);
	look.name = mmap(NULL, look.page, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(look.name != MAP_FAILED);
	memcpy(look.name, "ax", 2);
	assert_true(TEN_Is(look.r, look.name, 2));
	assert_int_equal(sigaction(SIGSEGV, &sa, &before), 0);
	assert_int_equal(mprotect(look.name, look.page, PROT_NONE), 0);
	assert_false(TEN_Is(look.r, look.name, 2));
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_true(TEN_Is(look.r, "bx", 2));
	assert_int_equal(munmap(look.name, look.page), 0);
	TEN_Destroy(&look.t);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern void *__libc_calloc(size_t, size_t);
static unsigned calloc_fails;		/* at which call from now on; 0: never */

void *
calloc(size_t n, size_t size)
{

	if (calloc_fails > 0 && --calloc_fails == 0)
		return (NULL);
	return (__libc_calloc(n, size));
}

/* Without memory there is no table, no own record, and newcomers are (other) */
static void
test_no_memory(void **priv)
{
	struct ten_table *t;
	struct life l;
	unsigned i;

	(void)priv;
	for (i = 1; i <= 2; i++) {
		calloc_fails = i;
		assert_null(new_table(1000, &l));
		assert_int_equal(calloc_fails, 0);
	}
	t = new_table(1000, &l);
	calloc_fails = 1;
	assert_null(TEN_Reserve(t, "own"));
	calloc_fails = 1;
	assert_ptr_equal(add(t, 0), TEN_Other(t));
	assert_int_equal(TEN_Count(t), 0);
	for (i = 0; i < 64; i++)
		assert_ptr_not_equal(add(t, i), TEN_Other(t));
	calloc_fails = 1;
	assert_ptr_equal(add(t, 64), TEN_Other(t));
	assert_ptr_not_equal(add(t, 64), TEN_Other(t));
	assert_int_equal(TEN_Overflows(t), 2);
	TEN_Destroy(&t);
}

#endif

/*--------------------------------------------------------------------
 * Looking up without a lock, while another thread adds and evicts
 */

struct reader {
	struct ten_table	*t;
	int			stop;
	unsigned		missing;	/* of a pinned name */
	uint64_t		found;
};

static void *
reader(void *priv)
{
	struct reader *rd = priv;
	unsigned i = 0;

	while (!__atomic_load_n(&rd->stop, __ATOMIC_ACQUIRE)) {
		if (find(rd->t, 0) == NULL)
			rd->missing++;
		rd->found += find(rd->t, 1 + i++ % 300) != NULL;
	}
	return (NULL);
}

static void
test_threads(void **priv)
{
	struct reader rd = { 0 };
	pthread_t thread;
	struct life l;
	unsigned i;

	(void)priv;
	rd.t = new_table(100, &l);
	TEN_Pin(rd.t, add(rd.t, 0), 1);
	assert_int_equal(pthread_create(&thread, NULL, reader, &rd), 0);
	for (i = 0; i < 100000; i++) {
		(void)add(rd.t, 1 + i * 7919 % 300);
		if (i % 1000 == 0)
			TEN_Tick(rd.t);
	}
	assert_int_equal(TEN_SetMax(rd.t, 5000), 0);
	for (i = 0; i < 5000; i++)
		(void)add(rd.t, i);
	__atomic_store_n(&rd.stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rd.missing, 0);
	TEN_Destroy(&rd.t);
	assert_int_equal(l.born, l.died);
}

/*--------------------------------------------------------------------
 * Memory is that of those in use: the last chunk's other half is not touched
 */

#define MANY	10000
#define MOST	600		/* bytes a tenant, with 100 of the host's */

static long
resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
	(void)fclose(f);
	return (pages * sysconf(_SC_PAGESIZE));
}

static void
test_memory(void **priv)
{
	struct ten_table *t;
	struct life l;
	unsigned i;
	long before;

	(void)priv;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("not applicable: a sanitizer's heap is larger\n");
	skip();
#endif
	t = new_table(MANY, &l);
	assert_non_null(t);
	before = resident();
	for (i = 0; i < MANY; i++)
		(void)add(t, i);
	assert_int_equal(TEN_Count(t), MANY);
	assert_in_range(resident() - before, 0, MANY * MOST);
	TEN_Destroy(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_siphash),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_keep),
		cmocka_unit_test(test_at),
		cmocka_unit_test(test_oldest_goes),
		cmocka_unit_test(test_limit_is_reached),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_host_bytes),
		cmocka_unit_test(test_nothing_left),
		cmocka_unit_test(test_second_look),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(test_no_memory),
#endif
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_memory),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
