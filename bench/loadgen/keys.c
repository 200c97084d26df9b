/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The command line's values, and the keys of a group: a table.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen.h"

#define SET_MAX		(REQUEST_MAX / 2)	/* bytes of a set of headers */
#define LONG		1e9			/* s */
#define KEY_TEXT_MAX	2048

/* A value is wrong: say so in a line, and end. */
void
wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "loadgen: ");
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(2);
}

double
number(const char *name, const char *text, double least, double most)
{
	char *end;
	double x = strtod(text, &end);

	if (end == text || *end != '\0' || !(x >= least && x <= most))
		wrong("%s '%s' is not allowed: use a number from %.10g to "
		    "%.10g", name, text, least, most);
	return (x);
}

double
whole(const char *name, const char *text, double least, double most)
{
	double x = number(name, text, least, most);

	if (x != floor(x))
		wrong("%s '%s' is not allowed: use a whole number", name, text);
	return (x);
}

struct sockaddr_in
address(const char *text)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	const char *colon = strrchr(text, ':');
	char ip[INET_ADDRSTRLEN];

	if (colon == NULL)
		wrong("'%s' is not an address: use ADDR:PORT", text);
	(void)snprintf(ip, sizeof ip, "%.*s", (int)(colon - text), text);
	if (colon - text >= (ptrdiff_t)sizeof ip ||
	    inet_pton(AF_INET, ip, &to.sin_addr) != 1)
		wrong("'%s' is not an IPv4 address: use ADDR:PORT", text);
	to.sin_port = htons((uint16_t)whole("port", colon + 1, 1, 65535));
	return (to);
}

struct key {
	const char	*name;
	void		(*set)(const struct key *, struct group *,
			    const char *text);
	size_t		at, size;	/* of the field */
	double		least, most;
	const char	*help;
};

static void
set_text(const struct key *k, struct group *g, const char *text)
{

	if (strlen(text) >= k->size)
		wrong("%s '%s' is too long: use at most %zu characters",
		    k->name, text, k->size - 1);
	strcpy((char *)g + k->at, text);
}

/* The field is unsigned, or an int. */
static void
set_whole(const struct key *k, struct group *g, const char *text)
{
	unsigned n;

	n = (unsigned)(int64_t)whole(k->name, text, k->least, k->most);
	memcpy((char *)g + k->at, &n, sizeof n);
}

static void
set_real(const struct key *k, struct group *g, const char *text)
{
	double x = number(k->name, text, k->least, k->most);

	memcpy((char *)g + k->at, &x, sizeof x);
}

static void
set_to(const struct key *k, struct group *g, const char *text)
{

	(void)k;
	g->to = address(text);
}

/* Write the names of all modes. */
static void
print_modes(FILE *f)
{
	const struct mode * const *m;

	for (m = modes; *m != NULL; m++)
		fprintf(f, "%s%s", m == modes ? "" : ", ", (*m)->name);
}

static void
set_mode(const struct key *k, struct group *g, const char *text)
{
	const struct mode * const *m;

	(void)k;
	for (m = modes; *m != NULL; m++)
		if (!strcmp(text, (*m)->name)) {
			g->mode = *m;
			return;
		}
	fprintf(stderr, "loadgen: mode '%s' is not known: use ", text);
	print_modes(stderr);
	fprintf(stderr, "\n");
	exit(2);
}

/* Sets of headers, an empty line between two: requests take them in turn */
static void
set_headers(const struct key *k, struct group *g, const char *path)
{
	char line[SET_MAX], **set = &g->headers[0];
	FILE *f = fopen(path, "r");
	size_t l = 0, n;

	(void)k;
	if (f == NULL)
		wrong("headers '%s': %s", path, strerror(errno));
	g->nheaders = 0;
	while (fgets(line, sizeof line - 2, f) != NULL) {
		n = strcspn(line, "\n");
		if (n == 0) {
			l = 0;
			set = &g->headers[g->nheaders];
			continue;
		}
		memcpy(line + n, "\r\n", 3);
		if (l == 0 && ++g->nheaders > HEADERS_MAX)
			wrong("headers '%s': too many sets, use at most %d",
			    path, HEADERS_MAX);
		if (l + n + 2 >= SET_MAX)
			wrong("headers '%s': a set is too long, use at most "
			    "%d bytes", path, SET_MAX - 2);
		*set = realloc(*set, l + n + 3);
		assert(*set != NULL);
		memcpy(*set + l, line, n + 3);
		l += n + 2;
	}
	(void)fclose(f);
	if (g->nheaders == 0)
		wrong("headers '%s': the file has no headers", path);
}

