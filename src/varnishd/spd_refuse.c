/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The answer of a refusal: no VCL runs, and the connection usually stays open.
 *
 * A new connection costs more CPU time than a refusal.  So the connection closes
 * only if the client wants that, if the request has a body, which nobody reads,
 * or if the socket has no room for the answer.  Retry-After is random, so that
 * refused clients do not all come back in the same second.
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

/* Return a random number of seconds, 1 to sandpaper_retry_after. */
static unsigned
spd_retry_after(void)
{
	unsigned most = cache_param->sandpaper_retry_after;

	return (1 + (unsigned)(spd_draw(spd_self()) * most));
}

/* Log protocol, status and reason.  Return status and reason: the first three
 * characters are the status. */
static const char *
spd_status(struct req *req, const char *protocol)
{
	/* In the order of SPD_STATUS_NAMES */
	static const char * const lines[] = {
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
	const char *status, *connection = "";
	char answer[SPD_ANSWER];
	ssize_t l, sent;

	req->doclose = req->htc->body_status == BS_NONE ?
	    SPD_DOCLOSE(req->http) : SC_OVERLOAD;
	if (req->doclose != SC_NULL)
		connection = "Connection: close\r\n";
	else if (req->http->protover == 10)
		connection = "Connection: keep-alive\r\n";
	status = spd_status(req, "HTTP/1.1");
	bprintf(answer, "HTTP/1.1 %s\r\nDate: %s\r\nRetry-After: %u\r\n"
	    "Content-Length: 0\r\n%s\r\n", status, spd_date(),
	    spd_retry_after(), connection);
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

/* Header names: indexes of the static table (RFC 7541, Appendix A), in the form
 * of section 6.2.2 */
#define HPACK_STATUS		"\x08"
#define HPACK_DATE		"\x0f\x12"
#define HPACK_RETRY_AFTER	"\x0f\x26"
#define HPACK_CONTENT_LENGTH	"\x0f\x0d"

/* Write a header, and return the end.  l: length of the value, below 127. */
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
 * block, and log its status.  Returns its length.  Returns 0 if Sandpaper is
 * off: there was no thread for the stream, and the caller resets it.
 */
size_t
SPD_Refusal(struct req *req, char *b)
{
	const char *date, *status;
	char after[12], *p = b;

	if (spd_set.mode == SPD_OFF)
		return (0);
	status = spd_status(req, "HTTP/2.0");
	date = spd_date();
	bprintf(after, "%u", spd_retry_after());
	p = spd_hpack(p, HPACK_STATUS, status, 3);
	p = spd_hpack(p, HPACK_DATE, date, strlen(date));
	p = spd_hpack(p, HPACK_RETRY_AFTER, after, strlen(after));
	p = spd_hpack(p, HPACK_CONTENT_LENGTH, "0", 1);
	return ((size_t)(p - b));
}
