/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the manager process calls of ours.  mgt_param.h includes this file.
 */

/* Check and set a parameter, or print it. */
tweak_t tweak_sandpaper_counter;
tweak_t tweak_sandpaper_mode;
tweak_t tweak_sandpaper_new_hosts;
tweak_t tweak_sandpaper_overload;
tweak_t tweak_sandpaper_policy;
tweak_t tweak_sandpaper_rate;
tweak_t tweak_sandpaper_status;
tweak_t tweak_sandpaper_switch;

/* All options are read: say what is missing. */
void mgt_sandpaper_start(void);
/* varnishd -V: print our version, and which holes of Varnish are closed. */
void mgt_sandpaper_version(void);
