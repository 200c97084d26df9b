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

/*
 * Answer a refused HTTP/1 request.  The write must not block: if the socket has
 * no room for the answer, the connection closes.
 */
void
spd_refuse(struct req *req)
{
	static const char * const reasons[] = {
		"503 Service Unavailable",
		"429 Too Many Requests"
	};
	const char *reason = reasons[cache_param->sandpaper_status];
	char answer[SPD_ANSWER], status[4];
	ssize_t l, sent;

	req->doclose = req->htc->body_status == BS_NONE ?
	    SPD_DOCLOSE(req->http) : SC_OVERLOAD;
	bprintf(status, "%.3s", reason);
	VSLbs(req->vsl, SLT_RespProtocol, TOSTRAND("HTTP/1.1"));
	VSLbs(req->vsl, SLT_RespStatus, TOSTRAND(status));
	VSLbs(req->vsl, SLT_RespReason, TOSTRAND(reason + 4));
	bprintf(answer, "HTTP/1.1 %s\r\nDate: %s\r\nRetry-After: %u\r\n"
	    "Content-Length: 0\r\n%s\r\n", reason, spd_date(),
	    spd_retry_after(),
	    req->doclose != SC_NULL ? "Connection: close\r\n" : "");
	l = (ssize_t)strlen(answer);
	sent = send(req->sp->fd, answer, (size_t)l,
	    MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		req->acct.resp_hdrbytes += (uint64_t)sent;
	if (sent != l)
		req->doclose = SC_OVERLOAD;
}
