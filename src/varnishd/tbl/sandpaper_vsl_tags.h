/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Our tag of the log.  tbl/vsl_tags.h includes this file.
 */

SLTM(Sandpaper, 0, "Cost and waiting time of a request",
	"One record for each client request that Sandpaper released.\n\n"
	"The format is::\n\n"
	"\t%s %f %f %f %f %d %s\n"
	"\t|  |  |  |  |  |  |\n"
	"\t|  |  |  |  |  |  +- CPU time is m(easured) or e(stimated)\n"
	"\t|  |  |  |  |  +---- Bytes sent to the client\n"
	"\t|  |  |  |  +------- Estimate that was charged at release (seconds)\n"
	"\t|  |  |  +---------- Time on the link to the clients (seconds)\n"
	"\t|  |  +------------- CPU time (seconds)\n"
	"\t|  +---------------- Time that the request waited (seconds)\n"
	"\t+------------------- Tenant\n"
	"\n"
	"Example: ``shop 0.000002 0.000312 0.000003 0.000176 3230 m``\n"
	"\n"
)
