/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The command line's groups: key=value, by a comma.
 */

#define _GNU_SOURCE
#include "loadgen.h"

void __attribute__((noreturn, format(printf, 1, 2)))
usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "loadgen: ");
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nusage: loadgen [-b] [-w warmup_s] [-t window_s] "
	    "[-s seed] [-p phases] [-l phase_s] [-q settle_s] [-d drain_s] "
	    "[-i interval_s] "
	    "ADDR:PORT key=value[,key=value..] ...\n"
	    "keys: name host path headers mode conns rate limit random_host "
	    "unique hosts every streams window mark on off shift from till "
	    "phase patience fresh to\n");
	exit(2);
}

struct sockaddr_in
parse_address(char *arg)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	char *colon = strrchr(arg, ':');

	if (colon == NULL)
		usage("'%s' is not an address: use ADDR:PORT", arg);
	*colon = '\0';
	to.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	if (inet_pton(AF_INET, arg, &to.sin_addr) != 1)
		usage("'%s' is not an IPv4 address", arg);
	return (to);
}

/* Sets of headers, an empty line between two: requests take them in turn */
static void
read_headers(struct group *g, const char *path)
{
	char line[REQUEST_MAX / 2], **set = &g->headers[0];
	FILE *f = fopen(path, "r");
	size_t l = 0, n;

	if (f == NULL)
		usage("headers '%s': %s", path, strerror(errno));
	while (fgets(line, sizeof line - 1, f) != NULL) {
		n = strcspn(line, "\n");
		if (n == 0) {
			l = 0;
			set = &g->headers[g->nheaders];
			continue;
		}
		memcpy(line + n, "\r\n", 3);
		if (l == 0 && ++g->nheaders > HEADERS_MAX)
			usage("headers '%s': too many sets, use at most %d",
			    path, HEADERS_MAX);
		if (l + n + 2 >= REQUEST_MAX / 2)
			usage("headers '%s': a set is too long, use at most "
			    "%d bytes", path, REQUEST_MAX / 2 - 2);
		*set = realloc(*set, l + n + 3);
		assert(*set != NULL);
		memcpy(*set + l, line, n + 3);
		l += n + 2;
	}
	(void)fclose(f);
	if (g->nheaders == 0)
		usage("headers '%s': the file has no headers", path);
}

static void
set_key(struct group *g, const char *key, char *val)
{
	unsigned i;

	if (!strcmp(key, "name"))
		(void)snprintf(g->name, sizeof g->name, "%s", val);
	else if (!strcmp(key, "host"))
		(void)snprintf(g->host, sizeof g->host, "%s", val);
	else if (!strcmp(key, "path"))
		(void)snprintf(g->path, sizeof g->path, "%s", val);
	else if (!strcmp(key, "headers"))
		read_headers(g, val);
	else if (!strcmp(key, "conns"))
		g->nconn = (unsigned)strtoul(val, NULL, 10);
	else if (!strcmp(key, "rate"))
		g->rate = strtod(val, NULL);
	else if (!strcmp(key, "fresh"))
		g->fresh = atoi(val);
	else if (!strcmp(key, "patience"))
		g->patience = strtod(val, NULL);
	else if (!strcmp(key, "limit"))
		g->limit = strtoull(val, NULL, 10);
	else if (!strcmp(key, "random_host"))
		g->random_host = atoi(val);
	else if (!strcmp(key, "unique"))
		g->unique = atoi(val);
	else if (!strcmp(key, "hosts"))
		g->hosts = (unsigned)strtoul(val, NULL, 10);
	else if (!strcmp(key, "every"))
		g->every = (unsigned)strtoul(val, NULL, 10);
	else if (!strcmp(key, "streams"))
		g->streams = (unsigned)strtoul(val, NULL, 10);
	else if (!strcmp(key, "window"))
		g->window = (uint32_t)strtoul(val, NULL, 10);
	else if (!strcmp(key, "mark"))
		g->mark = (unsigned)strtoul(val, NULL, 10);
	else if (!strcmp(key, "on"))
		g->on = strtod(val, NULL);
	else if (!strcmp(key, "off"))
		g->off = strtod(val, NULL);
	else if (!strcmp(key, "shift"))
		g->shift = strtod(val, NULL);
	else if (!strcmp(key, "from"))
		g->from = strtod(val, NULL);
	else if (!strcmp(key, "till"))
		g->till = strtod(val, NULL);
	else if (!strcmp(key, "phase"))
		g->phase = atoi(val);
	else if (!strcmp(key, "to"))
		g->to = parse_address(val);
	else if (!strcmp(key, "mode")) {
		for (i = 0; mode_names[i] != NULL; i++)
			if (!strcmp(val, mode_names[i]))
				break;
		if (mode_names[i] == NULL)
			usage("mode '%s' is not known: use closed, paced, open, "
			    "stall, slow, reset, drip, post, connect, pipe, h2, "
			    "h2-reset, h2-ping", val);
		g->mode = (enum mode)i;
	} else
		usage("key '%s' is not known", key);
}

void
parse_group(char *spec)
{
	struct group *g;
	char *item, *eq, *save = NULL;

	if (ngroups == sizeof groups / sizeof groups[0])
		usage("too many groups: use at most %u", ngroups);
	g = &groups[ngroups++];
	(void)snprintf(g->name, sizeof g->name, "g%u", ngroups);
	(void)snprintf(g->path, sizeof g->path, "/");
	g->nconn = 1;
	g->phase = -1;
	g->streams = 1;
	g->window = H2_WINDOW_MAX;
	g->to = proxy;
	for (item = strtok_r(spec, ",", &save); item != NULL;
	    item = strtok_r(NULL, ",", &save)) {
		eq = strchr(item, '=');
		if (eq == NULL)
			usage("'%s' is not valid: use key=value", item);
		*eq = '\0';
		set_key(g, item, eq + 1);
	}
	if (g->host[0] == '\0' || g->nconn == 0)
		usage("group '%s' needs host and conns", g->name);
	if (g->rate <= 0 && g->mode != CLOSED && g->mode != STALL &&
	    g->mode != PIPE && g->mode != H2)
		usage("group '%s' needs a rate", g->name);
	if (g->fresh && g->mode != OPEN)
		usage("group '%s': only open groups are fresh", g->name);
	if (g->till > 0 && (g->from < 0 || g->till <= g->from || g->on > 0 ||
	    g->phase >= 0))
		usage("group '%s': from %g till %g, without on or phase",
		    g->name, g->from, g->till);
	if (g->phase >= 0 && g->mode != CLOSED)
		usage("group '%s': phase works only with mode=closed",
		    g->name);
	if (g->phase >= (int)nphases)
		usage("group '%s': phase %d is not allowed: use 0 to %u",
		    g->name, g->phase, nphases - 1);
}
