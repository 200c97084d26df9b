/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The values of the parameters `sandpaper` and `sandpaper_new_hosts`, for
 * manager and child.
 */

#define SPD_MODE_NAMES	"off", "observe", "on"
enum spd_mode {
	SPD_OFF,
	SPD_OBSERVE,
	SPD_ON
};

#define SPD_NEW_NAMES	"group", "tenant"
enum spd_new {
	SPD_NEW_GROUP,
	SPD_NEW_TENANT
};
