/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Interfaces of a kernel whose answers the test changes: it fails, or has a
 * qdisc that this kernel may lack.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cmocka.h>

#include "iface_world.h"

/*--------------------------------------------------------------------
 * The kernel's answers, as the test wants them
 */

static struct {
	int		no_addresses;
	int		no_socket;
	/* The n-th call, 0: none */
	int		no_send;
	int		no_answer;	/* recv() fails */
	int		empty_answer;	/* recv() returns 0 */
	int		error_answer;
	uint16_t	hidden;		/* attribute of a link to leave out */
	const char	*tbf;		/* what each tbf is called; at most
					 * 3 letters */
	int		searches;	/* calls of getifaddrs() */
	int		lists;		/* of it that are not freed */
	int		sends;		/* calls of send() */
	int		answers;	/* and of recv() */
} kernel;

#define REAL(f)		((__typeof__(&(f)))real(#f))

static void *
real(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (f == NULL)
		abort();
	return (f);
}

int
getifaddrs(struct ifaddrs **all)
{

	if (kernel.no_addresses) {
		errno = ENOBUFS;
		return (-1);
	}
	if (REAL(getifaddrs)(all))
		return (-1);
	kernel.searches++;
	kernel.lists++;
	(*all)->ifa_addr = NULL;	/* as of a tunnel */
	return (0);
}

void
freeifaddrs(struct ifaddrs *all)
{

	kernel.lists--;
	REAL(freeifaddrs)(all);
}

int
socket(int domain, int type, int protocol)
{

	if (kernel.no_socket && domain == AF_NETLINK) {
		errno = EMFILE;
		return (-1);
	}
	return (REAL(socket)(domain, type, protocol));
}

ssize_t
send(int fd, const void *p, size_t len, int flags)
{

	if (++kernel.sends == kernel.no_send) {
		errno = ENOBUFS;
		return (-1);
	}
	return (REAL(send)(fd, p, len, flags));
}

static void
edit_link(struct nlmsghdr *h)
{
	struct rtattr *a = IFLA_RTA(NLMSG_DATA(h));
	int l = (int)IFLA_PAYLOAD(h);

	for (; RTA_OK(a, l); a = RTA_NEXT(a, l))
		if (a->rta_type == kernel.hidden)
			a->rta_type = 0;
}

static void
edit_qdisc(struct nlmsghdr *h)
{
	struct rtattr *a = TCA_RTA(NLMSG_DATA(h));
	int l = (int)TCA_PAYLOAD(h);

	for (; RTA_OK(a, l); a = RTA_NEXT(a, l))
		if (a->rta_type == TCA_KIND && !strcmp(RTA_DATA(a), "tbf"))
			strcpy(RTA_DATA(a), kernel.tbf);
}

ssize_t
recv(int fd, void *p, size_t len, int flags)
{
	struct nlmsghdr *h = p;
	ssize_t n, l;

	if (++kernel.answers == kernel.empty_answer)
		return (0);
	if (kernel.answers == kernel.no_answer) {
		errno = EAGAIN;
		return (-1);
	}
	n = l = REAL(recv)(fd, p, len, flags);
	for (; NLMSG_OK(h, l); h = NLMSG_NEXT(h, l)) {
		if (kernel.answers == kernel.error_answer)
			h->nlmsg_type = NLMSG_ERROR;
		if (h->nlmsg_type == RTM_NEWLINK && kernel.hidden)
			edit_link(h);
		if (h->nlmsg_type == RTM_NEWQDISC && kernel.tbf != NULL)
			edit_qdisc(h);
	}
	return (n);
}

/*--------------------------------------------------------------------*/

static int
begin(void **state)
{

	memset(&kernel, 0, sizeof kernel);
	return (world_begin(state));
}

static int
end(void **state)
{

	assert_int_equal(kernel.lists, 0);
	return (world_end(state));
}

/* It is searched once, whatever the port */
static void
test_searched_once(void **state)
{
	struct sockaddr_storage ss = address_of("10.0.1.1");
	struct sockaddr_in *a4 = (void *)&ss;
	struct iface_stat st;
	int fd, i;

	(void)state;
	need_namespaces();
	assert_int_equal(IFACE_Read(&iface, &ss, &st), 0);
	fd = iface.fd;
	for (i = 0; i < 3; i++) {
		a4->sin_port++;
		assert_int_equal(IFACE_Read(&iface, &ss, &st), 0);
	}
	assert_int_equal(kernel.searches, 1);
	assert_int_equal(iface.fd, fd);
	IFACE_Close(&iface);
	assert_int_equal(IFACE_Read(&iface, &ss, &st), 0);
	assert_int_equal(kernel.searches, 2);
}

