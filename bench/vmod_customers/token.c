/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * C2: a JSON web token (RFC 7519), signed by HS256 (RFC 7515, 7518).
 *
 * The signature is compared before anything that it covers is looked at, but
 * for `alg`, in a time that does not depend on where it differs.  Of JSON it
 * reads an object's own members; strings with escapes are no match, values
 * that are objects or arrays are skipped, to a limited depth.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "token.h"

#define PART_MAX	1024		/* bytes of a decoded part */
#define MAC_LEN		32		/* bytes of SHA-256 */
#define DEPTH_MAX	16

/*--------------------------------------------------------------------
 * base64url without padding (RFC 7515, section 2)
 */

static int
sextet(char c)
{

	if (c >= 'A' && c <= 'Z')
		return (c - 'A');
	if (c >= 'a' && c <= 'z')
		return (c - 'a' + 26);
	if (c >= '0' && c <= '9')
		return (c - '0' + 52);
	return (c == '-' ? 62 : c == '_' ? 63 : -1);
}

/* Decode `len` characters; the bytes, or -1 */
static int
unbase64(const char *b, size_t len, unsigned char *out, size_t size)
{
	unsigned bits = 0, nbits = 0;
	size_t n = 0, u;
	int s;

	if (len % 4 == 1 || len / 4 * 3 + 2 > size)
		return (-1);
	for (u = 0; u < len; u++) {
		s = sextet(b[u]);
		if (s < 0)
			return (-1);
		bits = bits << 6 | (unsigned)s;
		nbits += 6;
		if (nbits >= 8) {
			nbits -= 8;
			out[n++] = (unsigned char)(bits >> nbits);
			bits &= (1u << nbits) - 1;
		}
	}
	return (bits == 0 ? (int)n : -1);
}

/*--------------------------------------------------------------------
 * JSON, as a NUL-terminated text that a cursor goes along
 */

static void
space(const char **p)
{

	*p += strspn(*p, " \t\r\n");
}

static int
take(const char **p, char c)
{

	space(p);
	if (**p != c)
		return (0);
	(*p)++;
	return (1);
}

/* A string: its content, which ends at *e, as it is written */
static const char *
string(const char **p, const char **e)
{
	const char *b;

	if (!take(p, '"'))
		return (NULL);
	for (b = *p; **p != '"'; (*p)++) {
		if (**p == '\\')
			(*p)++;
		if (**p == '\0')
			return (NULL);
	}
	*e = (*p)++;
	return (b);
}

/* Go past a value; what is in it need not be JSON, but has to end */
static int
skip(const char **p, unsigned depth)
{
	const char *e;
	size_t l;

	space(p);
	if (**p == '"')
		return (string(p, &e) != NULL);
	if (**p != '{' && **p != '[') {
		l = strcspn(*p, ",]} \t\r\n");
		*p += l;
		return (l > 0);
	}
	if (depth == DEPTH_MAX)
		return (0);
	for ((*p)++; !take(p, '}') && !take(p, ']');)
		if (!take(p, ',') && !take(p, ':') && !skip(p, depth + 1))
			return (0);
	return (1);
}

/* The value of an object's member, NULL if there is none */
static const char *
member(const char *p, const char *name)
{
	const char *b, *e;

	if (!take(&p, '{'))
		return (NULL);
	do {
		b = string(&p, &e);
		if (b == NULL || !take(&p, ':'))
			return (NULL);
		space(&p);
		if ((size_t)(e - b) == strlen(name) &&
		    !memcmp(b, name, (size_t)(e - b)))
			return (p);
	} while (skip(&p, 0) && take(&p, ','));
	return (NULL);
}

/* The string member `name` of an object: its length, or -1 */
static int
string_member(const char *json, const char *name, char *value, size_t size)
{
	const char *p = member(json, name), *b, *e;
	size_t l;

	if (p == NULL)
		return (-1);
	b = string(&p, &e);
	if (b == NULL)
		return (-1);
	l = (size_t)(e - b);
	if (l >= size || memchr(b, '\\', l) != NULL)
		return (-1);
	memcpy(value, b, l);
	value[l] = '\0';
	return ((int)l);
}

static int
in_force(const char *json, double now)
{
	const char *p = member(json, "exp");
	char *e;
	double exp;

	if (p == NULL || strchr("0123456789", *p) == NULL || *p == '\0')
		return (0);
	exp = strtod(p, &e);
	return (isfinite(exp) && now < exp);
}

/*--------------------------------------------------------------------
 * The token: header.claims.signature
 */

/* Decode a part of the token to text; 0 if it is none */
static int
part(const char *b, size_t len, char *text, size_t size)
{
	int l = unbase64(b, len, (unsigned char *)text, size - 1);

	if (l < 0 || memchr(text, '\0', (size_t)l) != NULL)
		return (0);
	text[l] = '\0';
	return (1);
}

static int
signed_by(const char *secret, const char *b, size_t len, const char *mac)
{
	unsigned char is[MAC_LEN + 2], should[EVP_MAX_MD_SIZE];
	unsigned l = 0;

	if (unbase64(mac, strlen(mac), is, sizeof is) != MAC_LEN)
		return (0);
	if (HMAC(EVP_sha256(), secret, (int)strlen(secret),
	    (const unsigned char *)b, len, should, &l) == NULL || l != MAC_LEN)
		return (0);
	return (CRYPTO_memcmp(is, should, MAC_LEN) == 0);
}

int
token_claim(const char *token, const char *secret, double now,
    const char *name, char *value, size_t size)
{
	char text[PART_MAX], alg[8];
	const char *claims, *mac;

	claims = strchr(token, '.');
	mac = claims == NULL ? NULL : strchr(claims + 1, '.');
	if (mac == NULL || strchr(mac + 1, '.') != NULL)
		return (-1);
	if (!part(token, (size_t)(claims - token), text, sizeof text) ||
	    string_member(text, "alg", alg, sizeof alg) < 0 ||
	    strcmp(alg, "HS256") != 0)
		return (-1);
	if (*secret == '\0' ||
	    !signed_by(secret, token, (size_t)(mac - token), mac + 1))
		return (-1);
	if (!part(claims + 1, (size_t)(mac - claims - 1), text, sizeof text) ||
	    !in_force(text, now))
		return (-1);
	return (string_member(text, name, value, size));
}
