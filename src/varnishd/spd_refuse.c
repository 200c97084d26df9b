/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The answer of a refusal: usually no VCL runs, and the connection stays open.
 *
 * A new connection costs more CPU time than a refusal.  So the connection
 * closes only if the client wants that, if varnishd is draining, if the request
 * has a body, which nobody reads, or if the socket has no room for the answer.
 * Retry-After is random, so that
 * refused clients do not all come back in the same second.  The tenant can have
 * a status and a page of its own.
 *
 * If the tenant's refusal says so, vcl_synth makes the answer, on the worker
 * that refuses.  This worker has no slot then, so few may do that at a time: a
 * client that does not read its answer holds its worker.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>
#include <sys/uio.h>

#include "spd.h"

#include "vtim.h"

#define SPD_ANSWER	512		/* bytes, of the head */
#define SPD_BY_VCL	8		/* answers by VCL at the same time */

static _Atomic unsigned by_vcl;		/* answers by VCL that go on */

/*
 * Take a reference to what this tenant's refused requests get, for the answer
 * that the worker sends next.  t NULL: it has nothing of its own.  Caller holds
 * spd_lock().
 */
void
spd_refusal_of(struct spd_worker *me, const struct spd_tenant *t)
{

	SPD_LOCKED();
	PAGE_Unref(me->page);
	me->page = t == NULL ? NULL : PAGE_Ref(t->refusal);
}

/* Return 1 if the head of an HTTP/1 answer may be that of the page.  If the
 * connection closes with an unread body, the kernel may drop what was not sent
 * yet: then there is no page. */
static int
spd_has_page(const struct req *req, const struct page *page)
{

	return (page != NULL && page->body_len > 0 &&
	    req->htc->body_status == BS_NONE);
}

/* Return how many bytes of its page the worker will send for this HTTP/1
 * request. */
size_t
spd_page_bytes(const struct spd_worker *me, const struct req *req)
{

	return (spd_has_page(req, me->page) &&
	    strcmp(req->http->hd[HTTP_HDR_METHOD].b, "HEAD") ?
	    me->page->body_len : 0);
}

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

/* Return the status and the reason of a refusal.  page: the tenant's, or NULL. */
static const char *
spd_status_line(const struct page *page)
{
	/* In the order of SPD_STATUS_NAMES */
	static const char * const lines[] = {
		"503 Service Unavailable",
		"429 Too Many Requests"
	};

	return (lines[page != NULL && page->status != 0 ?
	    page->status == 429 : cache_param->sandpaper_status]);
}

/* Log protocol, status and reason, and return the last two.  page: the
 * tenant's, or NULL. */
static const char *
spd_status(struct req *req, const char *protocol, const struct page *page)
{
	const char *line = spd_status_line(page);
	char status[4];

	bprintf(status, "%.3s", line);
	VSLbs(req->vsl, SLT_RespProtocol, TOSTRAND(protocol));
	VSLbs(req->vsl, SLT_RespStatus, TOSTRAND(status));
	VSLbs(req->vsl, SLT_RespReason, TOSTRAND(line + 4));
	return (line);
}

/* Account for the bytes of an answer.  sent: as sendmsg() says. */
static void
spd_count_sent(struct req *req, ssize_t sent, ssize_t head)
{

	if (sent <= 0)
		return;
	req->acct.resp_hdrbytes += (uint64_t)vmin_t(ssize_t, sent, head);
	req->acct.resp_bodybytes += (uint64_t)vmax_t(ssize_t, 0, sent - head);
}

/*
 * Answer a refused HTTP/1 request.  The write must not block: if the socket has
 * no room for the answer, the connection closes.
 */
void
spd_refuse(struct req *req)
{
	struct spd_worker *me = spd_self();
	struct page *page = me->page;
	const char *status, *connection = "";
	char head[SPD_ANSWER];
	struct iovec iov[2] = { { .iov_base = head } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 1 };
	ssize_t l, sent;

	req->doclose = req->htc->body_status == BS_NONE ?
	    SPD_DOCLOSE(req->http) : SC_OVERLOAD;
	if (SPD_Draining() && req->doclose == SC_NULL)
		req->doclose = SC_RESP_CLOSE;
	if (req->doclose != SC_NULL)
		connection = "Connection: close\r\n";
	else if (req->http->protover == 10)
		connection = "Connection: keep-alive\r\n";
	status = spd_status(req, "HTTP/1.1", page);
	bprintf(head, "HTTP/1.1 %s\r\nDate: %s\r\nRetry-After: %u\r\n"
	    "%s%s\r\n", status, spd_date(), spd_retry_after(),
	    spd_has_page(req, page) ? page->head : "Content-Length: 0\r\n",
	    connection);
	iov[0].iov_len = strlen(head);
	iov[1].iov_len = spd_page_bytes(me, req);
	if (iov[1].iov_len > 0) {
		iov[1].iov_base = TRUST_ME(page->body);
		msg.msg_iovlen = 2;
	}
	l = (ssize_t)(iov[0].iov_len + iov[1].iov_len);
	sent = sendmsg(req->sp->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	spd_count_sent(req, sent, (ssize_t)iov[0].iov_len);
	if (sent != l)
		req->doclose = SC_OVERLOAD;
	PAGE_Unref(page);
	me->page = NULL;
}

/*--------------------------------------------------------------------
 * VCL answers
 */

/* Return 1 if VCL may answer this refused HTTP/1 request, and log the request.
 * It then continues like an admitted request. */
int
spd_refuse_in_vcl(struct req *req)
{
	struct spd_worker *me = spd_self();

	AZ(me->answers);
	if (me->page == NULL || !me->page->vcl ||
	    req->htc->body_status != BS_NONE)
		return (0);
	if (by_vcl++ >= SPD_BY_VCL) {
		by_vcl--;
		return (0);
	}
	me->answers = req;
	http_VSL_log(req->http);
	return (1);
}

/* Give vcl_synth the status of the refusal.  client.identity may still be that of
 * the connection's last request. */
void
spd_refusal_synth(const struct spd_worker *me, struct req *req)
{
	const char *line = spd_status_line(me->page);

	req->err_code = (uint16_t)atoi(line);
	req->err_reason = line + 4;
	req->client_identity = NULL;
}

/* VCL has answered: another request may run VCL. */
void
spd_by_vcl_ends(struct spd_worker *me)
{

	AN(me->answers);
	me->answers = NULL;
	by_vcl--;
	PAGE_Unref(me->page);
	me->page = NULL;
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
 * block, and log its status.  It has no body: the client may allow none yet.
 * Returns its length.  Returns 0 if Sandpaper is off: there was no thread for
 * the stream, and the caller resets it.
 */
size_t
SPD_Refusal(struct req *req, char *b)
{
	struct spd_worker *me = spd_self();
	const char *date, *status;
	char after[12], *p = b;

	if (spd_set.mode == SPD_OFF)
		return (0);	/* spd_refusal_of() ends the reference */
	status = spd_status(req, "HTTP/2.0", me->page);
	PAGE_Unref(me->page);
	me->page = NULL;
	date = spd_date();
	bprintf(after, "%u", spd_retry_after());
	p = spd_hpack(p, HPACK_STATUS, status, 3);
	p = spd_hpack(p, HPACK_DATE, date, strlen(date));
	p = spd_hpack(p, HPACK_RETRY_AFTER, after, strlen(after));
	p = spd_hpack(p, HPACK_CONTENT_LENGTH, "0", 1);
	return ((size_t)(p - b));
}
