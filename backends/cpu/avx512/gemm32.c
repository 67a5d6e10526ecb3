/* Panels and tiles of the formats of 32 weights; see panel_avx512.h. */
#include <string.h>

#include "backends/cpu/avx512/slabs_avx512.h"

/* -- panels ----------------------------------------------------------------------------------- */

/* Sixteen decoded rows of up to eight blocks into half of as many panels. */
static void put_rows(const struct decoded32 *rows, size_t blocks, bool two_scales, size_t half,
                     struct panel32 *to)
{
    const __m512i bias = _mm512_set1_epi8(-128); /* 128, unsigned */

    for (size_t b = 0; b < blocks; b++, to++) {
        __m512i sum = _mm512_setzero_si512(), first = sum;

        for (size_t k = 0; k < 8; k += 4) {
            __m512i x[4];

            if (two_scales) {
                first = _mm512_sub_epi32(_mm512_setzero_si512(), sum);
                sum = _mm512_setzero_si512();
            }

            lanes_transpose16(rows->q + 32 * b + 4 * k, sizeof(*rows), x);
            for (size_t i = 0; i < 4; i++) {
                _mm512_storeu_si512(&to->q[k + i][half], x[i]);
                sum = _mm512_dpbusd_epi32(sum, bias, x[i]);
            }
        }
        sum = _mm512_sub_epi32(_mm512_setzero_si512(), sum);
        if (two_scales)
            sum = _mm512_mask_blend_epi16(0xaaaaaaaa, first, _mm512_slli_epi32(sum, 16));
        _mm512_storeu_si512(&to->nc[half], sum);
    }
}

/* Four blocks' d (or m) of sixteen rows. */
static void put_floats(const float *rows, size_t blocks, float *to)
{
    __m512i x[4];

    lanes_transpose16(rows, sizeof(struct decoded32), x);
    for (size_t b = 0; b < blocks && b < 4; b++)
        _mm512_storeu_si512(to + b * sizeof(struct panel32) / sizeof(float), x[b]);
}

static void put_scales(const struct decoded32 *rows, bool offset, size_t blocks, size_t half,
                       struct panel32 *to)
{
    for (size_t b = 0; b < blocks; b += 4) {
        put_floats(rows->d + b, blocks - b, &to[b].d[half]);
        if (offset)
            put_floats(rows->m + b, blocks - b, &to[b].m[half]);
    }
}

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
    struct decoded32 rows[16];

    for (size_t b = 0; b < blocks; b += 8) {
        size_t n = blocks - b < 8 ? blocks - b : 8;

        for (size_t half = 0; half < PANEL_ROWS; half += 16) {
            for (size_t i = 0; i < 16; i++) {
                size_t r = row + half + i;

                if (r < g->rows)
                    decode_row(f,
                               (const uint8_t *)g->w + r * g->row_bytes +
                                   ((from + b) * f->bytes >> f->shift),
                               n, &rows[i]);
                else
                    memset(&rows[i], 0, sizeof(rows[i]));
            }
            put_rows(rows, n, f->two_scales, half, to + b);
            put_scales(rows, f->offset || f->two_scales, n, half, to + b);
        }
    }
}

/* -- tiles -------------------------------------------------------------------------------------- */

/* Adds the products of the dwords [k, end) of a block, 32 rows x 6 columns, to s. */
INLINE void dwords32(const struct panel32 *p, const struct tile32 *t, size_t col, size_t k,
                     size_t end, __m512i s[12])
{
#pragma GCC unroll 8
    for (; k < end; k++) {
        __m512i w0 = _mm512_loadu_si512(p->q[k][0]);
        __m512i w1 = _mm512_loadu_si512(p->q[k][16]);

#pragma GCC unroll 6
        for (size_t c = 0; c < TILE_HALF; c++) {
            __m512i x = _mm512_set1_epi32(*(const int32_t *)(const void *)t->q[k][col + c]);

            s[2 * c] = _mm512_dpbusd_epi32(s[2 * c], x, w0);
            s[2 * c + 1] = _mm512_dpbusd_epi32(s[2 * c + 1], x, w1);
        }
    }
}

