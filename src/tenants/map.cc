/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of map.h.  libcuckoo is C++, so this one file is, too.
 */

extern "C" {
#include "map.h"
}

#include <libcuckoo-c/cuckoo_table_template.cc>
