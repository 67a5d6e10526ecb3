/*
 * panel_neon - the matrix product of many columns: weights decoded once to
 * panels of eight rows of signed bytes, activations packed once in tiles of
 * twelve columns, three times four side by side.
 *
 * A step is eight rows x four columns: eight accumulators, each of which holds
 * four of the 32 outputs.  Which four, and how bytes lie for that, is the
 * panel_kind of a tier; d, m and integer scales of a panel are spread to match
 * when it is built, so that one body serves all.
 *
 * The minima of a block are sixteen more weights.  What they meet, the sums of
 * sixteen activations, has twelve bits: 128 * high + low, both bytes, so msum
 * is two dots more and nothing else.
 *
 * Rows are taken in slabs that stay in L2; the accumulators rest in y between
 * them.  Rows that the matrix does not have are its last one again.
 */
#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/blocks256_neon.h"
#include "backends/cpu/neon/blocks32_neon.h"
#include "common/alloc.h"

#define PANEL_ROWS  8
#define PANEL_SLAB  2048 /* weights of a row */
#define PANEL_GROUP 8    /* panels that a tile meets in turn */
#define STEP_COLS   4
#define STEP_ACCS   8

struct panel_kind {
    size_t w_vecs; /* accumulator v * a_vecs + c meets vector v of what is by row, c by column */
    size_t a_vecs;
    size_t (*row_of)(size_t v, size_t lane);
    size_t (*col_of)(size_t c, size_t lane);
    /* Vector c of four values by column. */
    float32x4_t (*columns)(float32x4_t four, size_t c);
    /* Sixteen weights of eight rows, sixteen activations of four columns. */
    void (*put_weights)(const int8x16_t q[PANEL_ROWS], int8_t to[128]);
    void (*put_acts)(const int8x16_t q[STEP_COLS], int8_t to[64]);
    /* s += their 32 sums of sixteen products. */
    void (*dots)(const int8_t w[128], const int8_t a[64], int32x4_t s[STEP_ACCS]);
};

struct panel32 {
    int8_t q[2][128];
    float d[4][4]; /* [w_vecs] */
    float m[4][4];
};

struct step32 {
    int8_t q[2][64];
    float d[STEP_COLS];
    float sum[STEP_COLS];
};

struct panel256 {
    int8_t q[16][128];
    int8_t minima[128];
    int32_t scale[4][16][4]; /* [w_vecs][subs] */
    float d[4][4];
    float m[4][4];
};

struct step256 {
    int8_t q[16][64];
    int8_t low[64]; /* sums of activations: 128 * high + low */
    int8_t high[64];
    float d[STEP_COLS];
    float pad[28];
};

_Static_assert(sizeof(struct step32) == STEP_COLS * sizeof(struct act_q8_32), "a tile of q8_32");
_Static_assert(sizeof(struct step256) == STEP_COLS * sizeof(struct act_q8_256), "a tile of q8_256");
_Static_assert(KERNELS_TILE_COLS % STEP_COLS == 0, "steps fill a tile");
/* Panels of a group lie close, so a short row needs less; at the longest slab: */
_Static_assert(PANEL_SLAB / 256 * PANEL_GROUP * sizeof(struct panel256) <=
                   KERNELS_SCRATCH_BYTES(PANEL_SLAB),
               "a slab of panels fits");
_Static_assert(PANEL_SLAB / 32 * PANEL_GROUP * sizeof(struct panel32) <=
                   KERNELS_SCRATCH_BYTES(PANEL_SLAB),
               "a slab of panels fits");

/* -- building panels ------------------------------------------------------------------------- */

INLINE void spread_rows(const struct panel_kind *k, const float by_row[PANEL_ROWS], float to[4][4])
{
#pragma GCC unroll 4
    for (size_t v = 0; v < k->w_vecs; v++)
        for (size_t lane = 0; lane < 4; lane++)
            to[v][lane] = by_row[k->row_of(v, lane)];
}

typedef void scales_fn(const uint8_t *const w[4], float32x4_t *d, float32x4_t *m);

