/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * All modes.  To add one, write its struct in a file of modes, declare it in
 * loadgen.h, and name it here.
 */

#include "loadgen.h"

const struct mode * const modes[] = {
	&mode_closed, &mode_paced, &mode_open, &mode_browse,
	&mode_stall, &mode_slow, &mode_reset, &mode_drip, &mode_post,
	&mode_connect,
	&mode_pipe, &mode_h2, &mode_h2_reset, &mode_h2_ping,
	NULL
};
