/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of tenants_table.h, which libcuckoo can only make in C++.
 */

extern "C" {
#include "tenants_table.h"
}

#include <libcuckoo-c/cuckoo_table_template.cc>