/* d and m of eight rows. */
INLINE void spread_scales(const struct panel_kind *k, scales_fn *scales,
                          const uint8_t *const w[PANEL_ROWS], float to_d[4][4], float to_m[4][4])
{
    float d[PANEL_ROWS], m[PANEL_ROWS];

    for (size_t half = 0; half < PANEL_ROWS; half += 4) {
        float32x4_t four_d, four_m;

        scales(w + half, &four_d, &four_m);
        vst1q_f32(d + half, four_d);
        vst1q_f32(m + half, four_m);
    }
    spread_rows(k, d, to_d);
    spread_rows(k, m, to_m);
}

INLINE void panel32_put(const struct panel_kind *k, const struct blocks32 *f,
                        const uint8_t *const w[PANEL_ROWS], struct panel32 *to)
{
    int8x16_t q[2][PANEL_ROWS];

    for (size_t i = 0; i < PANEL_ROWS; i++) {
        int8x16_t block[2];

        f->block(w[i], block);
        q[0][i] = block[0];
        q[1][i] = block[1];
    }
    k->put_weights(q[0], to->q[0]);
    k->put_weights(q[1], to->q[1]);
    spread_scales(k, f->scales, w, to->d, to->m);
}

/* Sixteen scales of four rows, as dwords [scale][row]. */
INLINE void put_scales(int8x16_t a, int8x16_t b, int8x16_t c, int8x16_t d, int32_t to[16][4])
{
    int8x16_t ac[2] = {vzip1q_s8(a, c), vzip2q_s8(a, c)};
    int8x16_t bd[2] = {vzip1q_s8(b, d), vzip2q_s8(b, d)};

#pragma GCC unroll 2
    for (size_t h = 0; h < 2; h++) {
        int32x4_t x[8];

        lanes_widen(vzip1q_s8(ac[h], bd[h]), x);
        lanes_widen(vzip2q_s8(ac[h], bd[h]), x + 4);
        for (size_t i = 0; i < 8; i++)
            vst1q_s32(to[8 * h + i], x[i]);
    }
}

INLINE void panel256_put(const struct panel_kind *k, const struct blocks256 *f,
                         const uint8_t *const w[PANEL_ROWS], struct panel256 *to)
{
    struct parts256 p[PANEL_ROWS];
    int8x16_t q[PANEL_ROWS];

    for (size_t i = 0; i < PANEL_ROWS; i++)
        f->block(w[i], &p[i]);
    for (size_t j = 0; j < 16; j++) {
        for (size_t i = 0; i < PANEL_ROWS; i++)
            q[i] = p[i].q[j];
        k->put_weights(q, to->q[j]);
    }
    for (size_t v = 0; v < k->w_vecs; v++)
        put_scales(p[k->row_of(v, 0)].scale, p[k->row_of(v, 1)].scale, p[k->row_of(v, 2)].scale,
                   p[k->row_of(v, 3)].scale, to->scale[v]);
    if (f->minima) {
        for (size_t i = 0; i < PANEL_ROWS; i++)
            q[i] = p[i].minima;
        k->put_weights(q, to->minima);
    }
    spread_scales(k, f->scales, w, to->d, to->m);
}

/* -- packing activations ------------------------------------------------------------------------ */

typedef void step_put_fn(const struct panel_kind *k, const char *const act[STEP_COLS], void *step);

INLINE void step32_put(const struct panel_kind *k, const char *const act[STEP_COLS], void *step)
{
    const struct act_q8_32 *a[STEP_COLS];
    struct step32 *to = step;
    int8x16_t q[STEP_COLS];

    for (size_t c = 0; c < STEP_COLS; c++)
        a[c] = (const struct act_q8_32 *)act[c];

    for (size_t j = 0; j < 2; j++) {
        for (size_t c = 0; c < STEP_COLS; c++)
            q[c] = vld1q_s8(a[c]->q + 16 * j);
        k->put_acts(q, to->q[j]);
    }
    for (size_t c = 0; c < STEP_COLS; c++) {
        to->d[c] = a[c]->d;
        to->sum[c] = (float)a[c]->sum;
    }
}

