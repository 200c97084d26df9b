/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A simulated cache with the admission and the memory of varnishd: the same
 * code (src/admission, src/memory), on a trace of requests.
 *
 * An object that is larger than the cache does not enter, and nothing makes
 * room for it, as in libCacheSim.  A request is over before the next begins.
 * So no object is in transit, and none is in use when room is needed.  The
 * result is one JSON object on standard output.
 */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission/sketch.h"
#include "admission/tuner.h"
#include "memory/store.h"
#include "splitmix.h"
#include "trace.h"

#define TENANTS		65536		/* the object's upper 16 bits */
#define NOBODY		UINT32_MAX

struct object {
	uint64_t		id;
	uint32_t		size, owner;
	uint32_t		asked;		/* requests so far */
	uint64_t		last;		/* number of the last one */
	uint32_t		newer, older;	/* in its list, or NOBODY */
	int			in;		/* the cache */
};

struct list {
	uint32_t		newest, oldest;
};

struct count {
	uint64_t		asked, hits, bytes, hit_bytes;
};

struct tenant {
	struct count		half[2];	/* of the trace */
	uint32_t		owner;
	int			known;
};

static struct {
	double			capacity;	/* bytes */
	int			tuned;
	double			c;		/* bytes, if not tuned */
	enum adm_form		form;
	unsigned		shift;
	uint64_t		delta, seed;
	int			frequency;	/* model.h */
	double			threshold;	/* bytes of the largest object */
	uint32_t		uses;		/* the request that admits it */
	int			own;		/* a list for each tenant */
	uint64_t		idle;		/* requests; 0: no limit */
} options = { .c = INFINITY, .frequency = 1, .threshold = INFINITY,
    .delta = 250000, .seed = 1 };

static struct object *object;
static uint32_t *slot;			/* hash table: index + 1, or 0 */
static size_t slots, objects;
static struct list *list;
static struct tenant tenant[TENANTS];
static struct owners *owners;
static struct store *store;
static struct tuner tuner[1];
static struct sketch sketch[1];
static double used;
static uint64_t state;			/* of the random numbers */
static uint64_t now;			/* requests so far */

static void *
room(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (p == NULL)
		fail("memory", strerror(errno));
	return (p);
}

/*--------------------------------------------------------------------
 * The trace
 */

/* Return the object of a record. */
static struct object *
object_of(const struct record *r)
{
	size_t at = splitmix(r->object) & (slots - 1);
	struct object *o;

	for (; slot[at] != 0; at = (at + 1) & (slots - 1))
		if (object[slot[at] - 1].id == r->object)
			return (&object[slot[at] - 1]);
	o = &object[objects++];
	slot[at] = (uint32_t)objects;
	o->id = r->object;
	o->size = r->size;
	return (o);
}

static struct tenant *
tenant_of(uint64_t id)
{
	struct tenant *t = &tenant[id >> 48];

	if (!t->known) {
		t->known = 1;
		t->owner = OWN_Begin(owners);
	}
	return (t);
}

/*--------------------------------------------------------------------
 * The cache
 */

static void
unlist(struct object *o)
{
	struct list *l = &list[STORE_List(o->owner, options.own)];

	if (o->newer != NOBODY)
		object[o->newer].older = o->older;
	else
		l->newest = o->older;
	if (o->older != NOBODY)
		object[o->older].newer = o->newer;
	else
		l->oldest = o->newer;
}

static void
list_newest(struct object *o)
{
	struct list *l = &list[STORE_List(o->owner, options.own)];
	uint32_t at = (uint32_t)(o - object);

	o->newer = NOBODY;
	o->older = l->newest;
	if (l->newest != NOBODY)
		object[l->newest].newer = at;
	else
		l->oldest = at;
	l->newest = at;
}

/* Return the oldest object of the owner that is next in turn, if it is idle.
 * Else NULL.  As in hook_store.c. */
static struct object *
idle_one(void)
{
	unsigned at = STORE_Look(store);
	struct object *o = at == STORE_END ? NULL : &object[list[at].oldest];

	return (o != NULL && now - o->last > options.idle ? o : NULL);
}

static void
evict_for(uint32_t owner, uint64_t bytes)
{
	struct store_search search;
	struct object *o = NULL;

	if (options.own && options.idle > 0)
		o = idle_one();
	if (o == NULL)
		o = &object[list[STORE_Victim(&search, store, owner, bytes,
		    options.own)].oldest];
	unlist(o);
	STORE_Remove(store, o->owner, o->size, options.own);
	used -= o->size;
	o->in = 0;
}

