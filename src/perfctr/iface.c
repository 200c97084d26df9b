/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A network interface: how many bytes it has sent, and how many are queued.
 *
 * The kernel answers by rtnetlink, for the network namespace of this process.
 * The socket and the index of the interface are kept in spd_iface_read().  Only
 * the keeper calls that, so no lock is needed.
 */

#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "iface.h"

/*
 * Return 1 if the addresses are equal, without their ports.  Varnish's sockets
 * for IPv6 accept only IPv6, so there are no mapped addresses.
 */
static int
same_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a == NULL || a->sa_family != b->ss_family)
		return (0);
	if (a->sa_family == AF_INET)
		return (a4->sin_addr.s_addr == b4->sin_addr.s_addr);
	return (!memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr));
}

/*
 * Find the interface that has this address.  Write its name and return its
 * index, or return 0 if there is none.
 */
static unsigned
link_find(const struct sockaddr_storage *ss, char *name, size_t len)
{
	struct ifaddrs *ifa, *i;
	unsigned index = 0;

	if (getifaddrs(&ifa))
		return (0);
	for (i = ifa; i != NULL; i = i->ifa_next) {
		if (!same_address(i->ifa_addr, ss))
			continue;
		index = if_nametoindex(i->ifa_name);
		(void)snprintf(name, len, "%s", i->ifa_name);
		break;
	}
	freeifaddrs(ifa);
	return (index);
}

/* Return the nominal speed, bits/s, or 0 if the driver does not know it */
static uint64_t
link_speed(const char *name)
{
	char path[128];
	long mbit = 0;
	FILE *f;

	(void)snprintf(path, sizeof path, "/sys/class/net/%s/speed", name);
	f = fopen(path, "r");
	if (f == NULL)
		return (0);
	if (fscanf(f, "%ld", &mbit) != 1 || mbit < 0)
		mbit = 0;
	(void)fclose(f);
	return ((uint64_t)mbit * 1000000);
}

/*--------------------------------------------------------------------
 * rtnetlink
 */

struct link_seen {
	unsigned	index;
	uint64_t	tx_bytes;	/* sent */
	uint64_t	backlog;	/* bytes */
	int		found;		/* tx_bytes is known */
	int		paced;		/* it has a qdisc of the kind fq */
};

static void
link_stats(struct link_seen *seen, struct nlmsghdr *h)
{
	struct ifinfomsg *ifi = NLMSG_DATA(h);
	struct rtattr *a = IFLA_RTA(ifi);
	struct rtnl_link_stats64 st;
	int l = (int)IFLA_PAYLOAD(h);

	for (; RTA_OK(a, l); a = RTA_NEXT(a, l)) {
		if (a->rta_type != IFLA_STATS64)
			continue;
		memcpy(&st, RTA_DATA(a), sizeof st);
		seen->tx_bytes = st.tx_bytes;
		seen->found = 1;
	}
}

static void
link_qdisc(struct link_seen *seen, struct nlmsghdr *h)
{
	struct tcmsg *tc = NLMSG_DATA(h);
	struct rtattr *a = TCA_RTA(tc), *b;
	struct gnet_stats_queue q;
	int l = (int)TCA_PAYLOAD(h), m;

	if ((unsigned)tc->tcm_ifindex != seen->index)
		return;
	for (; RTA_OK(a, l); a = RTA_NEXT(a, l)) {
		/* fq paces: it keeps a packet until the time to send it.  So
		 * its backlog does not mean that net is full */
		if (a->rta_type == TCA_KIND && !strcmp(RTA_DATA(a), "fq"))
			seen->paced = 1;
		/* A root qdisc's backlog includes that of its children */
		if (a->rta_type != TCA_STATS2 || tc->tcm_parent != TC_H_ROOT)
			continue;
		m = (int)RTA_PAYLOAD(a);
		for (b = RTA_DATA(a); RTA_OK(b, m); b = RTA_NEXT(b, m)) {
			if (b->rta_type != TCA_STATS_QUEUE)
				continue;
			memcpy(&q, RTA_DATA(b), sizeof q);
			seen->backlog += q.backlog;
		}
	}
}

/*
 * Ask the kernel one question, and read all of its answer into *seen.
 * Return 0, or -1 after an error or a time-out.
 */
static int
link_ask(int s, struct link_seen *seen, int type, int flags)
{
	struct {
		struct nlmsghdr h;
		union {
			struct ifinfomsg ifi;
			struct tcmsg tc;
		} u;
	} ask;
	char buf[32768] __attribute__((aligned(8)));
	struct nlmsghdr *h;
	ssize_t n;

	memset(&ask, 0, sizeof ask);
	ask.h.nlmsg_type = (uint16_t)type;
	ask.h.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	if (type == RTM_GETLINK) {
		ask.h.nlmsg_len = NLMSG_LENGTH(sizeof ask.u.ifi);
		ask.u.ifi.ifi_index = (int)seen->index;
	} else {
		ask.h.nlmsg_len = NLMSG_LENGTH(sizeof ask.u.tc);
		ask.u.tc.tcm_ifindex = (int)seen->index;
	}
	if (send(s, &ask, ask.h.nlmsg_len, 0) < 0)
		return (-1);
	while (1) {
		n = recv(s, buf, sizeof buf, 0);
		if (n <= 0)
			return (-1);
		for (h = (void *)buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_ERROR)
				return (-1);
			if (h->nlmsg_type == NLMSG_DONE)
				return (0);
			if (h->nlmsg_type == RTM_NEWLINK)
				link_stats(seen, h);
			if (h->nlmsg_type == RTM_NEWQDISC)
				link_qdisc(seen, h);
			if (!(h->nlmsg_flags & NLM_F_MULTI))
				return (0);
		}
	}
}

/*
 * Look at the interface that has this address.  Return 0, or -1 if no
 * interface has the address, or if the kernel does not answer.
 *
 *	tx_bytes	bytes sent, counted behind the qdisc
 *	backlog		bytes queued in the qdisc
 *	paced		1: the backlog may be packets that wait for their time
 *	speed		nominal, bits/s, 0: unknown
 *
 * speed and name are written only when the interface is searched: at the first
 * call, for another address, and after an error.
 */
int
spd_iface_read(const struct sockaddr_storage *ss, uint64_t *tx_bytes,
    uint64_t *backlog, int *paced, uint64_t *speed, char *name, size_t len)
{
	static int s = -1;
	static unsigned index;
	static struct sockaddr_storage of;
	struct timeval tv = { 0, 100000 };
	struct link_seen seen;

	if (memcmp(&of, ss, sizeof of)) {
		of = *ss;
		index = 0;
	}
	if (index == 0) {
		index = link_find(ss, name, len);
		if (index == 0)
			return (-1);
		*speed = link_speed(name);
	}
	if (s < 0) {
		s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
		if (s < 0)
			return (-1);
		(void)setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	}
	memset(&seen, 0, sizeof seen);
	seen.index = index;
	if (link_ask(s, &seen, RTM_GETLINK, 0) || !seen.found ||
	    link_ask(s, &seen, RTM_GETQDISC, NLM_F_DUMP)) {
		(void)close(s);
		s = -1;
		index = 0;
		return (-1);
	}
	*tx_bytes = seen.tx_bytes;
	*backlog = seen.backlog;
	*paced = seen.paced;
	return (0);
}