/* A line for each URL: its weight and the URL */
static void
set_paths(const struct key *k, struct group *g, const char *path)
{
	char line[URL_MAX], *url;
	FILE *f = fopen(path, "r");

	(void)k;
	if (f == NULL)
		wrong("paths '%s': %s", path, strerror(errno));
	while (fgets(line, sizeof line, f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		url = strchr(line, ' ');
		if (url == NULL || url[1] != '/')
			wrong("paths '%s': '%s' is not valid: use WEIGHT /URL",
			    path, line);
		*url++ = '\0';
		paths_add(&g->paths, url, number("weight", line, 1e-9, 1e9));
	}
	(void)fclose(f);
	if (g->paths.n == 0)
		wrong("paths '%s': the file has no URLs", path);
}

/* T:RATE/T:RATE.. */
static void
set_steps(const struct key *k, struct group *g, const char *text)
{
	char copy[KEY_TEXT_MAX], *item, *colon, *save = NULL;
	struct step *s;

	if (strlen(text) >= sizeof copy)
		wrong("%s '%s' is too long: use at most %zu characters",
		    k->name, text, sizeof copy - 1);
	strcpy(copy, text);
	for (item = strtok_r(copy, "/", &save); item != NULL;
	    item = strtok_r(NULL, "/", &save)) {
		if (g->nsteps == STEPS_MAX)
			wrong("%s '%s' has too many steps: use at most %d",
			    k->name, text, STEPS_MAX);
		colon = strchr(item, ':');
		if (colon == NULL)
			wrong("%s '%s' is not valid: use SECOND:RATE",
			    k->name, item);
		*colon = '\0';
		s = &g->steps[g->nsteps++];
		s->at = number("second", item, 0, LONG);
		s->rate = number("rate", colon + 1, 0, 1e9);
		if (s > g->steps && s->at <= s[-1].at)
			wrong("%s '%s' is not valid: use a later second for "
			    "each step", k->name, text);
	}
}

#define FIELD(f)	offsetof(struct group, f), sizeof ((struct group *)0)->f
#define OTHER		0, 0, 0, 0

static const struct key keys[] = {
	{ "name", set_text, FIELD(name), 0, 0, "in the result" },
	{ "host", set_text, FIELD(host), 0, 0, "the Host" },
	{ "path", set_text, FIELD(path), 0, 0, "the URL (default /)" },
	{ "paths", set_paths, OTHER,
	    "a file of lines WEIGHT URL: requests draw by weight" },
	{ "in_order", set_whole, FIELD(in_order), 0, 1,
	    "1: requests take the URLs of paths in order" },
	{ "headers", set_headers, OTHER,
	    "a file of headers; requests take its sets in turn" },
	{ "mode", set_mode, OTHER, "what its clients do (default closed)" },
	{ "conns", set_whole, FIELD(nconn), 1, 1e6,
	    "connections (default 1)" },
	{ "rate", set_real, FIELD(rate), 0, 1e9,
	    "requests or bytes a second, by mode" },
	{ "limit", set_whole, FIELD(limit), 0, UINT32_MAX,
	    "requests in all; 0: no limit" },
	{ "random_host", set_whole, FIELD(random_host), 0, 1,
	    "1: each request has a new Host" },
	{ "unique", set_whole, FIELD(unique), 0, 1,
	    "1: each request has a new URL" },
	{ "hosts", set_whole, FIELD(hosts), 0, UINT32_MAX,
	    "Hosts h0.HOST, h1.HOST ..., in turn by connection" },
	{ "every", set_whole, FIELD(every), 0, UINT32_MAX,
	    "one request of so many asks for PATH?dear" },
	{ "streams", set_whole, FIELD(streams), 1, UINT32_MAX,
	    "of h2, at a time (default 1)" },
	{ "window", set_whole, FIELD(window), 0, H2_WINDOW_MAX,
	    "bytes, of an h2 stream" },
	{ "mark", set_whole, FIELD(mark), 0, UINT32_MAX,
	    "SO_MARK of its sockets" },
	{ "on", set_real, FIELD(on), 0, LONG,
	    "seconds that it loads, in turn with off" },
	{ "off", set_real, FIELD(off), 0, LONG, "seconds that it rests" },
	{ "shift", set_real, FIELD(shift), 0, LONG,
	    "seconds by which on and off come earlier" },
	{ "from", set_real, FIELD(from), 0, LONG,
	    "second of the run in which it begins" },
	{ "till", set_real, FIELD(till), 0, LONG,
	    "second of the run in which it ends; 0: never" },
	{ "phase", set_whole, FIELD(phase), -1, INT32_MAX,
	    "phase in which it loads; -1: always" },
	{ "patience", set_real, FIELD(patience), 0, LONG,
	    "open: seconds until a request without a connection gives up" },
	{ "fresh", set_whole, FIELD(fresh), 0, 1,
	    "1: open, with a connection a request" },
	{ "even", set_whole, FIELD(even), 0, 1,
	    "1: open, at even times; 0: at random times" },
	{ "steps", set_steps, OTHER,
	    "open: SECOND:RATE/SECOND:RATE.., the rate from then on" },
	{ "target", set_real, FIELD(target), 0, LONG,
	    "seconds: an answer 200 is good within them; 0: none is" },
	{ "retries", set_whole, FIELD(retries), 0, UINT32_MAX,
	    "open: how often a refused client asks again (503, 429)" },
	{ "regard", set_whole, FIELD(regard), 0, 1,
	    "1: it asks after the seconds of Retry-After; 0: at once" },
	{ "think", set_real, FIELD(think), 0, LONG,
	    "browse: seconds from an answer to the next request" },
	{ "per_conn", set_whole, FIELD(per_conn), 0, UINT32_MAX,
	    "browse: requests on a connection; 0: no limit" },
	{ "to", set_to, OTHER, "ADDR:PORT (default that of the command)" },
	{ 0 }
};

/* Return a line of help for each key, to be freed. */
char *
keys_help(void)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	const struct key *k;

	assert(f != NULL);
	fprintf(f, "Keys:\n");
	for (k = keys; k->name != NULL; k++)
		fprintf(f, "  %-12s %s\n", k->name, k->help);
	fprintf(f, "Modes: ");
	print_modes(f);
	(void)fclose(f);
	return (text);
}

