/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A network interface: what it has sent, and what is queued before it.  From the
 * kernel by rtnetlink, in the network namespace that this process is in.
 */

#include "config.h"

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

#include "spd.h"

/* Varnish's sockets for IPv6 are for IPv6 only: there are no mapped addresses */
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

/* bits/s, as the driver says; 0: it does not know */
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
	uint64_t	tx_bytes;
	uint64_t	backlog;
	int		found;
	int		paced;		/* its qdisc holds packets back */
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
		/* fq holds packets back until their time to be sent has come:
		 * its backlog does not say that the link is full */
		if (a->rta_type == TCA_KIND && !strcmp(RTA_DATA(a), "fq"))
			seen->paced = 1;
		/* A root qdisc's backlog includes its children's */
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
 * What the interface with this address has sent (bytes, behind the qdisc),
 * what is queued before it (bytes), whether some of that may wait for its
 * pace, its nominal speed (bits/s, 0: unknown) and
 * its name.  -1: there is none.
 */
int
spd_link(const struct sockaddr_storage *ss, uint64_t *tx_bytes,
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
