/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Fill a map in vcl_init, and do so again when sandpaper.reload asks for it.
 *
 * Each call of the VMOD is a step: a function of src/tenants and its arguments.
 * A step that succeeds is kept with the map.  sandpaper.reload takes all steps
 * again, into a new map.  So what VCL says after the file holds for the file's
 * new tenants, too.  A map that is filled is not in force yet: no lock guards
 * its content.  Only the CLI's thread runs this.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "spd_hostmap.h"

#include "tenants/file.h"

typedef const char *spd_step_f(struct hostmap *, const struct spd_step *);

struct spd_step {
	VSTAILQ_ENTRY(spd_step)	list;
	spd_step_f		*take;
	const char		*what;		/* the VMOD's function */
	const char		*s[3];		/* copied if kept */
	double			d[2];
	int64_t			i[2];
};

/*--------------------------------------------------------------------
 * A file
 */

#define SPD_ERRORS	10		/* that are told */

static char errors[4096];		/* of the last file */

struct spd_told {
	const char		*path;
	unsigned		n;
	size_t			len;
};

/* Add an error to `errors`. */
static void v_matchproto_(file_error_f)
spd_tell_error(void *priv, unsigned line, const char *why)
{
	struct spd_told *told = priv;
	size_t space = sizeof errors - told->len;
	int l;

	if (told->n++ >= SPD_ERRORS)
		return;
	l = line == 0 ?
	    snprintf(errors + told->len, space, "\n%s: %s", told->path, why) :
	    snprintf(errors + told->len, space, "\n%s:%u: %s", told->path,
	    line, why);
	told->len = vmin_t(size_t, told->len + (size_t)l, sizeof errors - 1);
}

static const char *
step_file(struct hostmap *m, const struct spd_step *s)
{
	struct spd_told told = { .path = s->s[0] };
	unsigned n, most = cache_param->sandpaper_tenants_max;

	n = FILE_Read(m, s->s[0], spd_tell_error, &told);
	if (n > SPD_ERRORS)
		(void)snprintf(errors + told.len, sizeof errors - told.len,
		    "\nand %u more: see sandpaper-check", n - SPD_ERRORS);
	else if (n == 0 && m->tenants > most) {
		(void)snprintf(errors, sizeof errors, "\n%s: there are %u "
		    "tenants and groups: raise the parameter "
		    "sandpaper_tenants_max, which is %u", s->s[0], m->tenants,
		    most);
		n = 1;
	}
	return (n > 0 ? errors : NULL);
}

/*--------------------------------------------------------------------
 * The other steps.  hostmap.h says what the functions return.
 */

#define STEP(name, call)						\
static const char *							\
step_##name(struct hostmap *m, const struct spd_step *s)		\
{									\
									\
	return (call);							\
}

STEP(tenant, MAP_Tenant(m, s->s[0], s->d[0], (unsigned)s->i[0]))
STEP(group, MAP_Group(m, s->s[0], s->d[0]))
STEP(member, MAP_Member(m, s->s[0], s->s[1]))
STEP(limits, MAP_Limits(m, s->s[0], s->d[0], s->d[1]))
STEP(memory, MAP_Memory(m, s->s[0], s->i[0], s->i[1]))
STEP(admission, MAP_Admission(m, s->s[0], (int)s->i[0]))
STEP(time, MAP_Time(m, s->s[0], (enum map_time)s->i[0], s->d[0]))
STEP(refusal, MAP_Refusal(m, s->s[0], s->i[0], s->s[1], s->s[2],
    (int)s->i[1]))
STEP(host, MAP_Host(m, s->s[0], s->s[1]))
STEP(unknown, (MAP_Unknown(m, (int)s->i[0]), NULL))
STEP(exempt, EXEMPT_Add(&m->exempt, s->s[0], s->s[1], s->i[0]))

/* Take a step, and keep a copy of it.  Returns NULL, or why it failed. */
static const char *
spd_take_step(struct spd_map *m, const struct spd_step *s)
{
	struct spd_step *kept;
	const char *error;
	unsigned u;

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	error = s->take(m->map, s);
	if (error != NULL)
		return (error);
	m->names |= s->take != step_exempt;
	kept = malloc(sizeof *kept);
	AN(kept);
	*kept = *s;
	for (u = 0; u < 3; u++)
		if (s->s[u] != NULL) {
			kept->s[u] = strdup(s->s[u]);
			AN(kept->s[u]);
		}
	VSTAILQ_INSERT_TAIL(&m->steps, kept, list);
	return (NULL);
}

