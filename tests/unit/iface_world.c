/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The namespaces of iface_world.h, by iproute2.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "iface_world.h"

struct iface iface;

static const char *missing;	/* why there are no namespaces, or NULL */
static int fds;			/* open before the test */

/*--------------------------------------------------------------------
 * Namespaces
 */

static int
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return (-1);
	n = write(fd, text, strlen(text));
	(void)close(fd);
	return (n == (ssize_t)strlen(text) ? 0 : -1);
}

/* Return 0, or -1 if this user may not do so */
static int
enter_namespaces(void)
{
	char uid[32], gid[32];

	if (unshare(CLONE_NEWNS | CLONE_NEWNET) == 0)
		return (0);
	(void)snprintf(uid, sizeof uid, "0 %d 1", (int)getuid());
	(void)snprintf(gid, sizeof gid, "0 %d 1", (int)getgid());
	return (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) ||
	    write_file("/proc/self/setgroups", "deny") ||
	    write_file("/proc/self/uid_map", uid) ||
	    write_file("/proc/self/gid_map", gid) ? -1 : 0);
}

int
world_enter(void **state)
{

	(void)state;
	(void)setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	if (system("ip -V >/dev/null 2>&1 && tc -V >/dev/null 2>&1"))
		missing = "needs ip and tc, of iproute2";
	else if (enter_namespaces())
		missing = "needs root or user namespaces";
	else if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("sysfs", "/sys", "sysfs", 0, NULL))
		missing = "needs a sysfs for the network namespace";
	else if (system("{ ip link add name one type veth && "
	    "tc qdisc add dev one root tbf " SLOW "; } 2>/dev/null"))
		missing = "not applicable: no veth or no qdisc tbf here";
	return (0);
}

static int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (d == NULL)
		return (-1);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return (n);
}

int
world_begin(void **state)
{

	(void)state;
	fds = open_fds();
	memset(&iface, 0xff, sizeof iface);
	IFACE_Init(&iface);
	if (missing != NULL)
		return (0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	assert_int_equal(mount("sysfs", "/sys", "sysfs", 0, NULL), 0);
	ip("link set lo up\n");
	add_pair("one", 1, "");
	add_pair("two", 2, "");
	return (0);
}

int
world_end(void **state)
{

	(void)state;
	IFACE_Close(&iface);
	assert_int_equal(iface.fd, -1);
	assert_int_equal(open_fds(), fds);
	return (0);
}

/* tools/check shows what is printed before a skip as its reason */
void
need_namespaces(void)
{

	if (missing != NULL) {
		print_message("%s\n", missing);
		skip();
	}
}

void
need_qdisc(const char *name, const char *qdisc)
{
	char command[128];

	(void)snprintf(command, sizeof command,
	    "tc qdisc add dev %s root %s 2>/dev/null", name, qdisc);
	if (system(command)) {
		print_message("not applicable: the kernel has no qdisc %s\n",
		    qdisc);
		skip();
	}
}

/*--------------------------------------------------------------------
 * Interfaces
 */

/* Give text to a shell command's standard input; fail if it fails */
static void __attribute__((format(printf, 2, 0)))
feed(const char *command, const char *format, va_list ap)
{
	FILE *f = popen(command, "w");
	char text[512];

	(void)vsnprintf(text, sizeof text, format, ap);
	if (f == NULL || fputs(text, f) < 0 || pclose(f) != 0)
		fail_msg("%s: %s", command, text);
}

void
ip(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	feed("ip -batch -", format, ap);
	va_end(ap);
}

void
tc(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	feed("tc -batch -", format, ap);
	va_end(ap);
}

void
add_pair(const char *name, unsigned net, const char *options)
{

	ip("link add name %s %s type veth peer name %s.peer\n"
	    "link set %s addrgenmode none up\n"
	    "link set %s.peer addrgenmode none up\n"
	    "addr add 10.0.%u.1/24 dev %s\n"
	    "neigh add 10.0.%u.2 lladdr 02:00:00:00:00:02 dev %s\n",
	    name, options, name, name, name, net, name, net, name);
}

void
send_frames(unsigned net, int n)
{
	static const char payload[PAYLOAD];
	struct sockaddr_storage ss;
	char text[16];
	int s;

	(void)snprintf(text, sizeof text, "10.0.%u.2", net);
	ss = address_of(text);
	((struct sockaddr_in *)(void *)&ss)->sin_port = htons(9);
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(s >= 0);
	for (; n > 0; n--)
		assert_int_equal(sendto(s, payload, sizeof payload, 0,
		    (void *)&ss, sizeof(struct sockaddr_in)), PAYLOAD);
	assert_int_equal(close(s), 0);
}

/*--------------------------------------------------------------------
 * What IFACE_Read() says
 */

struct sockaddr_storage
address_of(const char *text)
{
	struct sockaddr_storage ss;
	struct sockaddr_in *a4 = (void *)&ss;
	struct sockaddr_in6 *a6 = (void *)&ss;

	memset(&ss, 0, sizeof ss);
	ss.ss_family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(ss.ss_family, text,
	    ss.ss_family == AF_INET ? (void *)&a4->sin_addr :
	    (void *)&a6->sin6_addr), 1);
	return (ss);
}

static int
look(const char *text, struct iface_stat *st)
{
	struct sockaddr_storage ss = address_of(text);

	memset(st, 0xff, sizeof *st);
	return (IFACE_Read(&iface, &ss, st));
}

struct iface_stat
seen(const char *text)
{
	struct iface_stat st;

	assert_int_equal(look(text, &st), 0);
	return (st);
}

void
not_seen(const char *text)
{
	struct iface_stat st;

	assert_int_equal(look(text, &st), -1);
}
