/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What every file uses: settings, counters, and the libraries' objects.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

struct spd_settings spd_set = { .cores = 1 };
struct VSC_sandpaper *spd_vsc;
struct rel *spd_rel;
struct ten_table *spd_tenants;
