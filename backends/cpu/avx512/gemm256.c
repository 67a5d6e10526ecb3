/* Panels and tiles of the formats of 256 weights; see panel_avx512.h. */
#include <string.h>

#include "backends/cpu/avx512/slabs_avx512.h"

/* -- panels ----------------------------------------------------------------------------------- */

/* Byte i of every dword, sign-extended. */
INLINE __m512i byte_of(__m512i x, int i)
{
    return _mm512_srai_epi32(_mm512_slli_epi32(x, (unsigned)(24 - 8 * i)), 24);
}

static void put_scales(const struct decoded256 *rows, size_t half, struct panel256 *to)
{
    const __m512i words0 = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1));
    const __m512i words1 = _mm512_broadcast_i32x4(
        _mm_setr_epi8(2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1));
    __m512i x[4];

    lanes_transpose16(rows->scale, sizeof(*rows), x);
    for (size_t i = 0; i < 4; i++) {
        _mm512_storeu_si512(&to->scale[4 * i][half], byte_of(x[i], 0));
        _mm512_storeu_si512(&to->scale[4 * i + 1][half], byte_of(x[i], 1));
        _mm512_storeu_si512(&to->scale[4 * i + 2][half], byte_of(x[i], 2));
        _mm512_storeu_si512(&to->scale[4 * i + 3][half], byte_of(x[i], 3));
    }
    lanes_transpose16(rows->minima, sizeof(*rows), x);
    for (size_t i = 0; i < 4; i++) {
        _mm512_storeu_si512(&to->minima[2 * i][half], _mm512_shuffle_epi8(x[i], words0));
        _mm512_storeu_si512(&to->minima[2 * i + 1][half], _mm512_shuffle_epi8(x[i], words1));
    }
}

/* Sixteen decoded rows into half of a panel. */
static void put_rows(const struct decoded256 *rows, size_t subs, size_t half, struct panel256 *to)
{
    const __m512i bias = _mm512_set1_epi8(-128); /* 128, unsigned */
    __m512i nc = _mm512_setzero_si512();
    size_t k_of_sub = 64 / subs;

    put_scales(rows, half, to);
    for (size_t j = 0; j < subs; j++) {
        __m512i sum = _mm512_setzero_si512();

        for (size_t k = j * k_of_sub; k < (j + 1) * k_of_sub; k += 4) {
            __m512i x[4];

            lanes_transpose16(rows->q + 4 * k, sizeof(*rows), x);
            for (size_t i = 0; i < 4; i++) {
                _mm512_storeu_si512(&to->q[k + i][half], x[i]);
                sum = _mm512_dpbusd_epi32(sum, bias, x[i]);
            }
        }
        sum = _mm512_mullo_epi32(sum, _mm512_loadu_si512(&to->scale[j][half]));
        nc = _mm512_sub_epi32(nc, sum);
    }
    _mm512_storeu_si512(&to->nc[half], nc);
    for (size_t i = 0; i < 16; i++) {
        to->d[half + i] = rows[i].d;
        to->m[half + i] = rows[i].m;
    }
}

/* Rows that the matrix does not have are zero. */
static void build_panel(const struct gemm *g, const void *format, size_t row, size_t from,
                        size_t blocks, void *panels)
{
    const struct source256 *f = format;
    struct panel256 *to = panels;
    struct decoded256 rows[16];

    for (size_t b = 0; b < blocks; b++)
        for (size_t half = 0; half < PANEL_ROWS; half += 16) {
            for (size_t i = 0; i < 16; i++) {
                size_t r = row + half + i;
                const uint8_t *w = (const uint8_t *)g->w + r * g->row_bytes + (from + b) * f->bytes;

                if (r < g->rows)
                    f->decode(w, &rows[i]);
                else
                    memset(&rows[i], 0, sizeof(rows[i]));
            }
            put_rows(rows, f->subs, half, to + b);
        }
}

/* -- tiles -------------------------------------------------------------------------------------- */

