/*
 * tokenizer_priv - what the files of this room share.
 *
 * A tokenizer is a vocabulary (texts, attributes, scores, special ids: vocab.c)
 * and one encoder chosen by tokenizer.ggml.model.  Encoding goes
 *
 *     text + spans → fragments (special.c) → words (pretoken.c) → symbols
 *          merged pair by pair (merge.c) by rank (bpe.c) or score (spm.c)
 *
 * Everything in struct tokenizer is written before tokenizer_create returns
 * and never after.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/str.h"
#include "daemon/gguf/gguf.h"
#include "daemon/tokenizer/tokenizer.h"

/* Texts are encoded with 32-bit positions; a space may become three bytes. */
#define TOKENIZER_TEXT_MAX ((size_t)256 << 20)

/* What is known of a token; the types of the file and what its text adds to them. */
enum {
    ATTR_NORMAL = 1,
    ATTR_UNKNOWN = 2,
    ATTR_CONTROL = 4,
    ATTR_USER_DEFINED = 8,
    ATTR_UNUSED = 16,
    ATTR_BYTE = 32,
    ATTR_LSTRIP = 64,  /* white space to the left of it belongs to it */
    ATTR_RSTRIP = 128, /* and to the right */
    ATTR_EOG = 256,
    ATTR_SHOWN = 512, /* a control token whose text is always part of the output */
};

enum tokenizer_kind { KIND_SPM, KIND_BPE, KIND_WPM, KIND_UGM, KIND_RWKV };

/*
 * Byte strings with ids 0, 1, 2 …, and the way back.  Ids below n_vocab are
 * tokens; above are strings that only occur on the way to one (bpe.c).
 */
struct texts {
    char *pool;
    size_t pool_len, pool_cap;
    uint32_t *at; /* [n + 1] in pool */
    size_t n, at_cap;
    uint32_t *slots; /* id + 1, or 0; a power of two of them */
    size_t n_slots;
    uint64_t seed; /* differs from run to run, so that no file holds prepared collisions */
};

/* expect: how many, and their bytes together. */
void texts_init(struct texts *t, size_t expect, size_t bytes);
/* What so many take at most; what one more takes while arrays grow for it, 0: they need not. */
size_t texts_bytes_for(size_t n, size_t bytes);
size_t texts_bytes_to_add(const struct texts *t, size_t bytes);
void texts_clear(struct texts *t);
/* Appends under the next id; false when the text is there already (nothing is appended). */
bool texts_add(struct texts *t, struct view text);
void texts_add_hidden(struct texts *t, struct view text); /* has an id but is never found */
int32_t texts_find(const struct texts *t, struct view text);
struct view texts_at(const struct texts *t, size_t id);
size_t texts_bytes(const struct texts *t);
void texts_shrink(struct texts *t);

/* Some of the texts, sorted by their bytes: which of them stand at the start of a string? */
struct prefix_set {
    uint32_t *ids;
    size_t n;
    uint32_t first[257]; /* ids[first[b], first[b + 1]) begin with byte b */
};

/* The texts that begin with the bytes stepped over so far. */
struct prefix_walk {
    size_t lo, hi, depth;
};

/* The texts of t whose attributes are among mask; empty ones are left out. */
void prefix_build(struct prefix_set *p, const struct texts *t, const uint16_t *attrs, size_t n,
                  unsigned mask);
void prefix_clear(struct prefix_set *p);
/* One byte further; false when no text goes on so.  *ret_id: the one that ends here, or -1. */
bool prefix_step(const struct prefix_set *p, const struct texts *t, struct prefix_walk *w,
                 unsigned char byte, int32_t *ret_id);

struct bpe_merge {
    uint32_t left, right; /* ids of texts; left UINT32_MAX: empty slot */
    uint32_t rank;
    uint32_t whole;
};

struct charsmap;
struct pre_name;
struct pretoken;

struct tokenizer {
    enum tokenizer_kind kind;
    size_t n_vocab;
    const struct gguf_room *room; /* while it is read; NULL: none */
    struct texts texts;
    uint16_t *attrs; /* [n_vocab] */
    float *scores;   /* [n_vocab], or NULL */
    size_t max_token_len;

    int32_t bos, eos, unk, sep;
    bool add_bos, add_eos, add_space_prefix;
    bool words_apart;   /* spm.c: no token goes from one word into the next */
    bool escape_spaces; /* a space is written U+2581 in the vocabulary */
    bool clean_spaces;  /* decode takes back spaces before punctuation */
    int32_t byte_token[256];

    /* special.c: lengths distinct and falling */
    struct prefix_set specials;
    uint32_t *special_lens;
    size_t n_special_lens;

    /* bpe.c, pretoken.c */
    const struct pre_name *pre;
    struct pretoken *pretoken;
    bool ignore_merges;
    struct bpe_merge *merges; /* hash table by (left, right) */
    size_t n_merge_slots;
    int32_t byte_symbol[256]; /* id of the text that stands for a byte, or -1 */

    /* wpm.c */
    bool lowercase, strip_accents;

    /* ugm.c, rwkv.c */
    struct prefix_set words;
    struct charsmap *charsmap; /* NULL: none */
    bool merge_spaces;
    double unk_score;
};

/*
 * One encoding: where its ids go, and who is asked before it takes memory (work.c).  The first
 * failure stays: nothing is taken after it, and loops end when they see it.
 */
