/*
 * kit - runners over the conformance kit (its README fixes formats and
 * tolerances), and what they share.
 *
 * A runner takes the kit's folder and an extended regular expression over file names
 * ("" or NULL for all), prints a line per file, counts it, and returns 0; a negative kind only
 * when the section itself cannot be read.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kit_result {
    int passed, failed, skipped;
};

enum { KIT_FAIL = 0, KIT_PASS = 1, KIT_SKIP = -1 };

/* Prints one line of a section and counts it. */
void kit_line(struct kit_result *r, const char *section, const char *file, int status,
              const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Does the name fit match?  Ends the program when match is no regular expression. */
bool kit_wanted(const char *file, const char *match);

/* The names in dir/section that end in suffix and fit match, sorted; n of them, or -1. */
int kit_list(const char *dir, const char *section, const char *suffix, const char *match,
             char ***ret_names);
void kit_list_free(char **names, int n);

/* dir/section/name as JSON; NULL (and a line on stderr) when it is not. */
json_t *kit_json(const char *dir, const char *section, const char *name);

/* Hex digits to bytes; a new buffer, or NULL when text is not hex. */
uint8_t *kit_hex(const char *text, size_t *ret_n);

int kit_blocks(const char *kit_dir, const char *match, struct kit_result *r);
int kit_sampler(const char *kit_dir, const char *match, struct kit_result *r);
int kit_chat(const char *kit_dir, const char *match, struct kit_result *r);
/* The answers that templates write, taken apart again. */
int kit_dialects(const char *kit_dir, const char *match, struct kit_result *r);
int kit_tok(const char *kit_dir, const char *match, struct kit_result *r);
int kit_malformed(const char *kit_dir, const char *match, struct kit_result *r);
/* Whole models: logits, greedy continuations, batches against single tokens. */
int kit_models(const char *kit_dir, const char *match, struct kit_result *r);
int kit_quant(const char *kit_dir, const char *match, struct kit_result *r);
/* Text in, text out, and conversations by the model's own template. */
int kit_text(const char *kit_dir, const char *match, struct kit_result *r);