INLINE void step256_put(const struct panel_kind *k, const char *const act[STEP_COLS], void *step)
{
    const struct act_q8_256 *a[STEP_COLS];
    struct step256 *to = step;
    int8x16_t q[STEP_COLS], low[STEP_COLS], high[STEP_COLS];

    for (size_t c = 0; c < STEP_COLS; c++)
        a[c] = (const struct act_q8_256 *)act[c];

    for (size_t j = 0; j < 16; j++) {
        for (size_t c = 0; c < STEP_COLS; c++)
            q[c] = vld1q_s8(a[c]->q + 16 * j);
        k->put_acts(q, to->q[j]);
    }
    for (size_t c = 0; c < STEP_COLS; c++) {
        const int16x8_t half = vdupq_n_s16(64);
        int16x8_t s0 = vld1q_s16(a[c]->sums), s1 = vld1q_s16(a[c]->sums + 8);
        int16x8_t h0 = vshrq_n_s16(vaddq_s16(s0, half), 7);
        int16x8_t h1 = vshrq_n_s16(vaddq_s16(s1, half), 7);

        high[c] = vcombine_s8(vmovn_s16(h0), vmovn_s16(h1));
        low[c] = vcombine_s8(vmovn_s16(vsubq_s16(s0, vshlq_n_s16(h0, 7))),
                             vmovn_s16(vsubq_s16(s1, vshlq_n_s16(h1, 7))));
        to->d[c] = a[c]->d;
    }
    k->put_acts(low, to->low);
    k->put_acts(high, to->high);
    memset(to->pad, 0, sizeof(to->pad));
}

/* Steps of four columns, from `act` on; columns that are not there are zero. */
INLINE void put_steps(const struct panel_kind *k, const char *act, size_t stride, size_t act_bytes,
                      size_t cols, size_t blocks, step_put_fn *put, char *to, size_t step_bytes)
{
    static const struct act_q8_256 nothing;

    for (size_t b = 0; b < blocks; b++, to += step_bytes) {
        const char *a[STEP_COLS];

        for (size_t c = 0; c < STEP_COLS; c++)
            a[c] = c < cols ? act + c * stride + b * act_bytes : (const char *)&nothing;
        put(k, a, to);
    }
}

/* One tile: three times four columns, each [block]. */
INLINE void pack_steps(const struct pack *p, const struct panel_kind *k, size_t elems,
                       size_t act_bytes, step_put_fn *put)
{
    size_t blocks = p->n / elems, step_bytes = STEP_COLS * act_bytes;

    for (size_t c = 0; c < KERNELS_TILE_COLS; c += STEP_COLS)
        put_steps(k, (const char *)p->act + c * p->act_stride, p->act_stride, act_bytes,
                  p->cols > c ? p->cols - c : 0, blocks, put,
                  (char *)p->out + c / STEP_COLS * blocks * step_bytes, step_bytes);
}

INLINE void pack32(const struct pack *p, const struct panel_kind *k)
{
    pack_steps(p, k, 32, sizeof(struct act_q8_32), step32_put);
}

INLINE void pack256(const struct pack *p, const struct panel_kind *k)
{
    pack_steps(p, k, 256, sizeof(struct act_q8_256), step256_put);
}

/* -- products ------------------------------------------------------------------------------------ */

/* Where eight rows x four columns go. */
struct step_out {
    float *y;
    size_t stride;
    size_t rows;
    size_t cols;
    bool first; /* of the slabs: accumulators begin at zero, else where y left them */
};

INLINE void step_load(const struct panel_kind *k, const struct step_out *out,
                      float32x4_t acc[STEP_ACCS])
{
    for (size_t i = 0; i < STEP_ACCS; i++) {
        float x[4] = {0};

        for (size_t lane = 0; lane < 4 && !out->first; lane++) {
            size_t r = k->row_of(i / k->a_vecs, lane), c = k->col_of(i % k->a_vecs, lane);

            if (r < out->rows && c < out->cols)
                x[lane] = out->y[c * out->stride + r];
        }
        acc[i] = vld1q_f32(x);
    }
}

INLINE void step_store(const struct panel_kind *k, const struct step_out *out,
                       const float32x4_t acc[STEP_ACCS])
{
    for (size_t i = 0; i < STEP_ACCS; i++) {
        float x[4];

        vst1q_f32(x, acc[i]);
        for (size_t lane = 0; lane < 4; lane++) {
            size_t r = k->row_of(i / k->a_vecs, lane), c = k->col_of(i % k->a_vecs, lane);

            if (r < out->rows && c < out->cols)
                out->y[c * out->stride + r] = x[lane];
        }
    }
}

