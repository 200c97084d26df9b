/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * libcuckoo's C interface: a map from the hash of a name to the tenant's
 * record.
 */

#ifndef TENANTS_MAP_H_INCLUDED
#define TENANTS_MAP_H_INCLUDED

#include <stdint.h>

struct ten_record;

#define CUCKOO_TABLE_NAME	ten_map
#define CUCKOO_KEY_TYPE		uint64_t
#define CUCKOO_MAPPED_TYPE	struct ten_record *

#include <libcuckoo-c/cuckoo_table_template.h>

#endif
