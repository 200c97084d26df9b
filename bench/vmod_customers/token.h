/*-
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The string `name` among the claims of a JSON web token that `secret` has
 * signed and that has not expired at `now` (seconds since 1970).  It goes to
 * `value`, of `size` bytes; the length, or -1.
 */
int token_claim(const char *token, const char *secret, double now,
    const char *name, char *value, size_t size);
