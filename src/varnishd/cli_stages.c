/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The stages, as sandpaper.list prints them: one line for each stage, with
 * means of the last seconds.
 *
 * By Little's law the mean number of requests that wait for a stage is their
 * rate times their mean wait, if the load is steady.  The same is true for
 * those that are in it.
 */

#include "config.h"

#include "spd.h"
#include "cli.h"

#include "vcli_serve.h"

struct line {
	const char		*stage;
	unsigned		servers;	/* 0: no fixed number */
	double			rate;		/* per s */
	double			wait, in_it;	/* s, the mean */
};

/* Fill the lines of all stages. */
static void
lines(struct line *l)
{
	static const char * const names[SPD_STAGES] = {
		"parse", "run", "fetch", "deliver"
	};
	struct spd_profile last;
	unsigned s;
	double n;

	spd_lock();
	spd_stage_last(&last, METER_Now());
	l[SPD_PARSES].servers = spd_set.parsers;
	l[SPD_RUNS].servers = spd_slots_open();
	spd_unlock();
	l[SPD_FETCHES].servers = l[SPD_DELIVERS].servers = 0;
	for (s = 0; s < SPD_STAGES; s++, l++) {
		n = (double)last.stage[s].done;
		l->stage = names[s];
		l->rate = last.at > 0 ? n * 1e9 / (double)last.at : 0;
		l->wait = n > 0 ? (double)last.stage[s].wait * 1e-9 / n : 0;
		l->in_it = n > 0 ? (double)last.stage[s].in_it * 1e-9 / n : 0;
	}
}

/* Print the table of the stages. */
void
spd_cli_stages_text(struct cli *cli)
{
	struct line line[SPD_STAGES], *l;

	lines(line);
	VCLI_Out(cli, "%-8s %10s %10s %10s %8s %8s %8s\n", "stage", "per_s",
	    "wait_ms", "in_it_ms", "waiting", "in_it", "servers");
	for (l = line; l < line + SPD_STAGES; l++) {
		VCLI_Out(cli, "%-8s %10.1f %10.3f %10.3f %8.2f %8.2f ",
		    l->stage, l->rate, l->wait * 1e3, l->in_it * 1e3,
		    l->rate * l->wait, l->rate * l->in_it);
		if (l->servers > 0)
			VCLI_Out(cli, "%8u\n", l->servers);
		else
			VCLI_Out(cli, "%8s\n", "-");
	}
	VCLI_Out(cli, "\n");
}

/* Print the stages as a JSON member. */
void
spd_cli_stages_json(struct cli *cli)
{
	struct line line[SPD_STAGES], *l;

	lines(line);
	VCLI_Out(cli, "\"stages\": [");
	for (l = line; l < line + SPD_STAGES; l++) {
		VCLI_Out(cli, "%s{\"stage\": \"%s\", \"per_s\": %.3f, "
		    "\"wait_s\": %.9f, \"in_it_s\": %.9f, \"waiting\": %.6f, "
		    "\"in_it\": %.6f", l > line ? ",\n  " : "", l->stage,
		    l->rate, l->wait, l->in_it, l->rate * l->wait,
		    l->rate * l->in_it);
		if (l->servers > 0)
			VCLI_Out(cli, ", \"servers\": %u", l->servers);
		VCLI_Out(cli, "}");
	}
	VCLI_Out(cli, "],\n");
}
