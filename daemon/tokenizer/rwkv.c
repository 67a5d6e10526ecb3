/*
 * The vocabulary of RWKV: strings of any bytes, and always the longest that fits.
 * Files write the bytes with the escapes of Python: \t \n \r \xNN, and a backslash
 * before what stands for itself.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "daemon/tokenizer/tokenizer_priv.h"

/* The bytes of one escape at text[1 …]; how many characters it takes, 0: none that there is. */
static size_t unescape_one(struct view text, char *out)
{
    int high, low;

    if (text.len < 2)
        return 0;
    switch (text.p[1]) {
    case 't': *out = '\t'; return 2;
    case 'n': *out = '\n'; return 2;
    case 'r': *out = '\r'; return 2;
    case 'x': break;
    default: *out = text.p[1]; return 2;
    }
    high = text.len >= 4 ? vocab_hex_digit(text.p[2]) : -1;
    low = text.len >= 4 ? vocab_hex_digit(text.p[3]) : -1;
    *out = (char)(high * 16 + low);
    return high < 0 || low < 0 ? 0 : 4;
}

bool rwkv_unescape(struct view text, struct str *out)
{
    str_truncate(out, 0);
    for (size_t at = 0; at < text.len;) {
        char byte = text.p[at];
        size_t n = byte == '\\' ? unescape_one(view_sub(text, at, text.len), &byte) : 1;

        if (!n)
            return false;
        str_addc(out, byte);
        at += n;
    }
    return true;
}

int rwkv_read(struct tokenizer *t, struct err *err)
{
    prefix_build(&t->words, &t->texts, t->attrs, t->n_vocab,
                 ATTR_NORMAL | ATTR_USER_DEFINED | ATTR_BYTE);
    for (unsigned b = 0; b < 256 && t->unk < 0; b++) {
        const char byte = (char)b;

        if (texts_find(&t->texts, (struct view){&byte, 1}) < 0)
            return err_set_param(err, ERR_FORMAT, "tokenizer.ggml.tokens",
                                 "the tokenizer has no token for the byte 0x%02X and no unknown "
                                 "token (tokenizer.ggml.tokens)",
                                 b);
    }
    return 0;
}

bool rwkv_has_all_bytes(const struct tokenizer *t)
{
    for (unsigned b = 0; b < 256 && t->unk < 0; b++) {
        struct prefix_walk walk = {.hi = t->words.n};
        int32_t id;

        if (!prefix_step(&t->words, &t->texts, &walk, (unsigned char)b, &id) || id < 0)
            return false;
    }
    return true;
}

void rwkv_encode(const struct tokenizer *t, struct view text, struct work *w)
{
    for (size_t at = 0; at < text.len && work_step(w) == 0;) {
        struct prefix_walk walk = {.hi = t->words.n};
        int32_t best = t->unk, id;
        size_t len = 1;

        for (size_t to = at; to < text.len; to++) {
            if (!prefix_step(&t->words, &t->texts, &walk, (unsigned char)text.p[to], &id))
                break;
            if (id < 0)
                continue;
            best = id;
            len = to + 1 - at;
        }
        if (best >= 0)
            work_add(w, best);
        at += len;
    }
}
