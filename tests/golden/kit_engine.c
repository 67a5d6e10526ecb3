/* A model of the kit on the CPU; see kit_engine.h. */
#include "tests/golden/kit_engine.h"

#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/golden/kit_routers.h"

#define KIT_CTX   512
#define KIT_BATCH 512

int kit_engine_open(struct kit_engine *e, const char *path, const char *kv, struct err *err)
{
    struct backend_options options = {.threads = 2, .cpu = "auto"};
    struct model_options mo = {
        .n_ctx = KIT_CTX, .n_batch = KIT_BATCH, .n_out = KIT_BATCH, .kv = format_of_name(kv)};
    struct device dev;
    struct model_info info;
    int r;

    *e = (struct kit_engine){.ops = backend_by_name("cpu"), .ledger = ledger_create()};
    if (e->ops)
        e->ops = kit_routers_watch(e->ops);
    if (!e->ops || e->ops->probe(&dev, 1, err) < 1)
        return err_set(err, ERR_INTERNAL, "there is no CPU backend");
    r = model_open(path, &e->m, err);
    if (r >= 0)
        r = e->ops->open(&dev, &options, &e->be, err);
    if (r >= 0)
        r = model_load(e->m, &mo, e->ledger, e->ops, e->be, NULL, NULL, NULL, err);
    if (r < 0)
        return r;
    model_info(e->m, &info);
    e->n_vocab = info.n_vocab;
    return 0;
}

void kit_engine_close(struct kit_engine *e)
{
    model_close(e->m);
    if (e->be)
        e->ops->close(e->be);
    ledger_destroy(e->ledger);
}

int kit_engine_all(struct kit_engine *e, const int32_t *ids, size_t n, size_t step, float *out,
                   struct err *err)
{
    int32_t rows[KIT_BATCH];

    for (size_t i = 0; i < KIT_BATCH; i++)
        rows[i] = (int32_t)i;
    sequence_truncate(model_sequence(e->m), 0);
    for (size_t at = 0; at < n; at += step) {
        size_t k = MIN(step, n - at);
        const float *logits;
        int r = model_eval(e->m, ids + at, k, rows, k, NULL, &logits, err);

        if (r < 0)
            return r;
        memcpy(out + at * e->n_vocab, logits, k * e->n_vocab * sizeof *out);
    }
    return 0;
}

/* The lowest id among equals. */
static int32_t best_of(const float *logits, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

int kit_engine_greedy(struct kit_engine *e, const int32_t *ids, size_t n, size_t n_out,
                      bool stop_at_eog, int32_t *out, struct err *err)
{
    const struct tokenizer *t = model_tokenizer(e->m);
    size_t k = 0;

    sequence_truncate(model_sequence(e->m), 0);
    while (k < n_out) {
        int32_t row = (int32_t)n - 1;
        const float *logits;
        int r = model_eval(e->m, ids, n, &row, 1, NULL, &logits, err);

        if (r < 0)
            return r;
        out[k] = best_of(logits, e->n_vocab);
        ids = &out[k++];
        n = 1;
        if (stop_at_eog && t && tokenizer_is_eog(t, *ids))
            break;
    }
    return (int)k;
}

int32_t *kit_ids(const json_t *array, size_t *ret_n)
{
    size_t n = json_array_size(array);
    int32_t *ids;

    if (!json_is_array(array))
        return NULL;
    ids = xreallocarray(NULL, MAX(n, 1), sizeof *ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    *ret_n = n;
    return ids;
}
