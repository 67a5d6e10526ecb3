/* Beds of the ops that take rows apart, put them together, and treat each head by itself. */
#include <stdio.h>

#include "backends/formats/act.h"
#include "tests/kernels/ops/bed.h"

#define CHECK(b) ((*ret_run)++, bed_check(&(b)))

/* -- SLICE ----------------------------------------------------------------------------- */

static double want_slice(const struct bed *b, int o, size_t r, size_t i)
{
    size_t n = b->op.p.slice.n;

    (void)o;
    return bed_src(b, 0, r, i / n * b->op.p.slice.group + b->op.p.slice.from + i % n);
}

int cases_SLICE(int *ret_run)
{
    static const size_t shapes[][4] = {
        {0, 512, 576, 1}, {512, 64, 576, 1}, {128, 64, 192, 5}, {1, 1, 3, 7}, {0, 33, 33, 2}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const size_t *s = shapes[i];
        struct bed b = {.op = {.kind = OP_SLICE}, .nmse = 0, .want = want_slice, .row_src = 1};

        snprintf(b.what, sizeof(b.what), "%zu from %zu of %zu groups of %zu", s[1], s[0], s[3],
                 s[2]);
        b.op.p.slice.from = s[0];
        b.op.p.slice.n = s[1];
        b.op.p.slice.group = s[2];
        b.op.src[0] = bed_f32(&b, s[2] * s[3], 10);
        bed_out(&b, 0, s[1] * s[3], 10);
        b.run.rows = 10;
        bad += CHECK(b);
    }
    return bad;
}

/* -- JOIN ------------------------------------------------------------------------------ */

static double want_join(const struct bed *b, int o, size_t r, size_t i)
{
    size_t na = b->op.p.join.n[0], nb = b->op.p.join.n[1];
    size_t group = i / (na + nb), at = i % (na + nb);

    (void)o;
    if (at < na)
        return bed_src(b, 0, r, group * na + at);
    return bed_src(b, 1, r, (b->op.src[1].n[0] == nb ? 0 : group * nb) + at - na);
}

int cases_JOIN(int *ret_run)
{
    static const size_t shapes[][4] = {
        {512, 64, 4, 4}, {512, 64, 1, 1}, {128, 64, 5, 1}, {1, 3, 7, 7}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const size_t *s = shapes[i];
        struct bed b = {.op = {.kind = OP_JOIN}, .nmse = 0, .want = want_join, .row_src = 3};

        snprintf(b.what, sizeof(b.what), "%zu of %zu with %zu of %zu", s[2], s[0], s[3], s[1]);
        b.op.p.join.n[0] = s[0];
        b.op.p.join.n[1] = s[1];
        b.op.src[0] = bed_f32(&b, s[0] * s[2], 10);
        b.op.src[1] = bed_f32(&b, s[1] * s[3], 10);
        bed_out(&b, 0, (s[0] + s[1]) * s[2], 10);
        b.run.rows = 10;
        bad += CHECK(b);
    }
    return bad;
}

/* -- HEADS ------------------------------------------------------------------------------ */

static double want_heads(const struct bed *b, int o, size_t r, size_t i)
{
    const struct tensor *w = &b->op.src[1];
    size_t head = i / w->n[1];
    double sum = 0;

    (void)o;
    for (size_t k = 0; k < w->n[0]; k++)
        sum += bed_weight(w, head, i % w->n[1], k) *
               bed_activation(b->op.p.heads.act, &b->op.src[0], r, head * w->n[0] + k);
    return sum;
}

int cases_HEADS(int *ret_run)
{
    static const char *const formats[] = {"f32", "f16", "q8_0", "q4_0", "q4_k", "mxfp4", "iq2_xxs"};
    static const size_t heads[] = {1, 2, 7}, rows[] = {1, 5, 14};
    int bad = 0;

    for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
        for (size_t i = 0; i < 3; i++) {
            const struct format *fmt = format_of_name(formats[f]);
            struct bed b = {
                .op = {.kind = OP_HEADS}, .nmse = 1e-10, .want = want_heads, .row_src = 1};
            size_t n = fmt->block_elems > 32 ? 256 : 32;

            snprintf(b.what, sizeof(b.what), "%zu of %s, %zu rows", heads[i], fmt->name, rows[i]);
            b.op.p.heads.act = fmt->act;
            b.op.src[0] = bed_act(&b, fmt->act, n * heads[i], rows[i]);
            b.op.src[1] = bed_weights(&b, fmt, n, 37, heads[i]);
            bed_out(&b, 0, 37 * heads[i], rows[i]);
            b.run.rows = rows[i];
            bad += CHECK(b);
        }
    return bad;
}
