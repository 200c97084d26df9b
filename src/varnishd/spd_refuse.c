/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The answer of a refusal: no VCL runs, and the connection stays open.
 *
 * A client that must connect again costs more than its refusal.  So the
 * connection closes only if the client wants that, or if the request has a
 * body, which nobody reads.  Retry-After is drawn, so that refused clients do
 * not all come back in the same second.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>

#include "spd.h"

#include "vtim.h"

#define SPD_ANSWER	512		/* bytes */

/* Return the time for a Date header, formatted once a second. */
static const char *
spd_date(void)
{
	static __thread char date[VTIM_FORMAT_SIZE];
	static __thread int64_t second;
	vtim_real now = VTIM_real();

	if ((int64_t)now != second) {
		second = (int64_t)now;
		VTIM_format(now, date);
	}
	return (date);
}

/* Return after how many seconds the client may try again. */
static unsigned
spd_retry_after(void)
{
	unsigned most = cache_param->sandpaper_retry_after;

	return (1 + (unsigned)(spd_draw(spd_self()) * most));
}

/* Return the status line of a refusal, and log it.  protocol: for the log. */
static const char *
spd_status(struct req *req, const char *protocol)
{
	static const char * const lines[] = {	/* as SPD_STATUS_NAMES */
		"503 Service Unavailable",
		"429 Too Many Requests"
	};
	const char *line = lines[cache_param->sandpaper_status];
	char status[4];

	bprintf(status, "%.3s", line);
	VSLbs(req->vsl, SLT_RespProtocol, TOSTRAND(protocol));
	VSLbs(req->vsl, SLT_RespStatus, TOSTRAND(status));
	VSLbs(req->vsl, SLT_RespReason, TOSTRAND(line + 4));
	return (line);
}

/*
 * Answer a refused HTTP/1 request.  The write must not block: if the socket has
 * no room for the answer, the connection closes.
 */
void
spd_refuse(struct req *req)
{
	char answer[SPD_ANSWER];
	const char *status;
	ssize_t l, sent;

	req->doclose = req->htc->body_status == BS_NONE ?
	    SPD_DOCLOSE(req->http) : SC_OVERLOAD;
	status = spd_status(req, "HTTP/1.1");
	bprintf(answer, "HTTP/1.1 %s\r\nDate: %s\r\nRetry-After: %u\r\n"
	    "Content-Length: 0\r\n%s\r\n", status, spd_date(),
	    spd_retry_after(),
	    req->doclose != SC_NULL ? "Connection: close\r\n" :
	    req->http->protover == 10 ? "Connection: keep-alive\r\n" : "");
	l = (ssize_t)strlen(answer);
	sent = send(req->sp->fd, answer, (size_t)l,
	    MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		req->acct.resp_hdrbytes += (uint64_t)sent;
	if (sent != l)
		req->doclose = SC_OVERLOAD;
}

/*--------------------------------------------------------------------
 * HTTP/2
 */

/* Names of RFC 7541, Appendix A, in a literal without indexing (6.2.2) */
#define HPACK_STATUS		"\x08"
#define HPACK_DATE		"\x0f\x12"
#define HPACK_RETRY_AFTER	"\x0f\x26"
#define HPACK_CONTENT_LENGTH	"\x0f\x0d"

/* Write a header, and return the end.  value: below 127 bytes. */
static char *
spd_hpack(char *p, const char *name, const char *value, size_t l)
{

	p = stpcpy(p, name);
	*p++ = (char)l;
	memcpy(p, value, l);
	return (p + l);
}

/*
 * Write the answer of a refused stream to b, SPD_REFUSAL bytes, as an HPACK
 * block, and log it.  Returns its length.  0: Sandpaper is off, and there was
 * no thread for the stream.
 */
size_t
SPD_Refusal(struct req *req, char *b)
{
	char after[12], *p = b;
	const char *date = spd_date();

	if (spd_set.mode == SPD_OFF)
		return (0);
	bprintf(after, "%u", spd_retry_after());
	p = spd_hpack(p, HPACK_STATUS, spd_status(req, "HTTP/2.0"), 3);
	p = spd_hpack(p, HPACK_DATE, date, strlen(date));
	p = spd_hpack(p, HPACK_RETRY_AFTER, after, strlen(after));
	p = spd_hpack(p, HPACK_CONTENT_LENGTH, "0", 1);
	return ((size_t)(p - b));
}
