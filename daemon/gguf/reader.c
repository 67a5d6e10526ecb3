/* Header and metadata of one part; see gguf.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/gguf/gguf_priv.h"

/* Least bytes that a thing takes in the file: what a count is checked against. */
#define VALUE_MIN_BYTES  14u /* length, one byte of key, type, one byte of value */
#define TENSOR_MIN_BYTES 33u /* length, one byte of name, n_dims, one dimension, type, offset */
#define STRING_MIN_BYTES 8u

static int bad_magic(const struct gguf_cursor *c, const unsigned char m[4], struct err *err)
{
    static const char *const old[] = {"lmgg", "fmgg", "tjgg", "algg"};

    for (size_t i = 0; i < ARRAY_LEN(old); i++)
        if (!memcmp(m, old[i], 4))
            return gguf_cursor_fail(c, err, ERR_UNSUPPORTED,
                                    "is a GGML file from before GGUF; convert it to GGUF first");
    return gguf_cursor_fail(c, err, ERR_FORMAT,
                            "is not a GGUF file: it starts with %02x %02x %02x %02x", m[0], m[1],
                            m[2], m[3]);
}

int gguf_read_head(struct gguf_cursor *c, struct gguf_head *ret_head, struct err *err)
{
    struct gguf_head h;
    unsigned char magic[4];
    int r;

    if (gguf_cursor_left(c) < 24)
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "is too short for a GGUF file: %" PRIu64 " bytes", c->end);
    r = gguf_cursor_read(c, magic, sizeof magic, err);
    if (r < 0)
        return r;
    if (memcmp(magic, "GGUF", 4) != 0)
        return bad_magic(c, magic, err);
    if ((r = gguf_cursor_u32(c, &h.version, err)) < 0 ||
        (r = gguf_cursor_u64(c, &h.n_tensors, err)) < 0 ||
        (r = gguf_cursor_u64(c, &h.n_values, err)) < 0)
        return r;
    if (h.version != 0 && (h.version & 0xffff) == 0)
        return gguf_cursor_fail(c, err, ERR_UNSUPPORTED,
                                "is a big-endian GGUF file; rnbd reads little-endian ones");
    if (h.version != 2 && h.version != 3)
        return gguf_cursor_fail(c, err, ERR_UNSUPPORTED,
                                "is of GGUF version %" PRIu32 "; rnbd reads versions 2 and 3",
                                h.version);
    if (h.n_values > gguf_cursor_left(c) / VALUE_MIN_BYTES || h.n_values > GGUF_MAX_VALUES)
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "says that it has %" PRIu64
                                " metadata keys, more than it can hold or "
                                "rnbd takes (%u)",
                                h.n_values, GGUF_MAX_VALUES);
    if (h.n_tensors > gguf_cursor_left(c) / TENSOR_MIN_BYTES || h.n_tensors > GGUF_MAX_TENSORS)
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "says that it has %" PRIu64
                                " tensors, more than it can hold or rnbd "
                                "takes (%u)",
                                h.n_tensors, GGUF_MAX_TENSORS);
    *ret_head = h;
    return 0;
}

static int check_bools(const struct gguf_cursor *c, const struct gguf_value *v, struct err *err)
{
    const unsigned char *b = v->data;

    for (size_t i = 0; i < v->n; i++)
        if (b[i] > 1)
            return gguf_cursor_fail(c, err, ERR_FORMAT, "key '%.*s' is a boolean of value %u",
                                    SHOWN(v->key), b[i]);
    return 0;
}

static int read_strings(struct gguf_cursor *c, struct gguf_store *s, struct gguf_value *v,
                        struct err *err)
{
    struct view *strings = gguf_store_alloc(s, v->n * sizeof *strings, _Alignof(struct view), err);

    if (!strings)
        return -ERR_NOMEM;
    for (size_t i = 0; i < v->n; i++) {
        int r = gguf_cursor_string(c, s, UINT64_MAX, "a string", &strings[i], err);

        if (r < 0)
            return r;
    }
    v->strings = strings;
    return 0;
}

