/* Tiny models as loaded engines, for the tests of this room. */
#pragma once

#include "daemon/model/model.h"
#include "tests/support/cpu_backend.h"
#include "tests/support/tiny_model.h"

struct tiny_engine {
    struct cpu_backend cpu;
    struct ledger *ledger;
    struct model *m;
};

/* The error of opening w (0 and *ret_model when it opens); clears w. */
int tiny_open(struct gguf_writer *w, struct model **ret_model, struct err *err);
/* A model that must open. */
struct model *tiny_must_open(const struct tiny_model *o);

struct tiny_engine tiny_load(const struct tiny_model *o, const struct model_options *mo,
                             unsigned threads, const char *tier);
void tiny_close(struct tiny_engine *e);

/* Logits of all n positions, [n][n_vocab], evaluated in batches of step. */
float *tiny_logits(struct tiny_engine *e, const int32_t *ids, size_t n, size_t step);
/* n ids that differ. */
void tiny_ids(int32_t *ids, size_t n);