INLINE void step_zero(int32x4_t s[STEP_ACCS])
{
#pragma GCC unroll 8
    for (size_t i = 0; i < STEP_ACCS; i++)
        s[i] = vdupq_n_s32(0);
}

INLINE void step32(const struct panel_kind *k, const struct panel32 *p, const struct step32 *t,
                   bool offset, float32x4_t acc[STEP_ACCS])
{
    float32x4_t d_a = vld1q_f32(t->d), asum = vld1q_f32(t->sum);
    int32x4_t s[STEP_ACCS];

    step_zero(s);
    k->dots(p->q[0], t->q[0], s);
    k->dots(p->q[1], t->q[1], s);
#pragma GCC unroll 8
    for (size_t i = 0; i < STEP_ACCS; i++) {
        size_t r = i / k->a_vecs, c = i % k->a_vecs;
        float32x4_t d = vld1q_f32(p->d[r]), f = vcvtq_f32_s32(s[i]);
        float32x4_t v = vmulq_f32(d, f);

        if (offset)
            v = vfmaq_f32(vmulq_f32(vld1q_f32(p->m[r]), k->columns(asum, c)), d, f);
        acc[i] = vfmaq_f32(acc[i], v, k->columns(d_a, c));
    }
}

INLINE void step256(const struct panel_kind *k, const struct panel256 *p, const struct step256 *t,
                    size_t subs, bool minima, float32x4_t acc[STEP_ACCS])
{
    float32x4_t d_a = vld1q_f32(t->d);
    int32x4_t s[STEP_ACCS], isum[STEP_ACCS];

    step_zero(isum);
    for (size_t j = 0; j < subs; j++) {
        step_zero(s);
        if (subs == 8) {
            k->dots(p->q[2 * j], t->q[2 * j], s);
            k->dots(p->q[2 * j + 1], t->q[2 * j + 1], s);
        } else {
            k->dots(p->q[j], t->q[j], s);
        }
#pragma GCC unroll 8
        for (size_t i = 0; i < STEP_ACCS; i++)
            isum[i] = vmlaq_s32(isum[i], s[i], vld1q_s32(p->scale[i / k->a_vecs][j]));
    }
    step_zero(s);
    if (minima) {
        k->dots(p->minima, t->high, s);
#pragma GCC unroll 8
        for (size_t i = 0; i < STEP_ACCS; i++)
            s[i] = vshlq_n_s32(s[i], 7);
        k->dots(p->minima, t->low, s);
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < STEP_ACCS; i++) {
        size_t r = i / k->a_vecs, c = i % k->a_vecs;
        float32x4_t d = vld1q_f32(p->d[r]), f = vcvtq_f32_s32(isum[i]);
        float32x4_t v = vmulq_f32(d, f);

        if (minima)
            v = vfmaq_f32(vnegq_f32(vmulq_f32(vld1q_f32(p->m[r]), vcvtq_f32_s32(s[i]))), d, f);
        acc[i] = vfmaq_f32(acc[i], v, k->columns(d_a, c));
    }
}

INLINE struct step_out step_out_of(float *y, size_t stride, size_t rows, size_t cols, bool first)
{
    return (struct step_out){.y = y, .stride = stride, .rows = rows, .cols = cols, .first = first};
}

/* Eight rows of blocks; those that the matrix does not have are its last one. */
struct rows8 {
    const uint8_t *w[PANEL_ROWS];
};

INLINE void rows8_init(struct rows8 *rows, const uint8_t *w, size_t row_bytes, size_t n)
{
    for (size_t i = 0; i < PANEL_ROWS; i++)
        rows->w[i] = w + (i < n ? i : n - 1) * row_bytes;
}

/* To the next block; asks for the same one of the next eight rows. */
INLINE void rows8_step(struct rows8 *rows, size_t row_bytes, size_t bytes)
{
    for (size_t i = 0; i < PANEL_ROWS; i++) {
        for (size_t at = 0; at < bytes; at += 64)
            __builtin_prefetch((const void *)((uintptr_t)rows->w[i] + 8 * row_bytes + at), 0, 2);
        rows->w[i] += bytes;
    }
}

