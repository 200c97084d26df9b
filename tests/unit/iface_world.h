/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Interfaces of a real kernel, for tests: each test has a network namespace of
 * its own, with the interfaces `one`, 10.0.1.1, and `two`, 10.0.2.1.
 *
 * The neighbour in each network, 10.0.*.2, exists for the sender only.  The
 * interfaces send nothing by themselves, so every byte is known.
 */

#ifndef IFACE_WORLD_H_INCLUDED
#define IFACE_WORLD_H_INCLUDED

#include "perfctr/iface.h"

#define PAYLOAD		1000		/* bytes of a datagram */
#define FRAME		(PAYLOAD + 8 + 20 + 14)	/* UDP, IPv4, Ethernet */

/*
 * Options of a qdisc tbf that sends the FIRST frames at once.  The next one has
 * to wait a minute for its turn, so what the qdisc holds does not depend on
 * time.  A lower rate is not possible.
 */
#define SLOW		"rate 100bit burst 2200 limit 100000"
#define FIRST		2

extern struct iface iface;	/* of the test */

/* Set-up of the program: enter namespaces, as root or as root of a new user
 * namespace */
int world_enter(void **state);
/* Set-up of a test.  Its tear-down: close iface, and see that nothing is left
 * open. */
int world_begin(void **state);
int world_end(void **state);
#define WORLD_TEST(f)	cmocka_unit_test_setup_teardown(f, world_begin, \
			    world_end)

/* Skip the test if there are no namespaces */
void need_namespaces(void);
/* Add a root qdisc to an interface.  Skip the test if the kernel has no such
 * qdisc. */
void need_qdisc(const char *name, const char *qdisc);

/* Give lines to `ip -batch` or `tc -batch`; fail if one fails */
void ip(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tc(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Make an interface with the address 10.0.NET.1, its peer and its neighbour.
 * The options are those of `ip link add`. */
void add_pair(const char *name, unsigned net, const char *options);
/* Send n frames to the neighbour in this network */
void send_frames(unsigned net, int n);

/* Read the interface with this address; fail if there is none */
struct iface_stat seen(const char *address);
/* Fail if that does not fail */
void not_seen(const char *address);
/* Return an address without a port */
struct sockaddr_storage address_of(const char *text);

#endif
