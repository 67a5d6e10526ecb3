/* Panels and tiles of the formats of 32 weights; see panel_avx2.h. */
#include "backends/cpu/avx2/slabs_avx2.h"

/* The formats decode eight blocks; the last of a row may be fewer, with nothing behind them to read. */
static void decode_row(const struct source32 *f, const uint8_t *w, size_t blocks,
                       struct decoded32 *to)
{
    uint8_t rest[8 * 40];

    if (blocks < 8) {
        memset(rest, 0, sizeof(rest));
        memcpy(rest, w, blocks * f->bytes >> f->shift);
        w = rest;
    }
    f->decode(w, to);
}

/* Rows that the matrix does not have are zero. */
static void build_panel(const struct gemm *g, const void *format, size_t row, size_t from,
                        size_t blocks, void *panels)
{
    const struct source32 *f = format;
    struct panel32 *to = panels;
    struct decoded32 rows[PANEL_ROWS];

    for (size_t b = 0; b < blocks; b += 8, to += 8) {
        size_t n = blocks - b < 8 ? blocks - b : 8;

        for (size_t i = 0; i < PANEL_ROWS; i++) {
            const uint8_t *w = (const uint8_t *)g->w + (row + i) * g->row_bytes +
                               ((from + b) * f->bytes >> f->shift);

            if (row + i < g->rows)
                decode_row(f, w, n, &rows[i]);
            else
                memset(&rows[i], 0, sizeof(rows[i]));
            for (size_t j = 0; j < n; j++) {
                to[j].d[i] = rows[i].d[j];
                to[j].m[i] = f->offset || f->two_scales ? rows[i].m[j] : 0.0f;
            }
        }
        for (size_t j = 0; j < n; j++)
            panel_put(rows->q + 32 * j, sizeof(rows[0]), 16, to[j].q);
    }
}

static void build_tile(const struct gemm *g, size_t col, size_t from, size_t blocks, void *tile)
{
    struct tile32 *to = tile;
    static const struct act_q8_32 nothing;

    for (size_t b = 0; b < blocks; b++, to++) {
        const int8_t *at[TILE_COLS];

        for (size_t c = 0; c < TILE_COLS; c++) {
            const struct act_q8_32 *a =
                col + c < g->cols
                    ? (const struct act_q8_32 *)((const char *)g->act + (col + c) * g->act_stride) +
                          from + b
                    : &nothing;

            at[c] = a->q;
            to->d[c] = a->d;
            to->sum[c] = (float)a->sum;
        }
        tile_put(at, 16, to->q);
    }
}

INLINE void step32(const struct panel32 *p, const struct tile32 *t, size_t col, bool offset,
                   float acc[8][8])
{
    __m256i s[8];

    pairs_step(p->q, t->q, col, 16, s);
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
        __m256 d = _mm256_loadu_ps(&p->d[i % 2 * 8]);
        __m256 f = _mm256_cvtepi32_ps(s[i]);
        __m256 v = _mm256_mul_ps(d, f);

        if (offset)
            v = _mm256_fmadd_ps(d, f,
                                _mm256_mul_ps(_mm256_loadu_ps(&p->m[i % 2 * 8]),
                                              _mm256_set1_ps(t->sum[col + i / 2])));
        v = _mm256_fmadd_ps(_mm256_set1_ps(t->d[col + i / 2]), v, _mm256_load_ps(acc[i]));
        _mm256_store_ps(acc[i], v);
    }
}

/* The same in two steps of sixteen weights, each with its scale. */
INLINE void step16(const struct panel32 *p, const struct tile32 *t, size_t col, float acc[8][8])
{
    for (size_t h = 0; h < 2; h++) {
        const float *d = h ? p->m : p->d;
        __m256i s[8];

        pairs_step(p->q + 8 * h, t->q + 8 * h, col, 8, s);
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++) {
            __m256 v = _mm256_mul_ps(_mm256_loadu_ps(d + i % 2 * 8), _mm256_cvtepi32_ps(s[i]));

            v = _mm256_fmadd_ps(_mm256_set1_ps(t->d[col + i / 2]), v, _mm256_load_ps(acc[i]));
            _mm256_store_ps(acc[i], v);
        }
    }
}

enum kind32 { KIND_SCALE, KIND_OFFSET, KIND_TWO_SCALES };

/* Eight blocks of four columns, then of the next four: they find the panel's 8 KiB in L1. */
INLINE void tile_product(const struct panel32 *p, const struct tile32 *t, size_t blocks,
                         enum kind32 kind, const struct tile_out *out)
{
    float acc[2 * TILE_COLS][8] __attribute__((aligned(32)));

    tile_load(out, acc);
    for (size_t from = 0; from < blocks; from += 8) {
        size_t to = from + 8 < blocks ? from + 8 : blocks;

        for (size_t c = 0; c < out->cols; c += STEP_COLS)
            for (size_t b = from; b < to; b++)
                if (kind == KIND_TWO_SCALES)
                    step16(p + b, t + b, c, acc + 2 * c);
                else
                    step32(p + b, t + b, c, kind == KIND_OFFSET, acc + 2 * c);
    }
    tile_store(out, acc);
}

static void product_one(const void *p, const void *t, size_t blocks, const struct tile_out *out)
{
    tile_product(p, t, blocks, KIND_SCALE, out);
}

static void product_offset(const void *p, const void *t, size_t blocks, const struct tile_out *out)
{
    tile_product(p, t, blocks, KIND_OFFSET, out);
}

static void product_two_scales(const void *p, const void *t, size_t blocks,
                               const struct tile_out *out)
{
    tile_product(p, t, blocks, KIND_TWO_SCALES, out);
}

void gemm32_avx2(const struct gemm *g, const struct source32 *f)
{
    slab_product_fn *product = f->two_scales ? product_two_scales
                               : f->offset   ? product_offset
                                             : product_one;

    gemm_slabs(g, f, 32, sizeof(struct panel32), build_panel, build_tile, product);
}