/* One block of 32 rows x 6 columns; the sums begin at nc. */
INLINE void step32(const struct panel32 *p, const struct tile32 *t, size_t col, bool offset,
                   __m512 acc[12])
{
    __m512i s[12];

#pragma GCC unroll 12
    for (size_t i = 0; i < 12; i++)
        s[i] = _mm512_loadu_si512(&p->nc[i % 2 * 16]);
    dwords32(p, t, col, 0, 8, s);
#pragma GCC unroll 12
    for (size_t i = 0; i < 12; i++) {
        size_t row = i % 2 * 16, c = col + i / 2;
        __m512 d = _mm512_loadu_ps(&p->d[row]);
        __m512 f = _mm512_cvtepi32_ps(s[i]);
        __m512 v;

        if (offset)
            v = _mm512_fmadd_ps(
                d, f, _mm512_mul_ps(_mm512_loadu_ps(&p->m[row]), _mm512_set1_ps(t->sum[c])));
        else
            v = _mm512_mul_ps(d, f);
        acc[i] = _mm512_fmadd_ps(_mm512_set1_ps(t->d[c]), v, acc[i]);
    }
}

/* The same in two steps of sixteen weights, each with its scale. */
INLINE void step16(const struct panel32 *p, const struct tile32 *t, size_t col, __m512 acc[12])
{
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; h++) {
        __m512i s[12];

#pragma GCC unroll 12
        for (size_t i = 0; i < 12; i++) {
            s[i] = _mm512_loadu_si512(&p->nc[i % 2 * 16]);
            s[i] = _mm512_srai_epi32(h ? s[i] : _mm512_slli_epi32(s[i], 16), 16);
        }
        dwords32(p, t, col, 4 * h, 4 * h + 4, s);
#pragma GCC unroll 12
        for (size_t i = 0; i < 12; i++) {
            __m512 d = _mm512_loadu_ps((h ? p->m : p->d) + i % 2 * 16);
            __m512 v = _mm512_mul_ps(d, _mm512_cvtepi32_ps(s[i]));

            acc[i] = _mm512_fmadd_ps(_mm512_set1_ps(t->d[col + i / 2]), v, acc[i]);
        }
    }
}

enum kind32 { KIND_SCALE, KIND_OFFSET, KIND_TWO_SCALES };

/* Eight blocks (8 KiB of panel) of one half of the columns, then of the other: the second finds them in L1. */
INLINE void tile_product(const struct panel32 *p, const struct tile32 *t, size_t blocks,
                         enum kind32 kind, const struct tile_out *out)
{
    float rest[2][12][16] __attribute__((aligned(64)));
    size_t halves = out->cols > TILE_HALF ? 2 : 1;

    tile_load(out, rest[0], halves);
    for (size_t from = 0; from < blocks; from += 8) {
        size_t to = from + 8 < blocks ? from + 8 : blocks;

        for (size_t h = 0; h < halves; h++) {
            __m512 acc[12];

#pragma GCC unroll 12
            for (size_t i = 0; i < 12; i++)
                acc[i] = _mm512_load_ps(rest[h][i]);
            for (size_t b = from; b < to; b++)
                if (kind == KIND_TWO_SCALES)
                    step16(p + b, t + b, h * TILE_HALF, acc);
                else
                    step32(p + b, t + b, h * TILE_HALF, kind == KIND_OFFSET, acc);
#pragma GCC unroll 12
            for (size_t i = 0; i < 12; i++)
                _mm512_store_ps(rest[h][i], acc[i]);
        }
    }
    tile_store(out, rest[0]);
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

void gemm32_avx512(const struct gemm *g, const struct source32 *f)
{
    slab_product_fn *product = f->two_scales ? product_two_scales
                               : f->offset   ? product_offset
                                             : product_one;
    struct slab_sizes z = {32, sizeof(struct panel32), sizeof(struct tile32)};

    gemm_slabs(g, f, z, build_panel, product);
}
