/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The values of the parameter `sandpaper`, for manager and child.
 */

#define SPD_MODE_NAMES	"off", "observe", "on"
enum spd_mode {
	SPD_OFF,
	SPD_OBSERVE,
	SPD_ON
};
