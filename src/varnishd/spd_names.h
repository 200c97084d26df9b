/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What both the manager and the child need: the values of the parameters
 * `sandpaper` and `sandpaper_new_hosts`, and which security patches the source
 * of Varnish has.
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

/* "none", "unknown", or "Debian VERSION".  tools/build-varnish sets it. */
#define SPD_SECURITY_PATCHES \
    (SANDPAPER_PATCHES[0] != '\0' ? SANDPAPER_PATCHES : "unknown")
