/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A pattern of Hosts: a host name, an IPv6 address in brackets, or "*." and a
 * host name.
 */

#ifndef TENANTS_PATTERN_H_INCLUDED
#define TENANTS_PATTERN_H_INCLUDED

/* Check a pattern without its "*.".  Returns NULL, or an error text: what is
 * wrong, and what is allowed. */
const char *PATTERN_Check(const char *);

#endif
