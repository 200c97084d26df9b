/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What iface.h says of the interfaces of a real kernel.
 */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cmocka.h>

#include "iface_world.h"

/*--------------------------------------------------------------------
 * Which interface it is
 */

static void
test_ipv4(void **state)
{

	(void)state;
	need_namespaces();
	assert_string_equal(iface.name, "");
	(void)seen("10.0.2.1");
	assert_string_equal(iface.name, "two");
	(void)seen("10.0.1.1");
	assert_string_equal(iface.name, "one");
	(void)seen("127.0.0.1");
	assert_string_equal(iface.name, "lo");
}

static void
test_ipv6(void **state)
{

	(void)state;
	need_namespaces();
	ip("addr add fd00::1:1/64 dev one nodad\n"
	    "addr add fd00::2:1/64 dev two nodad\n");
	(void)seen("fd00::2:1");
	assert_string_equal(iface.name, "two");
	(void)seen("fd00::1:1");
	assert_string_equal(iface.name, "one");
	(void)seen("::1");
	assert_string_equal(iface.name, "lo");
}

/* Of a neighbour, or of nobody */
static void
test_foreign_address(void **state)
{

	(void)state;
	need_namespaces();
	not_seen("10.0.1.2");
	not_seen("::1:1");
	not_seen("0.0.0.0");
	assert_string_equal(iface.name, "");
	(void)seen("10.0.1.1");
	not_seen("10.0.1.2");
	not_seen("10.0.1.2");
	(void)seen("10.0.1.1");
}

/* A name may have this many characters */
static void
test_long_name(void **state)
{

	(void)state;
	need_namespaces();
	ip("link add name fifteen-letters type bridge\n"
	    "addr add 10.0.3.1/24 dev fifteen-letters\n");
	(void)seen("10.0.3.1");
	assert_string_equal(iface.name, "fifteen-letters");
}

static void
test_gone(void **state)
{

	(void)state;
	need_namespaces();
	(void)seen("10.0.1.1");
	ip("link del one\n");
	not_seen("10.0.1.1");
	not_seen("10.0.1.1");
	(void)seen("10.0.2.1");
	assert_string_equal(iface.name, "two");
}

/* Another one has its name and its address */
static void
test_replaced(void **state)
{
	unsigned index;

	(void)state;
	need_namespaces();
	send_frames(1, 1);
	assert_int_equal(seen("10.0.1.1").tx_bytes, FRAME);
	index = iface.index;
	ip("link del one\n");
	add_pair("one", 1, "");
	not_seen("10.0.1.1");
	assert_int_equal(seen("10.0.1.1").tx_bytes, 0);
	assert_int_not_equal(iface.index, index);
	assert_string_equal(iface.name, "one");
}

static void
test_address_moves(void **state)
{

	(void)state;
	need_namespaces();
	send_frames(1, 1);
	assert_int_equal(seen("10.0.1.1").tx_bytes, FRAME);
	ip("addr del 10.0.1.1/24 dev one\n"
	    "addr add 10.0.1.1/24 dev two\n");
	assert_int_equal(seen("10.0.1.1").tx_bytes, FRAME);
	assert_string_equal(iface.name, "one");
	ip("link del one\n");
	not_seen("10.0.1.1");
	assert_int_equal(seen("10.0.1.1").tx_bytes, 0);
	assert_string_equal(iface.name, "two");
}

static void
test_speed(void **state)
{

	(void)state;
	need_namespaces();
	(void)seen("10.0.1.1");
	assert_int_equal(iface.speed, 10000000000);
	/* An address with a label is one of the interface */
	ip("addr add 10.0.5.1/24 dev one label one:0\n");
	(void)seen("10.0.5.1");
	assert_string_equal(iface.name, "one");
	assert_int_equal(iface.speed, 10000000000);
	/* Loopback has none */
	(void)seen("127.0.0.1");
	assert_int_equal(iface.speed, 0);
	(void)seen("10.0.2.1");
	assert_int_equal(iface.speed, 10000000000);
	/* A bridge without ports says -1 */
	ip("link add name bridge type bridge\n"
	    "addr add 10.0.3.1/24 dev bridge\n"
	    "link set bridge up\n");
	(void)seen("10.0.3.1");
	assert_int_equal(iface.speed, 0);
}

/* /sys may be that of another network namespace */
static void
test_no_speed(void **state)
{

	(void)state;
	need_namespaces();
	(void)seen("10.0.1.1");
	assert_int_equal(iface.speed, 10000000000);
	assert_int_equal(mount("none", "/sys", "tmpfs", 0, NULL), 0);
	(void)seen("10.0.2.1");
	assert_string_equal(iface.name, "two");
	assert_int_equal(iface.speed, 0);
}

/*--------------------------------------------------------------------
 * What it counts
 */

static void
test_sent(void **state)
{
	struct iface_stat st;
	int i;

	(void)state;
	need_namespaces();
	for (i = 0; i < 5; i++) {
		st = seen("10.0.1.1");
		assert_int_equal(st.tx_bytes, i * FRAME);
		assert_int_equal(st.backlog, 0);
		assert_int_equal(st.paced, 0);
		send_frames(1, 1);
		send_frames(2, 1);
	}
	send_frames(1, 7);
	assert_int_equal(seen("10.0.1.1").tx_bytes, 12 * FRAME);
	assert_int_equal(seen("10.0.2.1").tx_bytes, 5 * FRAME);
}

