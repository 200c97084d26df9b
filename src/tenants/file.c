/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Read tenants from a file.
 *
 * The text is parsed twice: first its groups, then its tenants, which name
 * them.  A line becomes a struct of values.  What a tenant may be is decided by
 * hostmap.c.
 */

#define _GNU_SOURCE			/* for strchrnul() */

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "file.h"

#define FILE_MOST	(64 << 20)	/* bytes, about a million tenants: the
					 * caller waits meanwhile */

struct reader {
	struct hostmap		*map;
	file_error_f		*tell;
	void			*priv;
	unsigned		line, errors;
	unsigned		given;	/* by the last line */
};

static void __attribute__((format(printf, 2, 3)))
fail(struct reader *r, const char *format, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	r->errors++;
	r->tell(r->priv, r->line, text);
}

/*--------------------------------------------------------------------
 * Settings
 */

struct unit {
	const char		*name;
	double			factor;
};

static const struct unit number[] = { { "", 1 }, { NULL, 0 } };
static const struct unit seconds[] = { { "ms", 1e-3 }, { "s", 1 },
    { "m", 60 }, { "h", 3600 }, { "d", 86400 }, { NULL, 0 } };
static const struct unit bytes[] = { { "B", 1 }, { "KB", 0x1p10 },
    { "MB", 0x1p20 }, { "GB", 0x1p30 }, { "TB", 0x1p40 }, { NULL, 0 } };

static const struct {
	const char		*name;
	const struct unit	*unit;		/* NULL: a word */
	const char		*use;
} settings[FILE_SETTINGS] = {
	[FILE_WEIGHT] = { "weight", number, "a number, such as 2" },
	[FILE_QUEUE_LIMIT] = { "queue_limit", number, "a number, such as 500" },
	[FILE_RESERVATION] = { "reservation", number, "a part, such as 0.1" },
	[FILE_LIMIT] = { "limit", number, "a part, such as 0.5" },
	[FILE_MEMORY_RESERVATION] = { "memory_reservation", bytes,
	    "bytes with B, KB, MB, GB or TB, such as 100MB" },
	[FILE_MEMORY_LIMIT] = { "memory_limit", bytes,
	    "bytes with B, KB, MB, GB or TB, such as 1GB" },
	[FILE_TARGET] = { "target", seconds,
	    "a time with ms, s, m, h or d, such as 200ms" },
	[FILE_QUEUE_TIMEOUT] = { "queue_timeout", seconds,
	    "a time with ms, s, m, h or d, such as 5s" },
	[FILE_FETCH_TARGET] = { "fetch_target", seconds,
	    "a time with ms, s, m, h or d, such as 1s" },
	[FILE_STATUS] = { "status", number, "503 or 429" },
	[FILE_GROUP] = { "group", NULL, "the name of a group, such as gold" },
	[FILE_ADMISSION] = { "admission", NULL, "all or by_size" },
};

struct entry {				/* a line */
	const char		*name;		/* a group's is without () */
	int			is_group;
	unsigned		given;		/* bits: of enum file_setting */
	double			v[FILE_NUMBERS];
	const char		*word[FILE_SETTINGS];
};

/* Read a number with one of these units.  Returns 0, or -1 if it is none. */
static int
value_of(const char *s, const struct unit *unit, double *v)
{
	size_t l = strspn(s, "0123456789.");
	char *end;

	*v = strtod(s, &end);
	if (l == 0 || end != s + l)
		return (-1);		/* strtod() takes more than digits */
	for (; unit->name != NULL; unit++)
		if (strcmp(end, unit->name) == 0) {
			*v *= unit->factor;
			return (isfinite(*v) ? 0 : -1);
		}
	return (-1);
}

/* Read a setting; value: behind the "=", which is a NUL now. */
static void
read_setting(struct reader *r, struct entry *e, const char *name,
    const char *value)
{
	char all[256] = "";
	unsigned s;

	for (s = 0; s < FILE_SETTINGS && strcmp(name, settings[s].name); s++) {
		(void)strcat(all, s > 0 ? ", " : "");
		(void)strcat(all, settings[s].name);
	}
	if (s == FILE_SETTINGS) {
		fail(r, "there is no setting \"%.200s\": use %s", name, all);
		return;
	}
	if (e->given & 1U << s)
		fail(r, "%s is set twice: remove one of them", name);
	e->given |= 1U << s;
	e->word[s] = value;
	if (s < FILE_NUMBERS ? value_of(value, settings[s].unit, &e->v[s]) :
	    *value == '\0')
		fail(r, "%s=%.200s is not allowed: use %s", name, value,
		    settings[s].use);
}