static int read_numbers(struct gguf_cursor *c, struct gguf_store *s, struct gguf_value *v,
                        struct err *err)
{
    size_t bytes = v->n * gguf_type_bytes(v->elem_type);
    void *data = gguf_store_alloc(s, bytes, 8, err);
    int r = data ? gguf_cursor_read(c, data, bytes, err) : -ERR_NOMEM;

    if (r < 0)
        return r;
    v->data = data;
    return v->elem_type == GGUF_BOOL ? check_bools(c, v, err) : 0;
}

static int read_type(struct gguf_cursor *c, const struct gguf_value *v, enum gguf_type *ret_type,
                     struct err *err)
{
    uint32_t type;
    int r = gguf_cursor_u32(c, &type, err);

    if (r < 0)
        return r;
    if (type > GGUF_F64)
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "key '%.*s' has the unknown value type %" PRIu32, SHOWN(v->key),
                                type);
    *ret_type = (enum gguf_type)type;
    return 0;
}

/* Type, and for an array its element type and length, checked against the bytes left. */
static int read_array_head(struct gguf_cursor *c, struct gguf_value *v, struct err *err)
{
    uint64_t n, least;
    int r = read_type(c, v, &v->elem_type, err);

    if (r < 0)
        return r;
    if (v->elem_type == GGUF_ARRAY)
        return gguf_cursor_fail(c, err, ERR_UNSUPPORTED, "key '%.*s' is an array of arrays",
                                SHOWN(v->key));
    r = gguf_cursor_u64(c, &n, err);
    if (r < 0)
        return r;
    least = v->elem_type == GGUF_STRING ? STRING_MIN_BYTES : gguf_type_bytes(v->elem_type);
    if (n > gguf_cursor_left(c) / least)
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "key '%.*s' says that it is an array of %" PRIu64
                                " elements, but only %" PRIu64 " bytes are left",
                                SHOWN(v->key), n, gguf_cursor_left(c));
    v->n = (size_t)n;
    return 0;
}

static int read_value(struct gguf_cursor *c, struct gguf_store *s, struct gguf_value *v,
                      struct err *err)
{
    int r = gguf_cursor_string(c, s, GGUF_KEY_MAX, "a key", &v->key, err);

    if (r < 0)
        return r;
    if (v->key.len == 0)
        return gguf_cursor_fail(c, err, ERR_FORMAT, "has a metadata key without a name");
    if (!gguf_is_name(v->key))
        return gguf_cursor_fail(c, err, ERR_FORMAT, "has a metadata key that is not text");
    r = read_type(c, v, &v->type, err);
    if (r < 0)
        return r;
    v->elem_type = v->type;
    v->n = 1;
    if (v->type == GGUF_ARRAY) {
        r = read_array_head(c, v, err);
        if (r < 0)
            return r;
    }
    return v->elem_type == GGUF_STRING ? read_strings(c, s, v, err) : read_numbers(c, s, v, err);
}

int gguf_read_table(struct gguf_cursor *c, const struct gguf_head *h, struct gguf_store *s,
                    struct gguf_table *ret_table, struct err *err)
{
    struct gguf_table t = {.values = XNEW_ARRAY(struct gguf_value, (size_t)h->n_values + 1),
                           .by_key = map_create_borrowing()};
    int r = 0;

    for (; t.n < h->n_values; t.n++) {
        struct gguf_value *v = &t.values[t.n];

        r = read_value(c, s, v, err);
        if (r < 0)
            goto out;
        if (!map_add(t.by_key, v->key.p, v->key.len, v)) {
            r = gguf_cursor_fail(c, err, ERR_FORMAT, "has the metadata key '%.*s' twice",
                                 SHOWN(v->key));
            goto out;
        }
    }
    *ret_table = t;
    t = (struct gguf_table){0};
out:
    gguf_table_clear(&t);
    return r;
}

void gguf_table_clear(struct gguf_table *t)
{
    free(t->values);
    map_destroy(t->by_key, NULL);
    *t = (struct gguf_table){0};
}

const struct gguf_value *gguf_table_find(const struct gguf_table *t, const char *key)
{
    return map_gets(t->by_key, key);
}
