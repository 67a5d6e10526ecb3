/* A model in a budget; see stream_rig.h. */
#include "tests/stream/stream_rig.h"

#include "common/alloc.h"
#include "common/hash.h"

int32_t rig_id_at(const struct loaded *r, size_t i)
{
    return (int32_t)((i * 37 + 11) % r->n_vocab);
}

uint64_t rig_digest(struct loaded *r, size_t n, size_t batch, uint64_t h)
{
    int32_t ids[64], rows[64];
    size_t at = sequence_length(model_sequence(r->m)), end = at + n;

    while (at < end) {
        size_t k = MIN(MIN(batch, end - at), model_n_batch(r->m));
        const float *logits;

        for (size_t i = 0; i < k; i++) {
            ids[i] = rig_id_at(r, at + i);
            rows[i] = (int32_t)i;
        }
        logits = must_eval(r->m, ids, k, rows, k);
        for (size_t i = 0; i < k; i++)
            h = hash_bytes_seed(logits + i * r->n_vocab, r->n_vocab * sizeof *logits, h);
        at += k;
    }
    return h;
}

uint64_t rig_digest_live(struct loaded *r, size_t all, size_t n, struct ways *ways)
{
    size_t floor = model_floor_bytes(r->m);
    const size_t steps[] = {all, (floor + all) / 2, floor, (floor + 2 * all) / 3, all, floor, all};
    struct err err = {0};
    uint64_t h = 0;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        size_t from = n * i / ARRAY_LEN(steps), to = n * (i + 1) / ARRAY_LEN(steps);

        if (model_resize(r->m, steps[i], &err) < 0)
            die("resize: %s", err.text);
        if (model_held_bytes(r->m) > steps[i] ||
            ledger_used(r->ledger, POOL_RAM) != model_held_bytes(r->m))
            ways->failed++;
        h = rig_digest(r, to - from, i % 2 ? 1 : 7, h);
    }
    return h;
}