static int
admits(const struct object *o)
{
	double c = options.tuned ? tuner->c : options.c, bytes = o->size;
	double f = 1;

	if (bytes > options.threshold || o->asked < options.uses)
		return (0);
	if (options.frequency)
		f = SKETCH_Count(sketch, splitmix(o->id));
	return (bytes <= options.capacity &&
	    bytes <= ADM_Largest(c, f, splitmix_draw(&state)));
}

/* A client asks for an object: return 1 if it is a hit. */
static int
ask(struct object *o, uint32_t owner)
{

	o->asked++;
	o->last = ++now;
	if (o->in) {
		unlist(o);
		list_newest(o);
		return (1);
	}
	if (!admits(o))
		return (0);
	while (used + o->size > options.capacity)
		evict_for(owner, o->size);
	o->owner = owner;
	o->in = 1;
	used += o->size;
	STORE_Add(store, owner, o->size, options.own);
	list_newest(o);
	return (0);
}

static void
count(struct count *k, const struct object *o, int hit)
{

	k->asked++;
	k->bytes += o->size;
	if (hit) {
		k->hits++;
		k->hit_bytes += o->size;
	}
}

/*--------------------------------------------------------------------
 * The result
 */

static double
part(uint64_t of, uint64_t all)
{

	return (all == 0 ? 0 : (double)of / (double)all);
}

static void
print_c(const char *name, double c)
{

	if (isinf(c))
		(void)printf("\"%s\": null", name);
	else
		(void)printf("\"%s\": %.0f", name, c);
}

static void
print_window(const struct count *k, double c, int first)
{

	(void)printf("%s\n  {\"requests\": %" PRIu64 ", \"objects\": %.6f, "
	    "\"bytes\": %.6f, ", first ? "" : ",", k->asked,
	    part(k->hits, k->asked), part(k->hit_bytes, k->bytes));
	print_c("c", c);
	if (options.tuned)
		(void)printf(", \"predicted\": %.6f, \"measured\": %.6f, "
		    "\"measured_all\": %.6f", tuner->predicted.objects,
		    tuner->measured, tuner->measured_all);
	(void)printf("}");
}

static void
print_end(const struct count *all)
{
	struct count half[2] = { { 0 } };
	const struct tenant *t;
	int first = 1, h;

	(void)printf("\n ],\n \"tenants\": [");
	for (t = tenant; t < tenant + TENANTS; t++)
		if (t->known) {
			(void)printf("%s\n  {\"tenant\": %td, \"first\": %.6f, "
			    "\"second\": %.6f, \"bytes\": %" PRIu64 "}",
			    first ? "" : ",", t - tenant,
			    part(t->half[0].hits, t->half[0].asked),
			    part(t->half[1].hits, t->half[1].asked),
			    OWN_Bytes(owners, t->owner));
			first = 0;
			for (h = 0; h < 2; h++) {
				half[h].asked += t->half[h].asked;
				half[h].hits += t->half[h].hits;
			}
		}
	(void)printf("\n ],\n \"first\": %.6f, \"second\": %.6f,",
	    part(half[0].hits, half[0].asked),
	    part(half[1].hits, half[1].asked));
	(void)printf("\n \"requests\": %" PRIu64 ", \"objects\": %.6f, "
	    "\"bytes\": %.6f, \"fallbacks\": %" PRIu64 "\n}\n", all->asked,
	    part(all->hits, all->asked), part(all->hit_bytes, all->bytes),
	    options.tuned ? tuner->fallbacks : 0);
}

/*--------------------------------------------------------------------
 * The run
 */

static void
prepare(size_t n)
{
	unsigned u;

	for (slots = 1; slots < 2 * n; slots *= 2)
		continue;
	slot = room(slots, sizeof *slot);
	object = room(n, sizeof *object);
	owners = OWN_New(TENANTS);
	store = owners == NULL ? NULL : STORE_New(owners);
	if (store == NULL || TUNER_Init(tuner, options.shift, 1U << 20,
	    options.delta, options.seed) != 0)
		fail("memory", strerror(errno));
	tuner->form = options.form;
	tuner->frequency = options.frequency;
	if (SKETCH_Init(sketch, 1 << 20) != 0)
		fail("memory", strerror(errno));
	list = room(OWN_Room(owners) + 1, sizeof *list);
	for (u = 0; u < OWN_Room(owners) + 1; u++)
		list[u].newest = list[u].oldest = NOBODY;
	state = options.seed;
}

