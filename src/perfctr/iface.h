/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A network interface: how many bytes it has sent, and how many are queued.
 *
 * The caller names the interface by one of its addresses.  The kernel answers
 * by rtnetlink, for the network namespace of the calling thread.
 *
 * The caller owns the struct, and makes one call at a time.
 */

#ifndef IFACE_H_INCLUDED
#define IFACE_H_INCLUDED

#include <stdint.h>

#include <net/if.h>
#include <sys/socket.h>

#define IFACE_PATIENCE	100000		/* us */

struct iface {
	unsigned		magic;
#define IFACE_MAGIC		0x1face0ff
	int			fd;		/* rtnetlink; -1: not open */
	unsigned		index;		/* 0: not found yet */
	struct sockaddr_storage	address;	/* of the interface */
	/* Of the interface that was found last */
	char			name[IF_NAMESIZE];	/* "": none so far */
	uint64_t		speed;		/* nominal, bits/s; 0: the
						 * driver does not know it */
};

struct iface_stat {
	uint64_t		tx_bytes;	/* sent, after the qdisc */
	uint64_t		backlog;	/* bytes in the qdisc */
	int			paced;		/* its qdisc or a child of that
						 * is `fq` */
};

/* Begin without an interface */
void IFACE_Init(struct iface *);

/*
 * Read what the kernel counts of the interface that has this address, IPv4 or
 * IPv6.  The port does not matter.
 *
 * Returns 0, or -1: no interface has the address, the interface is gone, or the
 * kernel does not answer.  It waits IFACE_PATIENCE at most for a message to
 * arrive.  The kernel makes the message in the calling thread: that has no limit,
 * and takes long while interfaces are changed.  A search has no limit either.
 *
 * The first call looks for the interface, and sets name and speed.  So does a
 * call with another address, and the call after a -1.  Other calls stay with
 * the interface, even if its address has moved to another one.
 *
 * backlog is that of the root qdisc, which includes that of its children.  `fq`
 * paces: it keeps a packet until the time to send it.  So with paced, a backlog
 * does not mean that the interface is busy.
 */
int IFACE_Read(struct iface *, const struct sockaddr_storage *address,
    struct iface_stat *);

/* Close the socket.  The next IFACE_Read() looks for the interface again. */
void IFACE_Close(struct iface *);

#endif
