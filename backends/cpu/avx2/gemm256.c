/* Panels and tiles of the formats of 256 weights; see panel_avx2.h. */
#include "backends/cpu/avx2/slabs_avx2.h"

/* Rows that the matrix does not have are zero. */
static void build_panel(const struct gemm *g, const void *format, size_t row, size_t from,
                        size_t blocks, void *panels)
{
    const struct source256 *f = format;
    struct panel256 *to = panels;
    struct decoded256 rows[PANEL_ROWS];

    for (size_t b = 0; b < blocks; b++, to++) {
        for (size_t i = 0; i < PANEL_ROWS; i++) {
            const uint8_t *w =
                (const uint8_t *)g->w + (row + i) * g->row_bytes + (from + b) * f->bytes;

            if (row + i < g->rows)
                f->decode(w, &rows[i]);
            else
                memset(&rows[i], 0, sizeof(rows[i]));
            to->d[i] = rows[i].d;
            to->m[i] = rows[i].m;
            for (size_t j = 0; j < 16; j++)
                to->minima[j / 2][i][j % 2] = rows[i].minima[j];
        }
        panel_put(rows->q, sizeof(rows[0]), 128, to->q);
    }
}

static void build_tile(const struct gemm *g, size_t col, size_t from, size_t blocks, void *tile)
{
    struct tile256 *to = tile;
    static const struct act_q8_256 nothing;

    for (size_t b = 0; b < blocks; b++, to++) {
        const int8_t *at[TILE_COLS];

        for (size_t c = 0; c < TILE_COLS; c++) {
            const struct act_q8_256 *a =
                col + c < g->cols ? (const struct act_q8_256 *)((const char *)g->act +
                                                                (col + c) * g->act_stride) +
                                        from + b
                                  : &nothing;

            at[c] = a->q;
            to->d[c] = a->d;
            for (size_t j = 0; j < 16; j++)
                to->sums[j / 2][c][j % 2] = a->sums[j];
        }
        tile_put(at, 128, to->q);
    }
}

INLINE void step256(const struct panel256 *p, const struct tile256 *t, size_t col, bool minima,
                    float acc[8][8])
{
    __m256i s[8], mins[8];

    pairs_step(p->q, t->q, col, 128, s);
    if (minima)
        pairs_step(p->minima, t->sums, col, 8, mins);
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
        __m256 d = _mm256_loadu_ps(&p->d[i % 2 * 8]);
        __m256 f = _mm256_cvtepi32_ps(s[i]);
        __m256 v = _mm256_mul_ps(d, f);

        if (minima)
            v = _mm256_fmsub_ps(
                d, f,
                _mm256_mul_ps(_mm256_loadu_ps(&p->m[i % 2 * 8]), _mm256_cvtepi32_ps(mins[i])));
        v = _mm256_fmadd_ps(_mm256_set1_ps(t->d[col + i / 2]), v, _mm256_load_ps(acc[i]));
        _mm256_store_ps(acc[i], v);
    }
}

INLINE void tile_product(const struct panel256 *p, const struct tile256 *t, size_t blocks,
                         bool minima, const struct tile_out *out)
{
    float acc[2 * TILE_COLS][8] __attribute__((aligned(32)));

    tile_load(out, acc);
    for (size_t b = 0; b < blocks; b++)
        for (size_t c = 0; c < out->cols; c += STEP_COLS)
            step256(p + b, t + b, c, minima, acc + 2 * c);
    tile_store(out, acc);
}

static void product(const void *p, const void *t, size_t blocks, const struct tile_out *out)
{
    tile_product(p, t, blocks, false, out);
}

static void product_minima(const void *p, const void *t, size_t blocks, const struct tile_out *out)
{
    tile_product(p, t, blocks, true, out);
}

void gemm256_avx2(const struct gemm *g, const struct source256 *f)
{
    gemm_slabs(g, f, 256, sizeof(struct panel256), build_panel, build_tile,
               f->minima ? product_minima : product);
}
