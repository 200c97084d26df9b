/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A network interface: how many bytes it has sent, and how many are queued.
 */

#ifndef IFACE_H_INCLUDED
#define IFACE_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

struct sockaddr_storage;

int spd_iface_read(const struct sockaddr_storage *, uint64_t *tx_bytes,
    uint64_t *backlog, int *paced, uint64_t *speed, char *name, size_t);

#endif