/* What tbf holds is queued; what it let pass is sent */
static void
test_backlog(void **state)
{
	struct iface_stat st;

	(void)state;
	need_namespaces();
	tc("qdisc add dev one root tbf " SLOW "\n"
	    "qdisc add dev two root tbf " SLOW "\n");
	assert_int_equal(seen("10.0.1.1").backlog, 0);
	send_frames(1, FIRST);
	assert_int_equal(seen("10.0.1.1").backlog, 0);
	send_frames(1, 1);
	send_frames(2, FIRST + 20);
	st = seen("10.0.1.1");
	assert_int_equal(st.backlog, FRAME);
	assert_int_equal(st.tx_bytes, FIRST * FRAME);
	assert_int_equal(st.paced, 0);
	send_frames(1, 9);
	st = seen("10.0.1.1");
	assert_int_equal(st.backlog, 10 * FRAME);
	assert_int_equal(st.tx_bytes, FIRST * FRAME);
	assert_int_equal(seen("10.0.2.1").backlog, 20 * FRAME);
	/* What is dropped is not queued */
	tc("qdisc del dev one root\n");
	assert_int_equal(seen("10.0.1.1").backlog, 0);
}

/* What a child holds counts once */
static void
test_child(void **state)
{

	(void)state;
	need_namespaces();
	tc("qdisc add dev one root handle 1: tbf " SLOW "\n"
	    "qdisc add dev one parent 1:1 handle 2: tbf " SLOW "\n"
	    "qdisc add dev one parent 2:1 handle 3: pfifo limit 100\n");
	send_frames(1, FIRST + 10);
	assert_int_equal(seen("10.0.1.1").backlog, 10 * FRAME);
}

static void
test_class(void **state)
{
	struct iface_stat st;

	(void)state;
	need_namespaces();
	need_qdisc("one", "handle 1: htb default 1");
	tc("class add dev one parent 1: classid 1:1 htb rate 1mbit\n"
	    "qdisc add dev one parent 1:1 handle 2: tbf " SLOW "\n");
	send_frames(1, FIRST + 10);
	st = seen("10.0.1.1");
	assert_int_equal(st.backlog, 10 * FRAME);
	assert_int_equal(st.tx_bytes, FIRST * FRAME);
}

/* The queues of an interface */
static void
test_queues(void **state)
{
	struct iface_stat st;
	unsigned q;

	(void)state;
	need_namespaces();
	add_pair("four", 4, "numtxqueues 4");
	tc("qdisc add dev four root handle 1: mq\n");
	for (q = 1; q <= 4; q++)
		tc("qdisc add dev four parent 1:%u tbf " SLOW "\n", q);
	/* Each call is a flow, so most queues hold some */
	for (q = 0; q < 32; q++)
		send_frames(4, FIRST);
	st = seen("10.0.4.1");
	assert_int_equal(st.backlog + st.tx_bytes, 32 * FIRST * FRAME);
	assert_in_range(st.tx_bytes, 2 * FIRST * FRAME, 4 * FIRST * FRAME);
}

static void
test_fq(void **state)
{

	(void)state;
	need_namespaces();
	need_qdisc("one", "fq");
	assert_int_equal(seen("10.0.1.1").paced, 1);
	assert_int_equal(seen("10.0.2.1").paced, 0);
}

/* Its name only begins like that */
static void
test_fq_codel(void **state)
{

	(void)state;
	need_namespaces();
	need_qdisc("one", "fq_codel");
	assert_int_equal(seen("10.0.1.1").paced, 0);
}

/*--------------------------------------------------------------------*/

static void
test_socket(void **state)
{
	struct timeval tv;
	socklen_t l = sizeof tv;

	(void)state;
	need_namespaces();
	(void)seen("10.0.1.1");
	assert_int_equal(fcntl(iface.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(getsockopt(iface.fd, SOL_SOCKET, SO_RCVTIMEO, &tv,
	    &l), 0);
	assert_int_equal(tv.tv_sec, 0);
	assert_int_equal(tv.tv_usec, IFACE_PATIENCE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_ipv4),
		WORLD_TEST(test_ipv6),
		WORLD_TEST(test_foreign_address),
		WORLD_TEST(test_long_name),
		WORLD_TEST(test_gone),
		WORLD_TEST(test_replaced),
		WORLD_TEST(test_address_moves),
		WORLD_TEST(test_speed),
		WORLD_TEST(test_no_speed),
		WORLD_TEST(test_sent),
		WORLD_TEST(test_backlog),
		WORLD_TEST(test_child),
		WORLD_TEST(test_class),
		WORLD_TEST(test_queues),
		WORLD_TEST(test_fq),
		WORLD_TEST(test_fq_codel),
		WORLD_TEST(test_socket)
	};

	return (cmocka_run_group_tests(tests, world_enter, NULL));
}
