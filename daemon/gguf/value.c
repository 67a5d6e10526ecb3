/* Typed access to metadata; see gguf.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/gguf/gguf_priv.h"

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [GGUF_U8] = {"u8", 1},       [GGUF_I8] = {"i8", 1},     [GGUF_U16] = {"u16", 2},
    [GGUF_I16] = {"i16", 2},     [GGUF_U32] = {"u32", 4},   [GGUF_I32] = {"i32", 4},
    [GGUF_F32] = {"f32", 4},     [GGUF_BOOL] = {"bool", 1}, [GGUF_STRING] = {"string", 0},
    [GGUF_ARRAY] = {"array", 0}, [GGUF_U64] = {"u64", 8},   [GGUF_I64] = {"i64", 8},
    [GGUF_F64] = {"f64", 8},
};

const char *gguf_type_name(enum gguf_type t)
{
    return types[t].name;
}

size_t gguf_type_bytes(enum gguf_type t)
{
    return types[t].bytes;
}

bool gguf_is_int(enum gguf_type t)
{
    return t == GGUF_U8 || t == GGUF_I8 || t == GGUF_U16 || t == GGUF_I16 || t == GGUF_U32 ||
           t == GGUF_I32 || t == GGUF_U64 || t == GGUF_I64;
}

bool gguf_is_float(enum gguf_type t)
{
    return t == GGUF_F32 || t == GGUF_F64;
}

static uint64_t bits_at(const struct gguf_value *v, size_t i)
{
    size_t bytes = gguf_type_bytes(v->elem_type);
    const unsigned char *p = (const unsigned char *)v->data + i * bytes;
    uint64_t bits = 0;

    for (size_t k = bytes; k-- > 0;)
        bits = bits << 8 | p[k];
    return bits;
}

int64_t gguf_elem_i64(const struct gguf_value *v, size_t i)
{
    uint64_t bits = bits_at(v, i);

    switch (v->elem_type) {
    case GGUF_I8: return (int8_t)bits;
    case GGUF_I16: return (int16_t)bits;
    case GGUF_I32: return (int32_t)bits;
    case GGUF_I64: return (int64_t)bits;
    default: return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
    }
}

double gguf_elem_f64(const struct gguf_value *v, size_t i)
{
    uint64_t bits = bits_at(v, i);

    if (v->elem_type == GGUF_F32) {
        uint32_t low = (uint32_t)bits;
        float f;

        memcpy(&f, &low, sizeof f);
        return f;
    }
    if (v->elem_type == GGUF_F64) {
        double d;

        memcpy(&d, &bits, sizeof d);
        return d;
    }
    return (double)gguf_elem_i64(v, i);
}

static int wrong_type(const struct gguf_value *v, const char *wanted, struct err *err)
{
    char key[96];

    snprintf(key, sizeof key, "%.*s", SHOWN(v->key));
    return err_set_param(err, ERR_FORMAT, key, "metadata key '%s' is %s %s%s, not %s", key,
                         v->type == GGUF_ARRAY ? "an array of" : "a", gguf_type_name(v->elem_type),
                         v->type == GGUF_ARRAY ? " values" : "", wanted);
}

int gguf_value_u64(const struct gguf_value *v, uint64_t lo, uint64_t hi, uint64_t *out,
                   struct err *err)
{
    char key[96];
    uint64_t value;

    if (!v)
        return 0;
    if (!gguf_is_int(v->type))
        return wrong_type(v, "an integer", err);
    snprintf(key, sizeof key, "%.*s", SHOWN(v->key));
    value = v->type == GGUF_U64 ? bits_at(v, 0) : (uint64_t)gguf_elem_i64(v, 0);
    if (v->type != GGUF_U64 && gguf_elem_i64(v, 0) < 0)
        return err_set_param(err, ERR_FORMAT, key,
                             "metadata key '%s' is %" PRId64 "; it must be from %" PRIu64
                             " to %" PRIu64,
                             key, gguf_elem_i64(v, 0), lo, hi);
    if (value < lo || value > hi)
        return err_set_param(err, ERR_FORMAT, key,
                             "metadata key '%s' is %" PRIu64 "; it must be from %" PRIu64
                             " to %" PRIu64,
                             key, value, lo, hi);
    *out = value;
    return 1;
}

int gguf_get_u64(const struct gguf *g, const char *key, uint64_t lo, uint64_t hi, uint64_t *out,
                 struct err *err)
{
    return gguf_value_u64(gguf_find(g, key), lo, hi, out, err);
}

int gguf_get_u32(const struct gguf *g, const char *key, uint32_t lo, uint32_t hi, uint32_t *out,
                 struct err *err)
{
    uint64_t wide;
    int r = gguf_get_u64(g, key, lo, hi, &wide, err);

    if (r > 0)
        *out = (uint32_t)wide;
    return r;
}

int gguf_get_f32(const struct gguf *g, const char *key, float lo, float hi, float *out,
                 struct err *err)
{
    const struct gguf_value *v = gguf_find(g, key);
    double value;

    if (!v)
        return 0;
    if (!gguf_is_float(v->type))
        return wrong_type(v, "a floating-point number", err);
    value = gguf_elem_f64(v, 0);
    /* An f64 beyond the range of f32 becomes infinite here and is refused. */
    if (!isfinite((float)value) || (float)value < lo || (float)value > hi)
        return err_set_param(err, ERR_FORMAT, key,
                             "metadata key '%s' is %g; it must be from %g to %g", key, value,
                             (double)lo, (double)hi);
    *out = (float)value;
    return 1;
}

int gguf_get_bool(const struct gguf *g, const char *key, bool *out, struct err *err)
{
    const struct gguf_value *v = gguf_find(g, key);

    if (!v)
        return 0;
    if (v->type != GGUF_BOOL)
        return wrong_type(v, "a boolean", err);
    *out = bits_at(v, 0) != 0;
    return 1;
}

int gguf_get_string(const struct gguf *g, const char *key, struct view *out, struct err *err)
{
    const struct gguf_value *v = gguf_find(g, key);

    if (!v)
        return 0;
    if (v->type != GGUF_STRING)
        return wrong_type(v, "a string", err);
    *out = v->strings[0];
    return 1;
}