/* isum of 32 rows x 6 columns over one block: sum[2c] and sum[2c + 1] are the rows of column c. */
INLINE void isum_step(const struct panel256 *p, const struct tile256 *t, size_t col, size_t subs,
                      __m512i isum[12])
{
    size_t k_of_sub = 64 / subs;

    for (size_t i = 0; i < 12; i++)
        isum[i] = _mm512_loadu_si512(&p->nc[i % 2 * 16]);
#pragma GCC unroll 1
    for (size_t j = 0; j < subs; j++) {
        const int8_t(*q)[PANEL_ROWS][4] = p->q + j * k_of_sub;
        const uint8_t(*a)[KERNELS_TILE_COLS][4] = t->q + j * k_of_sub;
        __m512i s[12];

        for (size_t i = 0; i < 12; i++)
            s[i] = _mm512_setzero_si512();
#pragma GCC unroll 8
        for (size_t k = 0; k < k_of_sub; k++) {
            __m512i w0 = _mm512_loadu_si512(q[k][0]);
            __m512i w1 = _mm512_loadu_si512(q[k][16]);

#pragma GCC unroll 6
            for (size_t c = 0; c < TILE_HALF; c++) {
                __m512i x = _mm512_set1_epi32(*(const int32_t *)(const void *)a[k][col + c]);

                s[2 * c] = _mm512_dpbusd_epi32(s[2 * c], x, w0);
                s[2 * c + 1] = _mm512_dpbusd_epi32(s[2 * c + 1], x, w1);
            }
        }
#pragma GCC unroll 12
        for (size_t i = 0; i < 12; i++) {
            __m512i scale = _mm512_loadu_si512(&p->scale[j][i % 2 * 16]);

            isum[i] = _mm512_add_epi32(isum[i], _mm512_mullo_epi32(s[i], scale));
        }
    }
}

/* m_w * f(msum) of sixteen rows and one column. */
INLINE __m512 minimum(const struct panel256 *p, const struct tile256 *t, size_t col, size_t row,
                      size_t subs)
{
    const int16_t(*sums)[KERNELS_TILE_COLS][2] = subs == 8 ? t->sum32 : t->sum16;
    __m512i msum = _mm512_setzero_si512();

    for (size_t j = 0; j < subs / 2; j++)
        msum = _mm512_dpwssd_epi32(msum, _mm512_loadu_si512(&p->minima[j][row]),
                                   _mm512_set1_epi32(*(const int32_t *)(const void *)sums[j][col]));
    return _mm512_mul_ps(_mm512_loadu_ps(&p->m[row]), _mm512_cvtepi32_ps(msum));
}

INLINE void step256(const struct panel256 *p, const struct tile256 *t, size_t col, size_t subs,
                    bool minima, float acc[12][16])
{
    __m512i isum[12];

    isum_step(p, t, col, subs, isum);
#pragma GCC unroll 12
    for (size_t i = 0; i < 12; i++) {
        size_t row = i % 2 * 16, c = col + i / 2;
        __m512 d = _mm512_loadu_ps(&p->d[row]);
        __m512 f = _mm512_cvtepi32_ps(isum[i]);
        __m512 v =
            minima ? _mm512_fmsub_ps(d, f, minimum(p, t, c, row, subs)) : _mm512_mul_ps(d, f);

        v = _mm512_fmadd_ps(_mm512_set1_ps(t->d[c]), v, _mm512_load_ps(acc[i]));
        _mm512_store_ps(acc[i], v);
    }
}

/* One panel x one tile; both halves of a block's columns while the block is in L1. */
INLINE void tile_product(const struct panel256 *p, const struct tile256 *t, size_t blocks,
                         size_t subs, bool minima, const struct tile_out *out)
{
    float acc[2][12][16] __attribute__((aligned(64)));
    size_t halves = out->cols > TILE_HALF ? 2 : 1;

    tile_load(out, acc[0], halves);
    for (size_t b = 0; b < blocks; b++)
        for (size_t h = 0; h < halves; h++)
            step256(p + b, t + b, h * TILE_HALF, subs, minima, acc[h]);
    tile_store(out, acc[0]);
}

static void product_8m(const void *p, const void *t, size_t blocks, const struct tile_out *out)
{
    tile_product(p, t, blocks, 8, true, out);
}

static void product_16(const void *p, const void *t, size_t blocks, const struct tile_out *out)
{
    tile_product(p, t, blocks, 16, false, out);
}

static void product_16m(const void *p, const void *t, size_t blocks, const struct tile_out *out)
{
    tile_product(p, t, blocks, 16, true, out);
}

static void product_8(const void *p, const void *t, size_t blocks, const struct tile_out *out)
{
    tile_product(p, t, blocks, 8, false, out);
}

void gemm256_avx512(const struct gemm *g, const struct source256 *f)
{
    slab_product_fn *product = f->subs == 8 ? (f->minima ? product_8m : product_8)
                                            : (f->minima ? product_16m : product_16);
    struct slab_sizes z = {256, sizeof(struct panel256), sizeof(struct tile256)};

    gemm_slabs(g, f, z, build_panel, product);
}
