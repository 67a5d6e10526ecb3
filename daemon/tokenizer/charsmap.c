/*
 * SentencePiece's precompiled normalisation: a trie of byte strings, each with
 * a replacement.  See charsmap_find in tokenizer_priv.h.
 *
 * In the file: the size of the trie in bytes (u32), the trie (u32 units), the
 * replacements, each with a zero byte at its end.  A unit of the double array
 * (as in Darts-clone) is
 *
 *     bits 0–7   the byte that leads here, bit 31 clear
 *     bit 8      a value hangs here, at the unit that the offset leads to
 *     bit 9      the offset is in steps of 256
 *     bits 10–30 offset: the unit of a child is this unit ^ offset ^ byte
 *
 * or, with bit 31, a value: where the replacement begins.
 */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/tokenizer/tokenizer_priv.h"

#define KEY "tokenizer.ggml.precompiled_charsmap"

struct charsmap {
    size_t n_units;
    struct view replacements;
    size_t bytes;
    unsigned char data[];
};

int charsmap_create(const struct gguf_value *v, struct charsmap **ret, struct err *err)
{
    struct charsmap *c;
    const unsigned char *p;
    size_t trie_bytes;

    if (v->type != GGUF_ARRAY || (v->elem_type != GGUF_U8 && v->elem_type != GGUF_I8))
        return err_set_param(err, ERR_FORMAT, KEY,
                             "metadata key '" KEY "' is not an array of bytes");
    p = v->data;
    trie_bytes = v->n < 4 ? 0 : p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
    if (v->n < 4 || trie_bytes > v->n - 4 || trie_bytes % 4 != 0 || trie_bytes == 0)
        return err_set_param(err, ERR_FORMAT, KEY,
                             "metadata key '" KEY "' is damaged: a trie of %zu "
                             "bytes in %zu",
                             trie_bytes, v->n);
    /* A replacement is read up to its zero byte. */
    if (v->n == 4 + trie_bytes || p[v->n - 1] != 0)
        return err_set_param(err, ERR_FORMAT, KEY,
                             "metadata key '" KEY "' is damaged: its last replacement has no end");
    c = xmalloc(charsmap_bytes_for(v->n));
    c->n_units = trie_bytes / 4;
    c->bytes = charsmap_bytes_for(v->n);
    memcpy(c->data, p + 4, v->n - 4);
    c->replacements = (struct view){(const char *)c->data + trie_bytes, v->n - 4 - trie_bytes};
    *ret = c;
    return 0;
}

void charsmap_destroy(struct charsmap *c)
{
    free(c);
}

size_t charsmap_bytes_for(size_t n)
{
    return sizeof(struct charsmap) + n;
}

size_t charsmap_bytes(const struct charsmap *c)
{
    return c->bytes;
}

/* A unit; beyond the end is one that nothing leads to. */
static uint32_t unit_at(const struct charsmap *c, size_t i)
{
    const unsigned char *p = c->data + 4 * i;

    if (i >= c->n_units)
        return UINT32_MAX;
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t offset_of(uint32_t unit)
{
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

int charsmap_find(const struct charsmap *c, struct view text, size_t *ret_len,
                  struct view *ret_replacement, struct err *err)
{
    size_t node = offset_of(unit_at(c, 0)), len = 0;
    uint32_t value = 0;

    for (size_t i = 0; i < text.len && text.p[i]; i++) {
        unsigned char byte = (unsigned char)text.p[i];
        uint32_t unit;

        node ^= byte;
        unit = unit_at(c, node);
        if ((unit & (1u << 31 | 0xff)) != byte)
            break;
        node ^= offset_of(unit);
        if (unit >> 8 & 1) {
            len = i + 1;
            value = unit_at(c, node) & 0x7fffffffu;
        }
    }
    *ret_len = len;
    if (!len)
        return 0;
    if (value >= c->replacements.len)
        return err_set_param(err, ERR_FORMAT, KEY,
                             "the tokenizer's " KEY
                             " points past its end; convert the model again");
    ret_replacement->p = c->replacements.p + value;
    ret_replacement->len = strlen(ret_replacement->p);
    return 0;
}
