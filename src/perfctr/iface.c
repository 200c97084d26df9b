/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * See iface.h.  One question to rtnetlink gives the interface's
 * counters, a second one the qdiscs of all interfaces.
 *
 * After an error the socket is closed, so no late answer is read as that of the
 * next question.
 */

#include <assert.h>
#include <ifaddrs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "iface.h"

static void
iface_assert(const struct iface *i)
{

	assert(i != NULL && i->magic == IFACE_MAGIC);
}

/*--------------------------------------------------------------------
 * The interface of an address
 */

/*
 * Return 1 if the addresses are equal.  Varnish's IPv6 sockets accept only
 * IPv6, so there are no mapped addresses.
 */
static int
iface_same(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a == NULL || a->sa_family != b->ss_family)
		return (0);
	if (a->sa_family == AF_INET)
		return (a4->sin_addr.s_addr == b4->sin_addr.s_addr);
	return (!memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr));
}

/* Return the nominal speed, bits/s, or 0 if the driver does not know it */
static uint64_t
iface_speed(const char *name)
{
	char path[128];
	long mbit;
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

/* Find the interface that has i->address; i->index is 0 if there is none */
static void
iface_find(struct iface *i)
{
	struct ifaddrs *all, *a;

	i->index = 0;
	if (getifaddrs(&all))
		return;
	for (a = all; a != NULL; a = a->ifa_next)
		if (iface_same(a->ifa_addr, &i->address))
			break;
	/* The name in the list may be a label, such as eth0:1 */
	if (a != NULL)
		i->index = if_nametoindex(a->ifa_name);
	freeifaddrs(all);
	if (i->index != 0 && if_indextoname(i->index, i->name) != NULL)
		i->speed = iface_speed(i->name);
}

/*--------------------------------------------------------------------
 * rtnetlink
 */

struct iface_answer {
	unsigned		index;		/* of the interface */
	int			counted;	/* stat.tx_bytes is set */
	struct iface_stat	stat;
};

/* Copy the counters of the interface. */
static void
iface_counters(struct iface_answer *answer, struct nlmsghdr *h)
{
	struct rtattr *a = IFLA_RTA(NLMSG_DATA(h));
	struct rtnl_link_stats64 st;
	int l = (int)IFLA_PAYLOAD(h);

	for (; RTA_OK(a, l); a = RTA_NEXT(a, l)) {
		if (a->rta_type != IFLA_STATS64)
			continue;
		memcpy(&st, RTA_DATA(a), sizeof st);
		answer->stat.tx_bytes = st.tx_bytes;
		answer->counted = 1;
	}
}

/* Return the backlog, bytes, that TCA_STATS2 of a qdisc has */
static uint64_t
iface_backlog(struct rtattr *stats)
{
	struct rtattr *a = RTA_DATA(stats);
	struct gnet_stats_queue q = { 0 };
	int l = (int)RTA_PAYLOAD(stats);

	for (; RTA_OK(a, l); a = RTA_NEXT(a, l))
		if (a->rta_type == TCA_STATS_QUEUE)
			memcpy(&q, RTA_DATA(a), sizeof q);
	return (q.backlog);
}

/* Copy what a qdisc says, if it is one of the interface. */
static void
iface_qdisc(struct iface_answer *answer, struct nlmsghdr *h)
{
	struct tcmsg *tc = NLMSG_DATA(h);
	struct rtattr *a = TCA_RTA(tc);
	int l = (int)TCA_PAYLOAD(h);

	if ((unsigned)tc->tcm_ifindex != answer->index)
		return;
	for (; RTA_OK(a, l); a = RTA_NEXT(a, l)) {
		if (a->rta_type == TCA_KIND && !strcmp(RTA_DATA(a), "fq"))
			answer->stat.paced = 1;
		if (a->rta_type == TCA_STATS2 && tc->tcm_parent == TC_H_ROOT)
			answer->stat.backlog = iface_backlog(a);
	}
}

/*
 * Ask one question, and take over all of its answer.  Return 0, or -1 after an
 * error or a time-out.
 */
static int
iface_ask(int fd, const struct nlmsghdr *question, struct iface_answer *answer)
{
	char buf[32768] __attribute__((aligned(8)));
	struct nlmsghdr *h;
	ssize_t n;

	if (send(fd, question, question->nlmsg_len, 0) < 0)
		return (-1);
	while ((n = recv(fd, buf, sizeof buf, 0)) > 0) {
		for (h = (void *)buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_ERROR)
				return (-1);
			if (h->nlmsg_type == NLMSG_DONE)
				return (0);
			if (h->nlmsg_type == RTM_NEWLINK)
				iface_counters(answer, h);
			if (h->nlmsg_type == RTM_NEWQDISC)
				iface_qdisc(answer, h);
			if (!(h->nlmsg_flags & NLM_F_MULTI))
				return (0);
		}
	}
	return (-1);
}

/* Ask both questions.  Return 0, or -1 after an error. */
static int
iface_ask_all(int fd, struct iface_answer *answer)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg ifi;
	} counters = {
		.h.nlmsg_len = sizeof counters,
		.h.nlmsg_type = RTM_GETLINK,
		.h.nlmsg_flags = NLM_F_REQUEST,
		.ifi.ifi_index = (int)answer->index
	};
	struct {
		struct nlmsghdr h;
		struct tcmsg tc;
	} qdiscs = {
		.h.nlmsg_len = sizeof qdiscs,
		.h.nlmsg_type = RTM_GETQDISC,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP
	};

	if (iface_ask(fd, &counters.h, answer) || !answer->counted)
		return (-1);
	return (iface_ask(fd, &qdiscs.h, answer));
}

/* Open a socket that waits IFACE_PATIENCE.  Return it, or -1. */
static int
iface_open(void)
{
	struct timeval tv = { 0, IFACE_PATIENCE };
	int fd;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	return (fd);
}

/*--------------------------------------------------------------------*/

void
IFACE_Init(struct iface *i)
{

	memset(i, 0, sizeof *i);
	i->magic = IFACE_MAGIC;
	i->fd = -1;
}

int
IFACE_Read(struct iface *i, const struct sockaddr_storage *address,
    struct iface_stat *st)
{
	struct iface_answer answer;

	iface_assert(i);
	if (i->index == 0 || !iface_same((const void *)&i->address, address)) {
		i->address = *address;
		iface_find(i);
	}
	if (i->index == 0)
		return (-1);
	if (i->fd < 0)
		i->fd = iface_open();
	if (i->fd < 0)
		return (-1);
	memset(&answer, 0, sizeof answer);
	answer.index = i->index;
	if (iface_ask_all(i->fd, &answer)) {
		IFACE_Close(i);
		return (-1);
	}
	*st = answer.stat;
	return (0);
}

void
IFACE_Close(struct iface *i)
{

	iface_assert(i);
	if (i->fd >= 0)
		(void)close(i->fd);
	i->fd = -1;
	i->index = 0;
}