/*--------------------------------------------------------------------
 * A line
 */

#define GIVEN(e, s)	((e)->given & 1U << (s))
#define VALUE(e, s, or)	(GIVEN(e, s) ? (e)->v[s] : (or))

/* Tell of the error of a call, if it has one.  what: the setting. */
static void
check(struct reader *r, enum file_setting what, const struct entry *e,
    const char *error)
{

	if (error == NULL)
		return;
	if (GIVEN(e, what))
		fail(r, "%s=%.200s: %s", settings[what].name, e->word[what],
		    error);
	else
		fail(r, "%s", error);
}

/* Declare the tenant or group.  Returns 0, or -1 if that fails. */
static int
declare(struct reader *r, const struct entry *e)
{
	double weight = VALUE(e, FILE_WEIGHT, 1);
	double most = VALUE(e, FILE_QUEUE_LIMIT, 0);
	unsigned before = r->errors;
	const char *error;

	if (most > 1e9 || most != floor(most))
		most = 1e9;		/* hostmap.c says what is allowed */
	error = e->is_group ? MAP_Group(r->map, e->name, weight) :
	    MAP_Tenant(r->map, e->name, weight, (unsigned)most);
	if (error != NULL)
		fail(r, "\"%.200s\": %s", e->name, error);
	if (e->is_group && GIVEN(e, FILE_QUEUE_LIMIT))
		fail(r, "a group has no queue_limit: give it to the members");
	if (e->is_group && GIVEN(e, FILE_GROUP))
		fail(r, "a group is in no other group: remove group=%.200s",
		    e->word[FILE_GROUP]);
	return (r->errors > before ? -1 : 0);
}

/* Set what the line says of the tenant or group. */
static void
apply(struct reader *r, const struct entry *e)
{
	static const struct {
		enum file_setting	setting;
		enum map_time	time;
	} times[] = {
		{ FILE_TARGET, MAP_TARGET },
		{ FILE_QUEUE_TIMEOUT, MAP_QUEUE_TIMEOUT },
		{ FILE_FETCH_TARGET, MAP_FETCH_TARGET },
	};
	struct hostmap *m = r->map;
	enum file_setting least;
	unsigned u;

	least = GIVEN(e, FILE_RESERVATION) ? FILE_RESERVATION : FILE_LIMIT;
	if (GIVEN(e, least))
		check(r, least, e, MAP_Limits(m, e->name,
		    VALUE(e, FILE_RESERVATION, 0), VALUE(e, FILE_LIMIT, 1)));
	least = GIVEN(e, FILE_MEMORY_RESERVATION) ?
	    FILE_MEMORY_RESERVATION : FILE_MEMORY_LIMIT;
	if (GIVEN(e, least))
		check(r, least, e, MAP_Memory(m, e->name,
		    (int64_t)fmin(VALUE(e, FILE_MEMORY_RESERVATION, 0), 0x1p62),
		    (int64_t)fmin(VALUE(e, FILE_MEMORY_LIMIT, 0), 0x1p62)));
	for (u = 0; u < sizeof times / sizeof *times; u++)
		if (GIVEN(e, times[u].setting))
			check(r, times[u].setting, e, MAP_Time(m, e->name,
			    times[u].time, e->v[times[u].setting]));
	if (GIVEN(e, FILE_STATUS))
		check(r, FILE_STATUS, e, MAP_Refusal(m, e->name,
		    e->v[FILE_STATUS] == 429 ? 429 :
		    e->v[FILE_STATUS] == 503 ? 503 : -1,
		    NULL, "text/html", 0));
	if (GIVEN(e, FILE_GROUP))
		check(r, FILE_GROUP, e, MAP_Member(m, e->name,
		    e->word[FILE_GROUP]));
	if (!GIVEN(e, FILE_ADMISSION))
		return;
	if (strcmp(e->word[FILE_ADMISSION], "all") &&
	    strcmp(e->word[FILE_ADMISSION], "by_size"))
		fail(r, "admission=%.200s is not allowed: use %s",
		    e->word[FILE_ADMISSION], settings[FILE_ADMISSION].use);
	else
		check(r, FILE_ADMISSION, e, MAP_Admission(m, e->name,
		    !strcmp(e->word[FILE_ADMISSION], "all")));
}

/* Give the tenant its patterns of Hosts, which are changed. */
static void
give_hosts(struct reader *r, const struct entry *e, char *hosts)
{
	char *word, *rest = NULL;
	const char *error;

	for (word = strtok_r(hosts, " ", &rest); word != NULL;
	    word = strtok_r(NULL, " ", &rest)) {
		error = e->is_group ? "a group has no Hosts: give this one to "
		    "a member" : MAP_Host(r->map, e->name, word);
		if (error != NULL)
			fail(r, "\"%.200s\": %s", word, error);
	}
}

