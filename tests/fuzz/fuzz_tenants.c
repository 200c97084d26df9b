/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of names: an input is a sequence of look-ups, additions,
 * evictions, pins, ticks and limits, with names of any bytes and length.
 *
 * A plain list beside it says who is in.  After each call, or a few:
 *  - who is in is found, under the whole name, and nobody else is; a record
 *    never moves, and its host's bytes are its own, zero at birth;
 *  - a newcomer has a record if there is room or somebody may go, else it
 *    is (other), counted; (other) is always there;
 *  - nobody goes that is pinned or not idle, but at the end;
 *  - there are never more than the limit, but for those that could not go
 *    when it was lowered;
 *  - a dead record's generation is even and it is nobody's.
 */

#include "fuzz.h"

#include "tenants/table.h"

#define NAMES		160		/* most that can be in, and more */
#define LIMIT		100		/* more than a chunk of the slab */
#define NAME_MAX_IN	300

struct host {
	unsigned		number;		/* of the one who was born */
	unsigned		place;		/* in fuzz.in_table */
	int			busy;
	char			fill[50];
};

struct who {
	struct ten_record	*r;
	size_t			len;
	char			name[TEN_NAME_MAX];
	unsigned		number;
	int			pinned;
};

struct fuzz {
	struct fuzz_in		in;
	struct ten_table	*t;
	struct who		in_table[NAMES];
	unsigned		n, born, died, limit;
	struct ten_record	*dead;		/* the last that went */
	unsigned		calls;
	int			ending;
};

static struct who *
by_record(struct fuzz *f, struct ten_record *r)
{
	const struct host *h = TEN_Data(r);

	if (h->place >= f->n || f->in_table[h->place].r != r)
		return (NULL);
	return (&f->in_table[h->place]);
}

static struct who *
by_name(struct fuzz *f, const char *name, size_t len)
{
	unsigned i;

	if (len > TEN_NAME_MAX)
		len = TEN_NAME_MAX;
	for (i = 0; i < f->n; i++)
		if (f->in_table[i].len == len &&
		    memcmp(f->in_table[i].name, name, len) == 0)
			return (&f->in_table[i]);
	return (NULL);
}

/*--------------------------------------------------------------------
 * What the table calls
 */

static int
idle(void *priv, struct ten_record *r)
{
	(void)priv;
	return (!((struct host *)TEN_Data(r))->busy);
}

static void
born(void *priv, struct ten_record *r)
{
	static const struct host zero;
	struct fuzz *f = priv;
	struct host *h = TEN_Data(r);

	assert(TEN_OfData(h) == r && (uintptr_t)h % 64 == 0);
	assert(memcmp(h, &zero, sizeof zero) == 0);
	assert((r->generation & 1) && r->pinned == (f->born == 0));
	memset(h->fill, (int)++f->born, sizeof h->fill);
	h->number = f->born;
}

static void
died(void *priv, struct ten_record *r)
{
	const struct host *h = TEN_Data(r);
	struct fuzz *f = priv;
	struct who *w;

	f->died++;
	if (f->ending)
		return;
	w = by_record(f, r);
	assert(w != NULL && !w->pinned && !h->busy);
	assert(w->number == h->number);
	*w = f->in_table[--f->n];
	((struct host *)TEN_Data(w->r))->place = h->place;
	f->dead = r;
}

/*--------------------------------------------------------------------*/

static void
judge_host(struct ten_record *r, unsigned number)
{
	const struct host *h = TEN_Data(r);
	char fill[sizeof h->fill];

	assert(h->number == number);
	memset(fill, (int)number, sizeof fill);
	assert(memcmp(h->fill, fill, sizeof fill) == 0);
}

static void
judge_all(struct fuzz *f)
{
	struct ten_record *r;
	unsigned i;

	assert(TEN_At(f->t, 0) == TEN_Other(f->t));
	assert(TEN_Is(TEN_Other(f->t), TEN_OTHER, strlen(TEN_OTHER)));
	judge_host(TEN_Other(f->t), 1);
	for (i = 1; (r = TEN_At(f->t, i)) != NULL; i++)
		assert(by_record(f, r) != NULL);
	assert(i == f->n + 1);
	for (i = 0; i < f->n; i++) {
		r = f->in_table[i].r;
		assert(r->generation & 1);
		assert(TEN_Is(r, f->in_table[i].name, f->in_table[i].len));
		assert(TEN_Find(f->t, f->in_table[i].name,
		    f->in_table[i].len) == r);
		assert(r->name[r->namelen] == '\0');
		judge_host(r, f->in_table[i].number);
	}
}

static void
judge(struct fuzz *f)
{
	assert(TEN_Count(f->t) == f->n);
	assert(f->born - f->died == f->n + 1);
	if (++f->calls % 16 == 0 || f->in.left == 0)
		judge_all(f);
	if (f->dead != NULL && by_record(f, f->dead) == NULL) {
		assert((f->dead->generation & 1) == 0);
		assert(!TEN_Is(f->dead, f->dead->name, f->dead->namelen));
	}
}

