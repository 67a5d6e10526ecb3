/* Weights and activations, sane and hostile; see check.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/formats/half.h"
#include "tests/kernels/check.h"

const char *fill_name(enum fill how)
{
    static const char *const names[FILL_COUNT] = {"random", "ones",  "zeros",   "0x80",
                                                  "0x7f",   "±127",  "zero d",  "tiny d",
                                                  "huge d", "NaN d", "anything"};

    return names[how];
}

/* Where the floats of a block lie; a format that is not here takes random bytes whole. */
struct scales {
    const char *fmt;
    enum { HALF, NIBBLES, E8M0, UE4M3, F32, F64, BF16, F16 } kind;
    size_t at;
    size_t n;
};

static const struct scales scales_of[] = {
    {"q4_0", HALF, 0, 1},      {"q4_1", HALF, 0, 2},   {"q5_0", HALF, 0, 1},
    {"q5_1", HALF, 0, 2},      {"q8_0", HALF, 0, 1},   {"iq4_nl", HALF, 0, 1},
    {"mxfp4", E8M0, 0, 1},     {"nvfp4", UE4M3, 0, 4}, {"q2_0", HALF, 0, 1},
    {"q1_0", HALF, 0, 1},      {"q2_k", HALF, 80, 2},  {"q3_k", HALF, 108, 1},
    {"q4_k", HALF, 0, 2},      {"q5_k", HALF, 0, 2},   {"q6_k", HALF, 208, 1},
    {"iq4_xs", HALF, 0, 1},    {"tq1_0", HALF, 52, 1}, {"tq2_0", HALF, 64, 1},
    {"iq2_xxs", HALF, 0, 1},   {"iq2_xs", HALF, 0, 1}, {"iq2_s", HALF, 0, 1},
    {"iq3_xxs", HALF, 0, 1},   {"iq3_s", HALF, 0, 1},  {"iq1_s", HALF, 0, 1},
    {"iq1_m", NIBBLES, 48, 1}, {"f32", F32, 0, 1},     {"f64", F64, 0, 1},
    {"f16", F16, 0, 1},        {"bf16", BF16, 0, 1},
};

static const struct scales *find_scales(const char *fmt)
{
    for (size_t i = 0; i < sizeof(scales_of) / sizeof(scales_of[0]); i++)
        if (strcmp(scales_of[i].fmt, fmt) == 0)
            return &scales_of[i];
    return NULL;
}

/* A scale, or a weight that is a float itself. */
static float scale_value(enum fill how, bool is_weight)
{
    switch (how) {
    case FILL_ZERO_D: return 0.0f;
    case FILL_TINY_D: return (float)(check_random() % 1023 + 1) * 0x1p-24f;
    case FILL_HUGE_D: return 65504.0f;
    case FILL_NAN_D:
        if (check_random() % 4 == 0)
            return check_random() % 2 ? NAN : INFINITY;
        break;
    case FILL_ZEROS:
        if (is_weight)
            return 0.0f;
        break;
    default: break;
    }
    return is_weight ? check_normal() : check_normal() * 0.01f;
}

static void put_scale(const struct scales *s, enum fill how, unsigned char *at)
{
    float v = scale_value(how, s->kind >= F32);
    uint16_t half;

    switch (s->kind) {
    case HALF:
    case F16: half = f32_to_f16(v); break;
    case BF16: half = f32_to_bf16(v); break;
    case F32: memcpy(at, &v, sizeof(v)); return;
    case F64: memcpy(at, &(double){(double)v}, sizeof(double)); return;
    case NIBBLES: /* a half in the high nibbles of four little-endian words */
        half = f32_to_f16(v);
        for (int i = 0; i < 4; i++)
            at[2 * i + 1] = (unsigned char)((at[2 * i + 1] & 15) | (half >> 4 * i & 15) << 4);
        return;
    case E8M0: /* has no NaN, zero or sign: take the two ends instead */
        *at = (unsigned char)(how == FILL_TINY_D   ? check_random() % 3
                              : how == FILL_HUGE_D ? 254
                              : how == FILL_NAN_D  ? 255
                                                   : 110 + check_random() % 20);
        return;
    case UE4M3: *at = (unsigned char)(check_random() % 0x7f); return;
    default: return;
    }
    memcpy(at, &half, sizeof(half));
}

static size_t scale_bytes(const struct scales *s)
{
    return s->kind == F64 ? 8 : s->kind == F32 ? 4 : s->kind == E8M0 || s->kind == UE4M3 ? 1 : 2;
}

void fill_weights(const struct format *f, enum fill how, void *blocks, size_t n_blocks)
{
    const struct scales *s = find_scales(f->name);
    unsigned char *at = blocks;
    size_t bytes = n_blocks * f->block_bytes;

    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(how == FILL_ONES    ? 0xff
                                : how == FILL_ZEROS ? 0
                                : how == FILL_80    ? 0x80
                                : how == FILL_7F    ? 0x7f
                                                    : check_random());
    if (!s || how == FILL_ANYTHING)
        return;
    for (size_t b = 0; b < n_blocks; b++, at += f->block_bytes)
        for (size_t i = 0; i < s->n; i++)
            put_scale(s, how, at + s->at + i * scale_bytes(s));
}

static int extreme(void)
{
    return check_random() % 2 ? 127 : -127;
}

static int any_q(void)
{
    return (int)(check_random() % 255) - 127;
}

/* Scales of activations are finite in every case: quantising sees to that. */
static float act_scale(void)
{
    return check_random() % 16 == 0 ? 0.0f : fabsf(check_normal()) * 0.02f;
}

static void fill_q8_32(struct act_q8_32 *b, bool extremes, bool all_plus)
{
    b->sum = 0;
    b->d = act_scale();
    for (int i = 0; i < 32; i++) {
        b->q[i] = (int8_t)(all_plus ? 127 : extremes ? extreme() : any_q());
        b->sum += b->q[i];
    }
}

static void fill_q8_256(struct act_q8_256 *b, bool extremes, bool all_plus)
{
    memset(b, 0, sizeof(*b));
    b->d = act_scale();
    for (int i = 0; i < 256; i++) {
        b->q[i] = (int8_t)(all_plus ? 127 : extremes ? extreme() : any_q());
        b->sums[i / 16] = (int16_t)(b->sums[i / 16] + b->q[i]);
    }
}

void fill_act(enum act_kind kind, enum fill how, void *row, size_t n)
{
    bool extremes = how == FILL_EXTREME;
    bool all_plus = how == FILL_ONES || how == FILL_80 || how == FILL_7F;

    if (kind == ACT_F32)
        for (size_t i = 0; i < n; i++)
            ((float *)row)[i] = extremes ? check_normal() * 1e15f : check_normal();
    else if (kind == ACT_Q8_32)
        for (size_t i = 0; i < (n + 31) / 32; i++)
            fill_q8_32((struct act_q8_32 *)row + i, extremes, all_plus);
    else
        for (size_t i = 0; i < (n + 255) / 256; i++)
            fill_q8_256((struct act_q8_256 *)row + i, extremes, all_plus);
}

void act_to_f64(enum act_kind kind, const void *row, size_t n, double *out)
{
    const struct act_q8_32 *a = row;
    const struct act_q8_256 *b = row;

    for (size_t i = 0; i < n; i++)
        out[i] = kind == ACT_F32     ? (double)((const float *)row)[i]
                 : kind == ACT_Q8_32 ? (double)a[i / 32].d * a[i / 32].q[i % 32]
                                     : (double)b[i / 256].d * b[i / 256].q[i % 256];
}
