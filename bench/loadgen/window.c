/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The window: which answers count, and when a group loads.
 *
 * Phases take turns in it.  Between two phases is a gap: groups that load in
 * phases do not ask until all their requests are answered, or until the length
 * of a phase has passed.  No group's answers count in a gap, and the window's
 * begin and end move by its length.  A phase's first part, `settle`, does not
 * count either: all connections ask at once.
 *
 * A group loads always, in one phase, in turn with rests, or from one second
 * of the run to another.
 */

#include "loadgen.h"

struct window win = { .nphases = 1 };

/* Round seconds up to turns of all phases; ns. */
static uint64_t
whole_turns(double seconds)
{
	uint64_t ns = (uint64_t)(seconds * (double)NS);
	uint64_t turn = win.nphases * win.phase_len;

	return (win.nphases > 1 ? (ns + turn - 1) / turn * turn : ns);
}

/* The run begins now, and its window after `warmup` seconds. */
void
window_set(double warmup, double seconds)
{

	win.start = now_ns();
	win.begin = win.start + whole_turns(warmup);
	win.end = win.begin + whole_turns(seconds);
	win.nslices = (unsigned)((win.end - win.begin) / SLICE) + 1;
	win.phase_end = win.start + win.phase_len;
}

/* The next phase begins now.  The gap before it may be 0. */
void
window_next_phase(uint64_t now)
{
	uint64_t gap = now - win.phase_end;

	win.in_gap = 0;
	win.phase = (win.phase + 1) % win.nphases;
	win.phase_end = now + win.phase_len;
	win.begin += gap;
	win.end += gap;
}

uint64_t
run_time(double s)
{

	return (win.start + (uint64_t)(s * (double)NS));
}

int
in_window(const struct group *g, uint64_t now)
{

	if (win.in_gap || now < win.begin || now >= win.end)
		return (0);
	if (g->till > 0)
		return (now >= run_time(g->from) + win.settle &&
		    now < run_time(g->till));
	if (g->phase < 0)
		return (1);
	return (win.phase == (unsigned)g->phase && now < win.phase_end &&
	    now >= win.phase_end - win.phase_len + win.settle);
}

/* Does an answer count now?  A group with an end of its own counts an answer by
 * when it was asked. */
int
answer_counts(const struct conn *c, uint64_t now)
{
	const struct group *g = c->group;

	return (in_window(g, g->till > 0 ? c->asked : now));
}

int
is_over(const struct group *g, uint64_t now)
{

	return (g->till > 0 && now >= run_time(g->till));
}

int
is_spent(const struct group *g)
{

	return (g->limit > 0 && g->sent_in_all >= g->limit);
}

int
loads(const struct group *g)
{

	return (!win.draining && !g->resting &&
	    (g->phase < 0 ||
	    (!win.in_gap && win.phase == (unsigned)g->phase)));
}

void
count_answers(struct conn *c, unsigned n, uint64_t now)
{
	struct group *g = c->group;

	g->answered_in_all += n;
	if (!in_window(g, now))
		return;
	g->done += n;
	c->count += n;
	g->slices[(now - win.begin) / SLICE] += n;
}

/* An answer was good: it came within the target. */
void
count_good(struct conn *c, uint64_t now)
{
	struct group *g = c->group;

	if (!in_window(g, now))
		return;
	g->good++;
	g->good_slices[(now - win.begin) / SLICE]++;
}

/* A request is due.  That it is so only now makes the load generator late. */
void
count_due(struct group *g, uint64_t due, uint64_t now)
{

	if (!in_window(g, due))
		return;
	g->due++;
	g->behind += now - due;
	g->due_slices[(due - win.begin) / SLICE]++;
}

/* Return the seconds of the window that count for this group. */
double
counted_seconds(const struct group *g)
{
	uint64_t begin = win.begin, end = win.end, ns;

	if (g->till > 0) {
		begin = run_time(g->from) + win.settle;
		begin = begin < win.begin ? win.begin : begin;
		end = run_time(g->till);
		end = end > win.end ? win.end : end;
	}
	ns = end > begin ? end - begin : 0;
	if (g->till <= 0 && g->phase >= 0)
		ns = ns / (win.nphases * win.phase_len) *
		    (win.phase_len - win.settle);
	return ((double)ns / (double)NS);
}
