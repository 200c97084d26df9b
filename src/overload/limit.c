/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * No control: only the caller's limit of the queue acts.
 */

#include <stddef.h>

#include "controller.h"

static int
limit_admit(struct ovl *o, const struct ovl_queue *q)
{

	(void)o;
	(void)q;
	return (1);
}

const struct ovl_controller ovl_limit = {
	.name = "limit",
	.summary = "no control but the limit of the queue",
	.admit = limit_admit,
};