/* The kernel's list of qdiscs takes more messages than for few of them */
static void
test_long_answer(void **state)
{
	int few;

	(void)state;
	need_namespaces();
	(void)seen("10.0.1.1");
	few = kernel.answers;
	add_pair("many", 4, "numtxqueues 300");
	tc("qdisc add dev many root mq\n");
	add_pair("last", 3, "");
	tc("qdisc add dev last root tbf " SLOW "\n");
	send_frames(3, FIRST + 10);
	kernel.answers = 0;
	assert_int_equal(seen("10.0.3.1").backlog, 10 * FRAME);
	assert_true(kernel.answers > few);
}

/* The test calls each tbf an fq: this kernel may have none */
static void
test_paced(void **state)
{
	struct iface_stat st;

	(void)state;
	need_namespaces();
	kernel.tbf = "fq";
	tc("qdisc add dev one root handle 1: tbf " SLOW "\n");
	send_frames(1, FIRST + 10);
	st = seen("10.0.1.1");
	assert_int_equal(st.paced, 1);
	assert_int_equal(st.backlog, 10 * FRAME);
	/* Another qdisc whose name only begins like that */
	kernel.tbf = "fqx";
	assert_int_equal(seen("10.0.1.1").paced, 0);
	kernel.tbf = "fq";
	/* That of another interface does not matter */
	assert_int_equal(seen("10.0.2.1").paced, 0);
	tc("qdisc add dev two root pfifo limit 10\n");
	assert_int_equal(seen("10.0.2.1").paced, 0);
	/* Nor that it was there before */
	tc("qdisc del dev one root\n");
	assert_int_equal(seen("10.0.1.1").paced, 0);
}

/* An fq for each queue */
static void
test_paced_child(void **state)
{

	(void)state;
	need_namespaces();
	kernel.tbf = "fq";
	add_pair("four", 4, "numtxqueues 4");
	tc("qdisc add dev four root handle 1: mq\n"
	    "qdisc add dev four parent 1:3 tbf " SLOW "\n");
	assert_int_equal(seen("10.0.4.1").paced, 1);
}

/*--------------------------------------------------------------------
 * A kernel that refuses
 */

/* After a failure all is closed, and the next call succeeds */
static void
fails_once(void)
{

	not_seen("10.0.1.1");
	assert_int_equal(iface.fd, -1);
	memset(&kernel, 0, sizeof kernel);
	(void)seen("10.0.1.1");
	assert_string_equal(iface.name, "one");
	memset(&kernel, 0, sizeof kernel);
}

static void
test_refused(void **state)
{

	(void)state;
	need_namespaces();
	kernel.no_addresses = 1;
	fails_once();
	IFACE_Close(&iface);
	kernel.no_socket = 1;
	fails_once();
	kernel.hidden = IFLA_STATS64;
	fails_once();
}

/* Of the two questions, one fails */
static void
test_no_answer(void **state)
{
	int n;

	(void)state;
	need_namespaces();
	for (n = 1; n <= 2; n++) {
		kernel.no_send = n;
		fails_once();
		kernel.no_answer = n;
		fails_once();
		kernel.empty_answer = n;
		fails_once();
		kernel.error_answer = n;
		fails_once();
	}
}

/* A process without standard input */
static void
test_first_file(void **state)
{
	struct timeval tv;
	socklen_t l = sizeof tv;
	int in;

	(void)state;
	need_namespaces();
	in = dup(0);
	assert_int_equal(close(0), 0);
	(void)seen("10.0.1.1");
	assert_int_equal(iface.fd, 0);
	assert_int_equal(getsockopt(0, SOL_SOCKET, SO_RCVTIMEO, &tv, &l), 0);
	assert_int_equal(tv.tv_usec, IFACE_PATIENCE);
	(void)seen("10.0.1.1");
	assert_int_equal(iface.fd, 0);
	IFACE_Close(&iface);
	assert_int_equal(dup(in), 0);
	assert_int_equal(close(in), 0);
}

#define TEST(f)		cmocka_unit_test_setup_teardown(f, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_searched_once),
		TEST(test_long_answer),
		TEST(test_paced),
		TEST(test_paced_child),
		TEST(test_refused),
		TEST(test_no_answer),
		TEST(test_first_file)
	};

	return (cmocka_run_group_tests(tests, world_enter, NULL));
}