/* Is it the name of a group, in parentheses? */
static int
is_group(const char *name)
{
	return (*name == '(' && strcmp(name, TEN_UNKNOWN));
}

/* Read a line, which is changed, if it is a group's (1), a tenant's (0), or any
 * (-1). */
static void
read_line(struct reader *r, char *line, int groups)
{
	struct entry e = { 0 };
	char *name, *word, *value, *hosts, *end, *rest = NULL;
	unsigned before = r->errors;
	size_t l;

	hosts = end = line + strlen(line) + 1;	/* room for the patterns */
	*hosts = '\0';
	line[strcspn(line, "#")] = '\0';
	name = strtok_r(line, " \t\r", &rest);
	if (name == NULL || (groups >= 0 && is_group(name) != groups))
		return;
	e.is_group = is_group(name);
	l = strlen(name);
	if (e.is_group && (l < 3 || name[l - 1] != ')')) {
		fail(r, "\"%.200s\" is no name of a group: use one in "
		    "parentheses, such as (gold)", name);
		return;
	}
	if (strchr(name, '=') != NULL) {
		fail(r, "\"%.200s\" is no name: begin the line with the name "
		    "of a tenant or group", name);
		return;
	}
	if (e.is_group)
		name[l - 1] = '\0';
	e.name = name + e.is_group;
	while ((word = strtok_r(NULL, " \t\r", &rest)) != NULL) {
		value = strchr(word, '=');
		if (value != NULL) {
			*value = '\0';
			read_setting(r, &e, word, value + 1);
		} else {
			end = stpcpy(end, word);
			end = stpcpy(end, " ");
		}
	}
	r->given = e.given;
	if (r->errors > before || declare(r, &e))
		return;
	apply(r, &e);
	give_hosts(r, &e, hosts);
}

/*--------------------------------------------------------------------
 * A file
 */

static void
read_lines(struct reader *r, const char *text, int groups)
{
	const char *p, *end;
	char *line = NULL;
	size_t l, space = 0;

	r->line = 0;
	for (p = text; *p != '\0'; p = *end == '\0' ? end : end + 1) {
		r->line++;
		end = strchrnul(p, '\n');
		l = (size_t)(end - p);
		if (2 * l + 2 > space) {
			space = 4 * l + 64;
			free(line);
			line = malloc(space);
			if (line == NULL) {
				fail(r, "there is no memory for this line");
				return;
			}
		}
		memcpy(line, p, l);
		line[l] = '\0';
		read_line(r, line, groups);
	}
	free(line);
}

unsigned
FILE_Line(struct hostmap *m, const char *text, unsigned *given,
    file_error_f *tell, void *priv)
{
	struct reader r = { .map = m, .tell = tell, .priv = priv };
	size_t l = strlen(text);
	char *line = malloc(2 * l + 2);

	if (line == NULL)
		fail(&r, "there is no memory for this line");
	else
		read_line(&r, memcpy(line, text, l + 1), -1);
	free(line);
	*given = r.given;
	return (r.errors);
}

unsigned
FILE_Read(struct hostmap *m, const char *path, file_error_f *tell, void *priv)
{
	struct reader r = { .map = m, .tell = tell, .priv = priv };
	char *text = NULL;
	size_t space = 0;
	struct stat st;
	ssize_t l;
	FILE *f;
	int fd;

	/* It could be a pipe without a writer */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (f == NULL) {
		fail(&r, "the file cannot be opened: %s", strerror(errno));
		if (fd >= 0)
			(void)close(fd);
		return (r.errors);
	}
	if (fstat(fd, &st) || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
		fail(&r, "this is no regular file: use a text file");
		(void)fclose(f);
		return (r.errors);
	}
	if (st.st_size > FILE_MOST) {
		fail(&r, "the file is too large: use at most 64 MB");
		(void)fclose(f);
		return (r.errors);
	}
	errno = 0;
	l = getdelim(&text, &space, '\0', f);
	if (ferror(f) || (l < 0 && errno != 0))
		fail(&r, "the file cannot be read: %s", strerror(errno));
	else if (l > 0 && text[l - 1] == '\0')
		fail(&r, "the file has a NUL byte: use a text file");
	else if (l > 0) {
		read_lines(&r, text, 1);
		read_lines(&r, text, 0);
	}
	free(text);
	(void)fclose(f);
	return (r.errors);
}
