/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * As much of an HTTP/2 client as misbehaving takes: frames are written by
 * hand, header fields are literals, answers are counted and not looked at.
 */

#include <stddef.h>
#include <stdint.h>

#define H2_WINDOW_MAX	0x7fffffffU
#define H2_FRAME_MAX	512	/* room for one of the frames below */
#define H2_TEXT_MAX	126	/* characters of a host or path */

struct h2 {
	uint8_t		head[9];
	unsigned	have;		/* of the head */
	uint32_t	left;		/* of the payload */
	uint32_t	next;		/* stream */
};

/* What came of some bytes */
struct h2_seen {
	unsigned	ended;		/* streams, by an answer or a reset */
	unsigned	refused;	/* of these, by a reset */
	unsigned	not_ok;		/* of these, with another status */
	unsigned	settings;	/* to be acknowledged */
};

/* Each writes frames and returns their length. */
size_t H2_Hello(struct h2 *, uint8_t *, uint32_t window);
size_t H2_Ask(struct h2 *, uint8_t *, const char *host, const char *path);
size_t H2_Reset(const struct h2 *, uint8_t *);	/* the newest stream */
size_t H2_Ping(uint8_t *);
size_t H2_Settings(uint8_t *, int ack);

void H2_Eat(struct h2 *, const uint8_t *, size_t, struct h2_seen *);
