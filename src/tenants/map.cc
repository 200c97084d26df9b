/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of map.h, which libcuckoo can only make in C++.
 */

extern "C" {
#include "map.h"
}

#include <libcuckoo-c/cuckoo_table_template.cc>