int
spd_steps_have_file(const struct spd_map *m)
{
	const struct spd_step *s;

	VSTAILQ_FOREACH(s, &m->steps, list)
		if (s->take == step_file)
			return (1);
	return (0);
}

/* Take the steps of another map.  Returns NULL, or which one fails, and why. */
const char *
spd_steps_again(struct spd_map *m, const struct spd_map *from)
{
	static char text[sizeof errors + 512];
	const struct spd_step *s;
	const char *error;

	VSTAILQ_FOREACH(s, &from->steps, list) {
		error = spd_take_step(m, s);
		if (error == NULL)
			continue;
		(void)snprintf(text, sizeof text, "sandpaper.%s(\"%.300s\"): "
		    "%s", s->what, s->s[0] == NULL ? "" : s->s[0], error);
		return (text);
	}
	return (NULL);
}

void
spd_steps_free(struct spd_map *m)
{
	struct spd_step *s;
	unsigned u;

	while ((s = VSTAILQ_FIRST(&m->steps)) != NULL) {
		VSTAILQ_REMOVE_HEAD(&m->steps, list);
		for (u = 0; u < 3; u++)
			free(TRUST_ME(s->s[u]));
		free(s);
	}
}

/*--------------------------------------------------------------------
 * The VMOD's calls
 */

#define TAKE(m, name, ...)						\
	spd_take_step(m, &(struct spd_step){ .take = step_##name,	\
	    __VA_ARGS__ })

const char *
SPD_MapTenant(struct spd_map *m, const char *name, double weight,
    unsigned queue_limit)
{

	return (TAKE(m, tenant, .what = "tenant", .s = { name },
	    .d = { weight }, .i = { queue_limit }));
}

const char *
SPD_MapGroup(struct spd_map *m, const char *name, double weight)
{

	return (TAKE(m, group, .what = "group", .s = { name },
	    .d = { weight }));
}

const char *
SPD_MapMember(struct spd_map *m, const char *name, const char *group)
{

	return (TAKE(m, member, .what = "member", .s = { name, group }));
}

const char *
SPD_MapLimits(struct spd_map *m, const char *name, double reservation,
    double limit)
{

	return (TAKE(m, limits, .what = "limits", .s = { name },
	    .d = { reservation, limit }));
}

const char *
SPD_MapMemory(struct spd_map *m, const char *name, int64_t reservation,
    int64_t limit)
{

	return (TAKE(m, memory, .what = "memory", .s = { name },
	    .i = { reservation, limit }));
}

const char *
SPD_MapAdmission(struct spd_map *m, const char *name, int all)
{

	return (TAKE(m, admission, .what = "admission", .s = { name },
	    .i = { all }));
}

const char *
SPD_MapTarget(struct spd_map *m, const char *name, double target)
{

	return (TAKE(m, time, .what = "target", .s = { name }, .d = { target },
	    .i = { MAP_TARGET }));
}

const char *
SPD_MapQueueTimeout(struct spd_map *m, const char *name, double timeout)
{

	return (TAKE(m, time, .what = "queue_timeout", .s = { name },
	    .d = { timeout }, .i = { MAP_QUEUE_TIMEOUT }));
}

const char *
SPD_MapFetchTarget(struct spd_map *m, const char *name, double target)
{

	return (TAKE(m, time, .what = "fetch_target", .s = { name },
	    .d = { target }, .i = { MAP_FETCH_TARGET }));
}

const char *
SPD_MapRefusal(struct spd_map *m, const char *name, int64_t status,
    const char *body, const char *type, int vcl)
{

	return (TAKE(m, refusal, .what = "refusal", .s = { name, body, type },
	    .i = { status, vcl }));
}

const char *
SPD_MapHost(struct spd_map *m, const char *name, const char *pattern)
{

	return (TAKE(m, host, .what = "host", .s = { name, pattern }));
}

void
SPD_MapUnknown(struct spd_map *m, int own)
{

	AZ(TAKE(m, unknown, .what = "unknown", .i = { own }));
}

const char *
SPD_MapExempt(struct spd_map *m, const char *url, const char *host,
    int64_t per_second)
{

	return (TAKE(m, exempt, .what = "exempt", .s = { url, host },
	    .i = { per_second }));
}

const char *
SPD_MapFile(struct spd_map *m, const char *path)
{

	return (TAKE(m, file, .what = "tenants_file", .s = { path }));
}
