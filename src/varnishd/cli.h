/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The functions that the files of the CLI share.
 */

struct cli;

/* cli_args.c */
int spd_cli_number(struct cli *, const char *arg, unsigned long lo,
    unsigned long hi, unsigned long *);
int spd_cli_no_more(struct cli *, const char *arg);
void spd_cli_unknown(struct cli *, const char *name);
const char *spd_cli_mode(unsigned);

/* cli_json.c */
struct spd_json {
	struct cli		*cli;
	size_t			n;		/* bytes of text */
	char			text[8192];
};
void spd_json_begin(struct spd_json *, struct cli *);
void spd_json_flush(struct spd_json *);
void spd_json_text(struct spd_json *, const char *);
void spd_json_string(struct spd_json *, const char *);
void spd_json_decimal(struct spd_json *, int64_t, unsigned places);
void spd_json_number(struct spd_json *, uint64_t);
void spd_json_real(struct spd_json *, double);
void spd_cli_string(struct cli *, const char *);

/* cli_stages.c */
void spd_cli_stages_text(struct cli *);
void spd_cli_stages_json(struct cli *);

/* cli_row.c */
int spd_row_key(const char *key, size_t len);	/* -1: there is no such key */
const char *spd_row_name(unsigned key);		/* NULL: after the last one */
uint64_t spd_row_mask(int key);
double spd_row_value(const struct spd_fields *, int key, unsigned last);
unsigned spd_row_parts(uint64_t mask, int sort);	/* for spd_fields() */
void spd_row_json(struct spd_json *, const struct spd_fields *, uint64_t mask,
    int table);
void spd_row_keys_json(struct spd_json *, uint64_t mask);
void spd_row_text(struct cli *, const struct spd_fields *);
void spd_sums_json(struct spd_json *, const struct spd_sums *);

/* cli_why.c */
void spd_why_text(struct cli *, const struct spd_fields *);

/* Add the commands of a file */
void spd_cli_list_init(void);
void spd_cli_show_init(void);
void spd_cli_map_init(void);
void spd_cli_drain_init(void);
void spd_cli_cache_init(void);
void spd_cli_debug_init(void);