/* A step of a format whose shape is known when this runs, by a body of which it is a constant. */
INLINE void step256_of(const struct panel_kind *k, const struct blocks256 *f,
                       const struct panel256 *p, const struct step256 *t, size_t blocks,
                       float32x4_t acc[STEP_ACCS])
{
    if (f->subs == 8 && f->minima)
        for (size_t b = 0; b < blocks; b++)
            step256(k, p + b, t + b, 8, true, acc);
    else if (f->subs == 8)
        for (size_t b = 0; b < blocks; b++)
            step256(k, p + b, t + b, 8, false, acc);
    else if (f->minima)
        for (size_t b = 0; b < blocks; b++)
            step256(k, p + b, t + b, 16, true, acc);
    else
        for (size_t b = 0; b < blocks; b++)
            step256(k, p + b, t + b, 16, false, acc);
}

INLINE void step32_of(const struct panel_kind *k, const struct blocks32 *f, const struct panel32 *p,
                      const struct step32 *t, size_t blocks, float32x4_t acc[STEP_ACCS])
{
    if (f->offset)
        for (size_t b = 0; b < blocks; b++)
            step32(k, p + b, t + b, true, acc);
    else
        for (size_t b = 0; b < blocks; b++)
            step32(k, p + b, t + b, false, acc);
}

/* -- many columns ------------------------------------------------------------------------------------ */

/*
 * What a family brings to the loops, with its own types behind void pointers.
 * Arguments, not fields: a constant argument is inlined, a field of a local is not.
 */
typedef void panel_put_fn(const struct panel_kind *k, const void *format, const struct rows8 *rows,
                          void *panel);
typedef void panel_product_fn(const struct panel_kind *k, const void *format, const void *panel,
                              const void *steps, size_t blocks, float32x4_t acc[STEP_ACCS]);

struct sizes {
    size_t elems; /* of a block, as are the others */
    size_t block_bytes;
    size_t panel_bytes;
    size_t step_bytes;
};

INLINE struct sizes sizes32(const struct blocks32 *format)
{
    return (struct sizes){32, format->bytes, sizeof(struct panel32), sizeof(struct step32)};
}

INLINE struct sizes sizes256(const struct blocks256 *format)
{
    return (struct sizes){256, format->bytes, sizeof(struct panel256), sizeof(struct step256)};
}

/* Some blocks of eight rows. */
INLINE void build_panel(const struct gemm *g, const struct panel_kind *k, const void *format,
                        struct sizes z, size_t row, size_t from, size_t blocks, char *to,
                        panel_put_fn *put)
{
    struct rows8 rows;

    rows8_init(&rows, (const uint8_t *)g->w + row * g->row_bytes + from * z.block_bytes,
               g->row_bytes, g->rows - row);
    for (size_t b = 0; b < blocks; b++, to += z.panel_bytes) {
        put(k, format, &rows, to);
        rows8_step(&rows, g->row_bytes, z.block_bytes);
    }
}

/* Each panel is decoded once and meets all columns, four at a time. */
INLINE void gemm_loops(const struct gemm *g, const struct panel_kind *k, const void *format,
                       struct sizes z, panel_put_fn *put, panel_product_fn *product)
{
    size_t all = g->n / z.elems;
    size_t most = MIN(all, (size_t)PANEL_SLAB / z.elems); /* blocks in a panel */

    for (size_t row = 0; row < g->rows; row += PANEL_GROUP * PANEL_ROWS)
        for (size_t from = 0; from < all; from += most) {
            size_t blocks = MIN(most, all - from);
            size_t end = MIN(row + PANEL_GROUP * PANEL_ROWS, g->rows);
            char *panel = g->scratch;

            for (size_t r = row; r < end; r += PANEL_ROWS, panel += most * z.panel_bytes)
                build_panel(g, k, format, z, r, from, blocks, panel, put);
            for (size_t c = 0; c < g->cols; c += STEP_COLS) {
                const char *steps =
                    (const char *)g->packed + (c / STEP_COLS * all + from) * z.step_bytes;

                panel = g->scratch;
                for (size_t r = row; r < end; r += PANEL_ROWS, panel += most * z.panel_bytes) {
                    struct step_out out = step_out_of(g->y + c * g->y_stride + r, g->y_stride,
                                                      g->rows - r, g->cols - c, from == 0);
                    float32x4_t acc[STEP_ACCS];

                    step_load(k, &out, acc);
                    product(k, format, panel, steps, blocks, acc);
                    step_store(k, &out, acc);
                }
            }
        }
}

