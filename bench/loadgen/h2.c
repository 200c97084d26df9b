/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Frames out are bytes in a caller's buffer; frames in are eaten as they
 * come, in any pieces, of which only heads, and a status, are kept.
 */

#include <assert.h>
#include <string.h>

#include "h2.h"

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6,
	WINDOW_UPDATE = 8 };

#define END_STREAM	0x01
#define ACK		0x01
#define END_HEADERS	0x04
#define CANCEL		8
#define INITIAL_WINDOW	4
#define STATUS_200	0x88	/* :status 200 in the static table */

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static size_t
put32(uint8_t *p, uint32_t x)
{

	p[0] = (uint8_t)(x >> 24);
	p[1] = (uint8_t)(x >> 16);
	p[2] = (uint8_t)(x >> 8);
	p[3] = (uint8_t)x;
	return (4);
}

static size_t
frame(uint8_t *p, size_t len, unsigned type, unsigned flags, uint32_t stream)
{

	(void)put32(p, (uint32_t)len << 8);
	p[3] = (uint8_t)type;
	p[4] = (uint8_t)flags;
	(void)put32(p + 5, stream);
	return (9 + len);
}

/* A literal whose name is in the static table */
static size_t
field(uint8_t *p, unsigned name, const char *value)
{
	size_t l = strlen(value);

	assert(l <= H2_TEXT_MAX);
	p[0] = (uint8_t)name;
	p[1] = (uint8_t)l;
	memcpy(p + 2, value, l);
	return (2 + l);
}

size_t
H2_Hello(struct h2 *h, uint8_t *p, uint32_t window)
{
	size_t l = sizeof preface - 1;

	memset(h, 0, sizeof *h);
	h->next = 1;
	memcpy(p, preface, l);
	p[l + 9] = 0;
	p[l + 10] = INITIAL_WINDOW;
	(void)put32(p + l + 11, window);
	l += frame(p + l, 6, SETTINGS, 0, 0);
	(void)put32(p + l + 9, H2_WINDOW_MAX - 65535);
	return (l + frame(p + l, 4, WINDOW_UPDATE, 0, 0));
}

size_t
H2_Ask(struct h2 *h, uint8_t *p, const char *host, const char *path)
{
	uint8_t *q = p + 9;

	*q++ = 0x82;			/* :method GET */
	*q++ = 0x86;			/* :scheme http */
	q += field(q, 4, path);
	q += field(q, 1, host);
	h->next += 2;
	return (frame(p, (size_t)(q - p) - 9, HEADERS,
	    END_STREAM | END_HEADERS, h->next - 2));
}

size_t
H2_Reset(const struct h2 *h, uint8_t *p)
{

	(void)put32(p + 9, CANCEL);
	return (frame(p, 4, RST_STREAM, 0, h->next - 2));
}

size_t
H2_Ping(uint8_t *p)
{

	memcpy(p + 9, "sandpapr", 8);
	return (frame(p, 8, PING, 0, 0));
}

size_t
H2_Settings(uint8_t *p, int ack)
{

	return (frame(p, 0, SETTINGS, ack ? ACK : 0, 0));
}

static uint32_t
length(const struct h2 *h)
{

	return ((uint32_t)h->head[0] << 16 | (uint32_t)h->head[1] << 8 |
	    h->head[2]);
}

static void
look(const struct h2 *h, struct h2_seen *seen)
{
	unsigned type = h->head[3], flags = h->head[4];

	if (type == RST_STREAM) {
		seen->refused++;
		seen->ended++;
	} else if (type == SETTINGS && !(flags & ACK))
		seen->settings++;
	else if ((type == DATA || type == HEADERS) && flags & END_STREAM)
		seen->ended++;
}

void
H2_Eat(struct h2 *h, const uint8_t *p, size_t len, struct h2_seen *seen)
{
	const uint8_t *e = p + len;
	size_t n;

	while (p < e) {
		if (h->have < sizeof h->head) {
			h->head[h->have++] = *p++;
			if (h->have < sizeof h->head)
				continue;
			h->left = length(h);
			look(h, seen);
			if (h->left == 0)
				h->have = 0;
			continue;
		}
		if (h->head[3] == HEADERS && h->left == length(h))
			seen->not_ok += *p != STATUS_200;
		n = (size_t)(e - p) < h->left ? (size_t)(e - p) : h->left;
		p += n;
		h->left -= (uint32_t)n;
		if (h->left == 0)
			h->have = 0;
	}
}
