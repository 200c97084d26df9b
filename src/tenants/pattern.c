/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * See pattern.h.
 */

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "pattern.h"

const char *
PATTERN_Check(const char *p)
{
	const char *host = p;

	if (*p == '[') {
		while (isxdigit((unsigned char)*++p) || *p == ':' || *p == '.')
			continue;
		return (*p == ']' && p[1] == '\0' ? NULL :
		    "the address is not valid: use an IPv6 address in "
		    "brackets, such as [2001:db8::1]");
	}
	for (; *p != '\0'; p++) {
		if (*p == '*')
			return ("* is not allowed here: use it once, as the "
			    "first label, such as \"*.example.com\"");
		if (*p == ':' && p[1] == '/')
			return ("the pattern is a URL: use only its host name");
		if (*p == ':' && strchr(p + 1, ':') != NULL)
			return ("an IPv6 address needs brackets, such as "
			    "[2001:db8::1]");
		if (*p == ':')
			return ("the pattern has a port: remove the port");
		if (*p == '.' && (p == host || p[-1] == '.'))
			return ("a label is empty: use one dot between two "
			    "labels, and none at the start");
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			return ("the pattern has a character that is not "
			    "allowed: use letters, digits, \"-\", \"_\" and "
			    "\".\"");
	}
	if (p == host)
		return ("the pattern is empty: use a host name");
	return (p[-1] == '.' ?
	    "the pattern ends in a dot: remove the dot" : NULL);
}