struct work {
    const struct token_room *room; /* NULL: nobody is asked */
    struct token_list *out;
    struct err *err;
    int failed;         /* 0, or what ended it */
    size_t asked, used; /* bytes of the room */
    unsigned steps;
};

/* Room for `need` elements in an array that work_free() takes; below 0: refused, and nothing has changed. */
#define WORK_GROW(w, p, need, cap)                                                                 \
    ((size_t)(need) <= (cap)                                                                       \
         ? (w)->failed                                                                             \
         : ((p) = work_grow((w), (p), (need), &(cap), sizeof *(p)), (w)->failed))
void *work_grow(struct work *w, void *p, size_t need, size_t *cap, size_t elem_bytes);
void work_free(struct work *w, void *p, size_t cap, size_t elem_bytes);
/* So many bytes more can be added to s before it grows. */
int work_text(struct work *w, struct str *s, size_t more);
void work_text_free(struct work *w, struct str *s);
/* One small step is done; below 0: no further. */
int work_step(struct work *w);
void work_add(struct work *w, int32_t id);
void work_end(struct work *w); /* out holds its ids, and the rest of the room goes back */

/* vocab.c */
int vocab_read(struct tokenizer *t, const struct gguf *g, struct err *err);
int vocab_read_specials(struct tokenizer *t, const struct gguf *g, struct err *err);
void vocab_set_attributes(struct tokenizer *t, const struct gguf *g, const char *pre);
/* The byte that the token "<0xNN>" stands for, or -1. */
int vocab_byte_of(struct view text);
int vocab_hex_digit(char c); /* -1: none */

/* bpe.c */
int bpe_read(struct tokenizer *t, const struct gguf *g, struct err *err);
size_t bpe_merges_bytes(size_t n); /* of the table of so many merges */
void bpe_encode(const struct tokenizer *t, struct view text, struct work *w);
/* Is there a token for every byte, so that none is left out? */
bool bpe_has_all_bytes(const struct tokenizer *t);
/* The character that stands for a byte in a byte-level vocabulary, and back (-1: none). */
unsigned bpe_char_of_byte(unsigned byte);
int bpe_byte_of_char(unsigned cp);

/* spm.c */
void spm_read(struct tokenizer *t);
/* after_special: the text begins a stretch that gets the prefix space. */
void spm_encode(const struct tokenizer *t, struct view text, bool after_special, struct work *w);

/* wpm.c */
int wpm_read(struct tokenizer *t, const struct gguf *g, struct err *err);
void wpm_encode(const struct tokenizer *t, struct view text, struct work *w);

/* ugm.c */
int ugm_read(struct tokenizer *t, const struct gguf *g, struct err *err);
void ugm_encode(const struct tokenizer *t, struct view text, struct work *w);

/* rwkv.c: the bytes that a token of the file stands for; false when one of its escapes is none. */
bool rwkv_unescape(struct view text, struct str *out);
int rwkv_read(struct tokenizer *t, struct err *err);
void rwkv_encode(const struct tokenizer *t, struct view text, struct work *w);
/* Is there a token for every byte, so that none is left out? */
bool rwkv_has_all_bytes(const struct tokenizer *t);

/* charsmap.c: SentencePiece's table of replacements, as it is in the file */
int charsmap_create(const struct gguf_value *v, struct charsmap **ret, struct err *err);
void charsmap_destroy(struct charsmap *c);
size_t charsmap_bytes(const struct charsmap *c);
size_t charsmap_bytes_for(size_t n); /* of so many bytes in the file, whatever they are */
/*
 * The replacement of the longest known start of text: its length in *ret_len
 * (0: none is known), and what stands for it.
 */
int charsmap_find(const struct charsmap *c, struct view text, size_t *ret_len,
                  struct view *ret_replacement, struct err *err);

/* pretoken.c */
struct pre_name {
    const char *name;
    const struct splitter *splitter;
    unsigned flags;
};

enum {
    PRE_IGNORE_MERGES = 1,  /* a word that is a token is that token */
    PRE_ADD_BOS = 2,        /* unless the file says otherwise */
    PRE_KEEP_SPACES = 4,    /* decode does not clean spaces */
    PRE_ESCAPE_SPACES = 8,  /* U+2581 for a space, as SentencePiece */
    PRE_RAW = 16,           /* symbols are characters, not bytes */
    PRE_NEWLINES_WHOLE = 32 /* a run of newlines that is a token is that token */
};

const struct pre_name *pretoken_find(struct view name); /* NULL when unknown */
int pretoken_create(const struct pre_name *pre, struct pretoken **ret, struct err *err);
void pretoken_destroy(struct pretoken *p);
size_t pretoken_bytes(const struct pretoken *p);
#define PRETOKEN_BYTES ((size_t)128 << 10) /* at most, of all that there are */

/* The ends of the words of a text, in order; the last is the text's length. */
struct word_ends {
    uint32_t *ends;
    size_t n, cap;
};

/* text is valid UTF-8 of at most 2^32 - 1 bytes; ret is {0}, and work_free() takes its ends. */
int pretoken_split(const struct pretoken *p, struct view text, struct work *w,
                   struct word_ends *ret);

/* special.c */
struct fragment {
    size_t from, to;
    int32_t id; /* -1: text */
};

struct fragments {
    struct fragment *list;
    size_t n, cap;
};

void specials_build(struct tokenizer *t);
void specials_split(const struct tokenizer *t, struct view text, const struct token_span *spans,
                    size_t n_spans, struct work *w, struct fragments *ret);
