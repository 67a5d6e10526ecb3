/* Embedding models: the rows of a text pooled to one.  See model.h. */

#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/model/model_priv.h"

const char *pooling_name(enum pooling p)
{
    static const char *const names[] = {[POOLING_MEAN] = "mean",
                                        [POOLING_CLS] = "cls",
                                        [POOLING_LAST] = "last",
                                        [POOLING_RANK] = "rank"};

    return (unsigned)p < ARRAY_LEN(names) ? names[p] : NULL;
}

static int check(const struct model *m, size_t n, struct err *err)
{
    if (!m->loaded)
        return err_set(err, ERR_INTERNAL, "model '%s' is used before it is loaded", m->name);
    if (m->hp.pooling == POOLING_NONE)
        return err_set(err, ERR_UNSUPPORTED,
                       "'%s' writes text and gives no embeddings: its file has no pooling type",
                       m->name);
    if (n == 0)
        return err_set(err, ERR_INVALID, "a text without tokens has no embedding");
    if (m->arch->encoder && n > m->n_batch)
        return err_set(err, ERR_TOO_LARGE,
                       "a text of %zu tokens is more than the %zu that '%s' can take; shorten it",
                       n, m->n_batch, m->name);
    return 0;
}

/* Rows of a chunk that the pooling needs: ascending, relative to it. */
static size_t wanted(const struct model *m, size_t at, size_t rows, size_t n, int32_t *ret)
{
    switch (m->hp.pooling) {
    case POOLING_MEAN:
        for (size_t i = 0; i < rows; i++)
            ret[i] = (int32_t)i;
        return rows;
    case POOLING_CLS: ret[0] = 0; return at == 0;
    default: ret[0] = (int32_t)rows - 1; return at + rows == n;
    }
}

/* In the order of the rows, so that chunks do not change the bits. */
static void add_rows(float *sum, const float *rows, size_t n, size_t width)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < width; i++)
            sum[i] += rows[r * width + i];
}

int model_embed(struct model *m, const int32_t *ids, size_t n, const _Atomic bool *cancel,
                float *ret, struct err *err)
{
    size_t width = m->hp.n_embd, n_pooled = 0;
    int32_t *rows_out = NULL;
    int r = check(m, n, err);

    if (r < 0)
        return r;
    rows_out = XNEW_ARRAY(int32_t, m->n_batch);
    memset(ret, 0, width * sizeof *ret);
    sequence_truncate(m->sequence, 0);
    for (size_t at = 0; at < n && r >= 0;) {
        size_t rows = MIN(m->n_batch, n - at);
        size_t n_out = wanted(m, at, rows, n, rows_out);
        const float *got = NULL;

        r = model_eval(m, ids + at, rows, rows_out, n_out, cancel, &got, err);
        if (r >= 0)
            add_rows(ret, got, n_out, width);
        n_pooled += n_out;
        at += rows;
    }
    /* What was computed both ways cannot be gone on from. */
    sequence_truncate(m->sequence, 0);
    for (size_t i = 0; r >= 0 && n_pooled > 1 && i < width; i++)
        ret[i] /= (float)n_pooled;
    free(rows_out);
    return r;
}