static void
set_key(struct group *g, const char *item)
{
	const char *eq = strchr(item, '=');
	const struct key *k;

	if (eq == NULL)
		wrong("'%s' is not valid: use key=value", item);
	for (k = keys; k->name != NULL; k++)
		if (strlen(k->name) == (size_t)(eq - item) &&
		    !strncmp(item, k->name, (size_t)(eq - item))) {
			k->set(k, g, eq + 1);
			return;
		}
	fprintf(stderr, "loadgen: key '%.*s' is not known: use one of",
	    (int)(eq - item), item);
	for (k = keys; k->name != NULL; k++)
		fprintf(stderr, " %s", k->name);
	fprintf(stderr, "\n");
	exit(2);
}

/* Check what depends on several keys. */
static void
check_group(const struct group *g)
{

	if (g->host[0] == '\0')
		wrong("group '%s' needs host=NAME", g->name);
	if (g->rate <= 0 && g->nsteps == 0 && (g->mode->flags & NEEDS_RATE))
		wrong("group '%s' needs a rate above 0", g->name);
	if ((g->mode->flags & IS_H2) && (strlen(g->host) > H2_TEXT_MAX -
	    HOST_PREFIX || strlen(g->path) > H2_TEXT_MAX))
		wrong("group '%s': mode=%s needs a host of at most %d "
		    "characters, and a path of at most %d", g->name,
		    g->mode->name, H2_TEXT_MAX - HOST_PREFIX, H2_TEXT_MAX);
	if (g->fresh && g->mode != &mode_open)
		wrong("group '%s': fresh works only with mode=open", g->name);
	if ((g->nsteps > 0 || g->retries > 0 || g->even) &&
	    g->mode != &mode_open)
		wrong("group '%s': steps, retries and even work only with "
		    "mode=open", g->name);
	if ((g->think > 0 || g->per_conn > 0) && g->mode != &mode_browse)
		wrong("group '%s': think and per_conn work only with "
		    "mode=browse", g->name);
	if (g->on > 0 && g->mode == &mode_browse)
		wrong("group '%s': on does not work with mode=browse", g->name);
	if (g->till > 0 && (g->till <= g->from || g->on > 0 || g->phase >= 0))
		wrong("group '%s': from %g till %g is not allowed: use a later "
		    "till, without on or phase", g->name, g->from, g->till);
	if (g->phase >= 0 && g->mode != &mode_closed)
		wrong("group '%s': phase works only with mode=closed",
		    g->name);
	if (g->phase >= (int)win.nphases)
		wrong("group '%s': phase %d is not allowed: use 0 to %u",
		    g->name, g->phase, win.nphases - 1);
}

/* Make a group of "key=value,key=value"; the text is changed. */
void
keys_group(char *spec, const struct sockaddr_in *proxy)
{
	struct group *g = group_new();
	char *item, *save = NULL;

	if (g == NULL)
		wrong("too many groups: use at most %u", ngroups);
	(void)snprintf(g->name, sizeof g->name, "g%u", ngroups);
	strcpy(g->path, "/");
	g->mode = &mode_closed;
	g->nconn = 1;
	g->phase = -1;
	g->streams = 1;
	g->window = H2_WINDOW_MAX;
	g->to = *proxy;
	for (item = strtok_r(spec, ",", &save); item != NULL;
	    item = strtok_r(NULL, ",", &save))
		set_key(g, item);
	check_group(g);
	if (g->mode->flags & FRESH)
		g->fresh = 1;
}
