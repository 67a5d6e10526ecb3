/*
 * kit_engine - a model of the kit, loaded on the CPU, for the runners that
 * compare logits.
 */
#pragma once

#include <jansson.h>

#include "daemon/model/model.h"

struct kit_engine {
    const struct backend_ops *ops;
    struct backend *be;
    struct ledger *ledger;
    struct model *m;
    size_t n_vocab;
};

/* Loads path with the kit's context of 512; kv by name ("f32", "f16"). */
int kit_engine_open(struct kit_engine *e, const char *path, const char *kv, struct err *err);
void kit_engine_close(struct kit_engine *e); /* also a half-open one */

/*
 * Evaluates ids from position 0 in batches of at most step, and writes the
 * logits of all positions: out[n][n_vocab].
 */
int kit_engine_all(struct kit_engine *e, const int32_t *ids, size_t n, size_t step, float *out,
                   struct err *err);

/*
 * Greedy continuation of ids: out[n_out], stopping early after an id that ends
 * a generation when stop_at_eog.  Returns how many, or a negative kind.
 */
int kit_engine_greedy(struct kit_engine *e, const int32_t *ids, size_t n, size_t n_out,
                      bool stop_at_eog, int32_t *out, struct err *err);

/* An array of integers; a new buffer (NULL when it is none). */
int32_t *kit_ids(const json_t *array, size_t *ret_n);
