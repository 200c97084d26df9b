/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Names that the manager and the child both need: the values of those
 * parameters that have names, and the security patches of Varnish's source.
 * There is no state here.
 */

#define SPD_MODE_NAMES	"off", "observe", "on"
enum spd_mode {
	SPD_OFF,
	SPD_OBSERVE,
	SPD_ON
};

#define SPD_SWITCH_NAMES "off", "on"	/* 0, 1 */

#define SPD_NEW_NAMES	"group", "tenant"
enum spd_new {
	SPD_NEW_GROUP,
	SPD_NEW_TENANT
};

#define SPD_STATUS_NAMES "503", "429"	/* of a refusal */

/* "none", "unknown", or "Debian VERSION".  tools/build-varnish sets
 * SANDPAPER_PATCHES, which is empty if unknown. */
#define SPD_SECURITY_PATCHES \
    (SANDPAPER_PATCHES[0] != '\0' ? SANDPAPER_PATCHES : "unknown")