static void
run(const struct record *trace, size_t n)
{
	struct count all = { 0 }, window = { 0 };
	const struct record *r;
	struct object *o;
	struct tenant *t;
	double c;
	int hit, first = 1, ends;
	size_t i;

	(void)printf("{\n \"windows\": [");
	for (i = 0; i < n; i++) {
		r = &trace[i];
		o = object_of(r);
		t = tenant_of(r->object);
		hit = ask(o, t->owner);
		count(&all, o, hit);
		count(&window, o, hit);
		count(&t->half[i >= n / 2], o, hit);
		/* The first windows of the tuner are shorter than delta */
		if (options.tuned)
			ends = TUNER_Ask(tuner, splitmix(o->id), o->size,
			    options.capacity, NULL);
		else
			ends = window.asked == options.delta;
		c = options.tuned ? tuner->c : options.c;
		if (ends)
			SKETCH_Age(sketch);
		if (options.tuned && ends)
			TUNER_Tune(tuner, options.capacity);
		if (window.asked < options.delta && i + 1 < n)
			continue;
		print_window(&window, c, first);
		memset(&window, 0, sizeof window);
		first = 0;
	}
	print_end(&all);
}

/*--------------------------------------------------------------------
 * The command line
 */

static void
usage(FILE *f)
{

	(void)fprintf(f, "use: simulate [OPTION..] TRACE BYTES\n"
	    "  BYTES              capacity of the cache\n"
	    "  --admission VALUE  off (the default), on, or a fixed c in "
	    "bytes\n"
	    "  --frequency VALUE  on: an object with more requests counts as "
	    "smaller (the default); off: as in AdaptSize\n"
	    "  --threshold BYTES  admit no larger object (no limit)\n"
	    "  --uses N           admit an object from its Nth request on (1)\n"
	    "  --form NAME        pade (the default), exact or transient\n"
	    "  --memory VALUE     off: one LRU list (the default); on: a list "
	    "for each tenant\n"
	    "  --idle N           a tenant's list keeps an object for N "
	    "requests after its last one; 0: for ever (0)\n"
	    "  --delta N          requests of a window (250000)\n"
	    "  --sample N         1 in N objects is sampled, a power of 2 (1)\n"
	    "  --seed N           of the random numbers (1)\n");
}

static enum adm_form
form_of(const char *s)
{
	unsigned u;

	for (u = 0; ADM_FormName(u) != NULL; u++)
		if (!strcmp(ADM_FormName(u), s))
			return ((enum adm_form)u);
	fail("--form", "use pade, exact or transient");
	return (ADM_PADE);
}

static int
on_or_off(const char *option, const char *s)
{

	if (strcmp(s, "on") && strcmp(s, "off"))
		fail(option, "use on or off");
	return (!strcmp(s, "on"));
}

static void
set_option(int option, const char *s)
{

	switch (option) {
	case 'a':
		options.tuned = !strcmp(s, "on");
		if (!options.tuned && strcmp(s, "off"))
			options.c = number("--admission", s, 1, 1e15);
		break;
	case 'f':
		options.form = form_of(s);
		break;
	case 't':
		options.threshold = number("--threshold", s, 1, 1e15);
		break;
	case 'u':
		options.uses = (uint32_t)number("--uses", s, 1, 1e9);
		break;
	case 'm':
		options.own = on_or_off("--memory", s);
		break;
	case 'i':
		options.idle = (uint64_t)number("--idle", s, 0, 1e15);
		break;
	case 'q':
		options.frequency = on_or_off("--frequency", s);
		break;
	case 'd':
		options.delta = (uint64_t)number("--delta", s, 1000, 1e9);
		break;
	case 'n':
		options.shift = (unsigned)ilogb(number("--sample", s, 1,
		    65536));
		break;
	case 's':
		options.seed = (uint64_t)number("--seed", s, 0, 1e15);
		break;
	case 'h':
		usage(stdout);
		exit(0);
	default:
		usage(stderr);
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "admission", required_argument, NULL, 'a' },
		{ "form", required_argument, NULL, 'f' },
		{ "memory", required_argument, NULL, 'm' },
		{ "idle", required_argument, NULL, 'i' },
		{ "delta", required_argument, NULL, 'd' },
		{ "sample", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ "frequency", required_argument, NULL, 'q' },
		{ "threshold", required_argument, NULL, 't' },
		{ "uses", required_argument, NULL, 'u' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	const struct record *trace;
	int option;
	size_t n;

	program = "simulate";
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
		set_option(option, optarg);
	if (argc - optind != 2) {
		usage(stderr);
		return (2);
	}
	options.capacity = number("BYTES", argv[optind + 1], 1, 1e15);
	trace = trace_open(argv[optind], &n);
	prepare(n);
	run(trace, n);
	return (0);
}