INLINE void family32_put(const struct panel_kind *k, const void *format, const struct rows8 *rows,
                         void *panel)
{
    panel32_put(k, format, rows->w, panel);
}

INLINE void family32_product(const struct panel_kind *k, const void *format, const void *panel,
                             const void *steps, size_t blocks, float32x4_t acc[STEP_ACCS])
{
    step32_of(k, format, panel, steps, blocks, acc);
}

INLINE void family256_put(const struct panel_kind *k, const void *format, const struct rows8 *rows,
                          void *panel)
{
    panel256_put(k, format, rows->w, panel);
}

INLINE void family256_product(const struct panel_kind *k, const void *format, const void *panel,
                              const void *steps, size_t blocks, float32x4_t acc[STEP_ACCS])
{
    step256_of(k, format, panel, steps, blocks, acc);
}

/* The gemm of all formats of a family: one function in each tier, formats come as an argument. */
INLINE void gemm32(const struct gemm *g, const struct blocks32 *format, const struct panel_kind *k)
{
    gemm_loops(g, k, format, sizes32(format), family32_put, family32_product);
}

INLINE void gemm256(const struct gemm *g, const struct blocks256 *format,
                    const struct panel_kind *k)
{
    gemm_loops(g, k, format, sizes256(format), family256_put, family256_product);
}

#define GEMM32(fmt, tier)                                                                          \
    void gemm_##fmt##_##tier(const struct gemm *g)                                                 \
    {                                                                                              \
        gemm32_##tier(g, &blocks32_##fmt);                                                         \
    }
#define GEMM256(fmt, tier)                                                                         \
    void gemm_##fmt##_##tier(const struct gemm *g)                                                 \
    {                                                                                              \
        gemm256_##tier(g, &blocks256_##fmt);                                                       \
    }

/* -- two to four columns through panels: a block's panel lives for one step ----------------------------- */

/* steps: room for those of a slab; panel: for one. */
INLINE void narrow_loops(const struct matvec *m, const struct panel_kind *k, const void *format,
                         struct sizes z, step_put_fn *put_step, panel_put_fn *put,
                         panel_product_fn *product, char *steps, void *panel)
{
    size_t all = m->n / z.elems, most = PANEL_SLAB / z.elems;
    size_t act_bytes = z.step_bytes / STEP_COLS;

    for (size_t from = 0; from < all; from += most) {
        size_t blocks = MIN(most, all - from);

        put_steps(k, (const char *)m->act + from * act_bytes, m->act_stride, act_bytes, m->cols,
                  blocks, put_step, steps, z.step_bytes);
        for (size_t r = 0; r < m->rows; r += PANEL_ROWS) {
            struct step_out out =
                step_out_of(m->y + r, m->y_stride, m->rows - r, m->cols, from == 0);
            float32x4_t acc[STEP_ACCS];
            struct rows8 rows;

            rows8_init(&rows, (const uint8_t *)m->w + r * m->row_bytes + from * z.block_bytes,
                       m->row_bytes, m->rows - r);
            step_load(k, &out, acc);
            for (size_t b = 0; b < blocks; b++) {
                put(k, format, &rows, panel);
                product(k, format, panel, steps + b * z.step_bytes, 1, acc);
                rows8_step(&rows, m->row_bytes, z.block_bytes);
            }
            step_store(k, &out, acc);
        }
    }
}

INLINE void narrow32(const struct matvec *m, const struct blocks32 *f, const struct panel_kind *k)
{
    struct step32 steps[PANEL_SLAB / 32];
    struct panel32 panel;

    narrow_loops(m, k, f, sizes32(f), step32_put, family32_put, family32_product, (char *)steps,
                 &panel);
}

INLINE void narrow256(const struct matvec *m, const struct blocks256 *f, const struct panel_kind *k)
{
    struct step256 steps[PANEL_SLAB / 256];
    struct panel256 panel;

    narrow_loops(m, k, f, sizes256(f), step256_put, family256_put, family256_product, (char *)steps,
                 &panel);
}