/* Does a newcomer have to get a record? */
static int
room(const struct fuzz *f)
{
	unsigned i, idlers = 0, over;

	if (f->n < f->limit)
		return (1);
	for (i = 0; i < f->n; i++)
		idlers += !f->in_table[i].pinned &&
		    idle(NULL, f->in_table[i].r);
	over = f->n - f->limit + 1;
	/* Two go at most, and of many not all are asked */
	return (over <= 2 && idlers >= over && f->n <= TEN_STEPS);
}

/* Few names often, or any */
static size_t
some_name(struct fuzz *f, char *name)
{
	unsigned how = fuzz_byte(&f->in), i;
	size_t len;

	if (how < NAMES + 40) {
		len = (size_t)snprintf(name, NAME_MAX_IN, "host%u", how);
		return (len);
	}
	if (how == 255) {
		memcpy(name, TEN_OTHER, strlen(TEN_OTHER));
		return (strlen(TEN_OTHER));
	}
	len = how % 8;
	for (i = 0; i < len; i++)
		name[i] = (char)fuzz_byte(&f->in);
	for (; i < NAME_MAX_IN; i++)
		name[i] = 'x';
	if (how & 8)			/* as long as can be, or longer */
		len = TEN_NAME_MAX - 2 + fuzz_below(&f->in, 8);
	return (len);
}

static void
call_add(struct fuzz *f)
{
	uint64_t overflows = TEN_Overflows(f->t);
	unsigned before = f->n;
	int must = room(f), other;
	struct ten_record *r;
	struct who *w;
	char *name, buf[NAME_MAX_IN];
	size_t len = some_name(f, buf);

	name = malloc(len + 1);		/* does not end in NUL */
	assert(name != NULL);
	memcpy(name, buf, len);
	w = by_name(f, name, len);
	other = len == strlen(TEN_OTHER) && memcmp(name, TEN_OTHER, len) == 0;
	assert(TEN_Find(f->t, name, len) ==
	    (other ? TEN_Other(f->t) : w != NULL ? w->r : NULL));
	r = TEN_Add(f->t, name, len);
	assert(r != NULL && TEN_Find(f->t, r->name, r->namelen) == r);
	if (w != NULL || other)
		assert(r == (other ? TEN_Other(f->t) : w->r) &&
		    f->n == before);
	else if (r == TEN_Other(f->t)) {
		assert(!must);
		overflows++;
	} else {
		w = &f->in_table[f->n++];
		memset(w, 0, sizeof *w);
		w->r = r;
		((struct host *)TEN_Data(r))->place = f->n - 1;
		w->len = len > TEN_NAME_MAX ? TEN_NAME_MAX : len;
		memcpy(w->name, name, w->len);
		w->number = f->born;
		assert(f->n <= f->limit);
		assert(TEN_Is(r, name, len));
	}
	assert(TEN_Overflows(f->t) == overflows);
	free(name);
}

static void
call_one(struct fuzz *f)
{
	unsigned how = fuzz_byte(&f->in), before = f->n;
	struct who *w;
	struct host *h;

	if (f->n == 0)
		return;
	w = &f->in_table[fuzz_below(&f->in, f->n)];
	h = TEN_Data(w->r);
	switch (how % 4) {
	case 0:
		h->busy = !h->busy;
		break;
	case 1:
		w->pinned = (how & 4) != 0;
		TEN_Pin(f->t, w->r, w->pinned);
		break;
	default:
		if (h->busy || w->pinned) {
			assert(TEN_Evict(f->t, w->r) == -1);
			assert(f->n == before);
		} else {
			assert(TEN_Evict(f->t, w->r) == 0);
			assert(f->n == before - 1);
		}
		assert(TEN_Evict(f->t, TEN_Other(f->t)) == -1);
	}
}

static void
call_limit(struct fuzz *f)
{
	unsigned i;

	f->limit = fuzz_below(&f->in, LIMIT + 1);
	assert(TEN_SetMax(f->t, f->limit) == 0);
	if (f->n <= f->limit)
		return;
	for (i = 0; i < f->n; i++)
		assert(f->in_table[i].pinned || !idle(NULL, f->in_table[i].r));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz fuzz;
	struct fuzz *f = &fuzz;
	const struct ten_ops ops = {
		.host_size = sizeof(struct host), .idle = idle, .born = born,
		.died = died, .priv = f,
	};
	uint8_t seed[16] = { 0 };

	memset(f, 0, sizeof *f);
	f->in = (struct fuzz_in){ .p = data, .left = size };
	f->limit = fuzz_below(&f->in, LIMIT + 1);
	seed[0] = fuzz_byte(&f->in);
	f->t = TEN_New(f->limit, &ops, seed);
	assert(f->t != NULL);
	while (f->in.left > 0) {
		switch (fuzz_below(&f->in, 8)) {
		case 0:
			TEN_Tick(f->t);
			break;
		case 1:
			call_limit(f);
			break;
		case 2:
		case 3:
			call_one(f);
			break;
		default:
			call_add(f);
			break;
		}
		judge(f);
	}
	f->ending = 1;
	TEN_Destroy(&f->t);
	assert(f->t == NULL && f->born == f->died);
	return (0);
}
