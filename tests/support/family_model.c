/* Tiny files of every family; see family_model.h. */
#include "tests/support/family_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/model/model_priv.h"
#include "tests/support/noise.h"

const char *const family_names[] = {
#define ARCH(name) #name,
#include "gen/archs.def"
#undef ARCH
    NULL};

#define ARCH(name) extern const struct arch arch_##name;
#include "gen/archs.def"
#undef ARCH

static const struct arch *const archs[] = {
#define ARCH(name) &arch_##name,
#include "gen/archs.def"
#undef ARCH
};

enum kind {
    KIND_U32,
    KIND_F32,
    KIND_BOOL,
    KIND_LAYERS,
    KIND_WINDOWS,
    KIND_U32X4,
    KIND_FLAGS,
    KIND_LIMITS
};

static const struct {
    const char *name;
    enum kind kind;
    double lo, hi;
} keys[KEY_COUNT] = {
#define KEY(id, name, type, field, lo, hi) [KEY_##id] = {name, KIND_##type, lo, hi},
#include "daemon/model/keys.def"
#undef KEY
};

static const struct {
    const char *text;
    bool in_layer;
} names[TENSOR_COUNT] = {
#define NAME(id, text, in_layer, help) [TENSOR_##id] = {text, in_layer},
#include "daemon/model/names.def"
#undef NAME
};

static const char *const ends[PART_COUNT] = {".weight", ".bias", "", ".scale"};

static const struct {
    const char *family, *variant, *words;
} specs[] = {
#define FAMILY(family, words)           {#family, NULL, words},
#define VARIANT(family, variant, words) {#family, variant, words},
#include "tests/support/family_model.def"
#undef FAMILY
#undef VARIANT
};

/* Where no word of the family says otherwise; written only where the family needs the key. */
static const char needed[] =
    "context_length=4096 embedding_length=64 block_count=4 feed_forward_length=96 "
    "attention.head_count=4 attention.layer_norm_rms_epsilon=0.01 "
    "attention.layer_norm_epsilon=0.01 logit_scale=2 attention.sliding_window=16 "
    "attention.sliding_window_pattern=2 expert_count=4 expert_used_count=2 "
    "expert_feed_forward_length=32 shortconv.l_cache=3";
/* Written wherever the family reads the key. */
static const char usual[] = "attention.head_count_kv=2 vocab_size=80";

#define FIRST "least"
#define WORD  128

#define GGML_I32 26

struct maker {
    const struct family_file *o;
    const struct arch *arch;
    const char *family, *variant; /* words */
    bool odd;                     /* they may leave out what is needed */
    struct hparams hp;
    size_t n; /* things seen that can have the fault */
    struct gguf_writer *w;
    char *ret_name;
};

const char *family_variant(const char *family, size_t i)
{
    if (i == 0)
        return FIRST;
    for (size_t k = 0; k < ARRAY_LEN(specs); k++)
        if (strcmp(specs[k].family, family) == 0 && specs[k].variant && --i == 0)
            return specs[k].variant;
    return NULL;
}

static const char *words_of(const char *family, const char *variant)
{
    for (size_t i = 0; i < ARRAY_LEN(specs); i++)
        if (strcmp(specs[i].family, family) == 0 &&
            (variant ? specs[i].variant && strcmp(specs[i].variant, variant) == 0
                     : !specs[i].variant))
            return specs[i].words;
    if (!variant || strcmp(variant, FIRST) == 0)
        return "";
    fprintf(stderr, "family_model: '%s' has no variant '%s'\n", family, variant);
    exit(1);
}

/* The last word that begins as head does; ret gets what is behind that. */
static bool find_word(const char *words, const char *head, char end, char ret[WORD])
{
    size_t n = strlen(head);
    bool found = false;

    for (const char *p = words; *p; p += strcspn(p, " "), p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");

        if (len < n || memcmp(p, head, n) != 0 || (len > n ? p[n] != end : end != '\0'))
            continue;
        n += end != '\0';
        snprintf(ret, WORD, "%.*s", (int)(len - n), p + n);
        n -= end != '\0';
        found = true;
    }
    return found;
}

/* What the file says for a key; false when it does not have it. */
static bool key_word(const struct maker *k, const char *name, bool required, char ret[WORD])
{
    if (find_word(k->variant, name, '=', ret) || find_word(k->family, name, '=', ret))
        return ret[0] != '\0';
    if (find_word(usual, name, '=', ret))
        return true;
    if (required && k->o->numbers && find_word(k->o->numbers, name, '=', ret))
        return true;
    return required && find_word(needed, name, '=', ret);
}

static bool has_optional(const struct maker *k, const char *text)
{
    char head[WORD], rest[WORD];

    snprintf(head, sizeof head, "+%s", text);
    if (find_word(k->variant, head, '\0', rest) || find_word(k->variant, "+*", '\0', rest))
        return true;
    if (!find_word(k->family, head, '\0', rest))
        return false;
    head[0] = '-';
    return !find_word(k->variant, head, '\0', rest);
}

static void write_array(struct gguf_writer *w, const char *text, const char *word)
{
    uint32_t numbers[HPARAMS_MAX_LAYERS];
    bool flags[HPARAMS_MAX_LAYERS];
    bool are_flags = *word == 't' || *word == 'f';
    size_t n = 0;

    for (const char *p = word; *p; p += strcspn(p, ","), p += *p == ',') {
        flags[n] = *p == 't';
        numbers[n++] = (uint32_t)strtoul(p, NULL, 10);
    }
    if (are_flags)
        gguf_writer_array(w, text, GGUF_BOOL, flags, n);
    else
        gguf_writer_array(w, text, GGUF_U32, numbers, n);
}

/* A value of a key that no table has: by its looks. */
static void write_guessed(struct gguf_writer *w, const char *text, const char *word)
{
    if (strchr(word, ','))
        write_array(w, text, word);
    else if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
        gguf_writer_bool(w, text, *word == 't');
    else if (*word < '0' || *word > '9')
        gguf_writer_string(w, text, word);
    else if (strchr(word, '.'))
        gguf_writer_f32(w, text, strtof(word, NULL));
    else
        gguf_writer_u32(w, text, (uint32_t)strtoul(word, NULL, 10));
}

static bool is_float(enum key key)
{
    return keys[key].kind == KIND_F32 || keys[key].kind == KIND_LIMITS;
}

static void write_value(struct gguf_writer *w, const char *text, enum key key, const char *word)
{
    if (is_float(key) && !strchr(word, ','))
        gguf_writer_f32(w, text, strtof(word, NULL));
    else
        write_guessed(w, text, word);
}

/* A number outside; false when every number of the type is inside. */
static bool outside(enum key key, bool above, double *ret)
{
    if (keys[key].kind == KIND_BOOL || keys[key].kind == KIND_FLAGS)
        return false;
    if (is_float(key))
        *ret = above ? keys[key].hi * 10 : keys[key].lo - 1;
    else
        *ret = above ? keys[key].hi + 1 : keys[key].lo - 1;
    return is_float(key) || *ret <= UINT32_MAX;
}

/* false: this key cannot be wrong in that way. */
static bool write_wrong(struct gguf_writer *w, const char *text, enum key key, bool required,
                        enum family_fault fault)
{
    int64_t many[HPARAMS_MAX_LAYERS + 1] = {0};
    enum kind kind = keys[key].kind;
    double x;

    switch (fault) {
    case FAMILY_NO_KEY: return required;
    case FAMILY_WRONG_TYPE: gguf_writer_string(w, text, "many"); return true;
    case FAMILY_ABOVE:
    case FAMILY_BELOW:
        if (!outside(key, fault == FAMILY_ABOVE, &x))
            return false;
        many[0] = (int64_t)x;
        if (is_float(key))
            gguf_writer_f32(w, text, (float)x);
        else if (kind == KIND_U32X4)
            gguf_writer_array(w, text, GGUF_I64, many, 4);
        else
            gguf_writer_int(w, text, GGUF_I64, many[0]);
        return true;
    case FAMILY_NOT_A_NUMBER:
        if (is_float(key))
            gguf_writer_f32(w, text, NAN);
        return is_float(key);
    case FAMILY_WRONG_LENGTH:
        gguf_writer_array(w, text, GGUF_I64, many, ARRAY_LEN(many));
        return true;
    default: return false;
    }
}

static void write_key(struct maker *k, const struct key_row *row)
{
    bool of_key = k->o->fault >= FAMILY_NO_KEY;
    char text[96], word[WORD];

    snprintf(text, sizeof text, "%s.%s", k->arch->name, keys[row->key].name);
    if (of_key && k->n++ == k->o->which) {
        if (write_wrong(k->w, text, row->key, row->required, k->o->fault))
            snprintf(k->ret_name, 96, "%s", text);
        return;
    }
    if (key_word(k, keys[row->key].name, row->required, word))
        write_value(k->w, text, row->key, word);
    else if (row->required && !k->odd) {
        fprintf(stderr, "family_model: no value for %s\n", text);
        exit(1);
    }
}

/* Keys among the words that the family's table does not have. */
static void write_others(struct maker *k, const char *words, const char *later)
{
    for (const char *p = words; *p; p += strcspn(p, " "), p += strspn(p, " ")) {
        size_t len = strcspn(p, " "), head = strcspn(p, "=");
        char name[WORD], text[2 * WORD], word[WORD];

        if (head >= len || *p == '+')
            continue;
        snprintf(name, sizeof name, "%.*s", (int)head, p);
        if (strcmp(name, "routers") == 0)
            continue;
        if ((hparams_reads(k->arch, view_of(name)) && strcmp(name, "rope.scaling.type") != 0) ||
            find_word(later, name, '=', word) || !find_word(words, name, '=', word))
            continue;
        if (strncmp(name, "tokenizer.", 10) == 0)
            snprintf(text, sizeof text, "%s", name);
        else
            snprintf(text, sizeof text, "%s.%s", k->arch->name, name);
        write_guessed(k->w, text, word);
    }
}

static void write_keys(struct maker *k)
{
    gguf_writer_string(k->w, "general.architecture", k->arch->name);
    gguf_writer_string(k->w, "tokenizer.ggml.model", "none");
    for (size_t i = 0; i < k->arch->n_keys; i++)
        write_key(k, &k->arch->keys[i]);
    write_others(k, k->family, k->variant);
    write_others(k, k->variant, "");
}

/* Families that tell layers with experts by their router: those that the words say, else as the keys. */
static void place_routers(struct maker *k)
{
    char word[WORD];
    const char *p = word;

    if (!find_word(k->variant, "routers", '=', word))
        return;
    for (uint32_t i = 0; i < k->hp.n_layers; i++) {
        k->hp.layers[i].kind &= ~(unsigned)LAYER_MOE;
        if (*p == '1')
            k->hp.layers[i].kind |= LAYER_MOE;
        p += strcspn(p, ",");
        p += *p == ',';
    }
}

/* The numbers of a sound file: read from one whose tensors are only there to be counted. */
static int read_numbers(struct maker *k, struct err *err)
{
    const struct family_file *o = k->o, sound = {.numbers = o->numbers};
    const uint64_t one = 1;
    struct gguf_writer w = {0}, *to = k->w;
    struct gguf *g = NULL;
    char word[WORD], *path;
    int fd, r;

    k->o = &sound;
    k->w = &w;
    write_keys(k);
    key_word(k, "block_count", true, word);
    for (long i = 0; i < MIN(strtol(word, NULL, 10), HPARAMS_MAX_LAYERS); i++) {
        char text[48];

        snprintf(text, sizeof text, "blk.%ld.counted", i);
        gguf_writer_tensor(&w, text, 0, 1, &one, NULL);
    }
    fd = gguf_writer_memfd(&w);
    path = gguf_writer_fd_path(fd);
    r = gguf_open(path, &g, err);
    if (r >= 0)
        r = hparams_read(g, k->arch, 0, &k->hp, err);
    if (r >= 0)
        place_routers(k);
    gguf_close(g);
    free(path);
    close(fd);
    gguf_writer_clear(&w);
    k->o = o;
    k->w = to;
    return r;
}

/*
 * Means and spreads that keep values near 1: matrices by their rows, norms
 * round 1.  What decays is negative, what divides is positive.
 */
static void fill(const struct tensor_row *row, const char *text, size_t n, size_t n_row, float *x)
{
    uint64_t state = 2026;
    float mean = 0, spread = 0.3f;

    for (const char *p = text; *p; p++)
        state = state * 31 + (unsigned char)*p;
    if (row->name == TENSOR_TOKEN_EMBD)
        spread = 0.6f;
    else if (row->use >= USE_STACK && n > n_row)
        spread = 1.7f / sqrtf((float)n_row);
    else if (row->part == PART_BIAS)
        spread = row->name == TENSOR_SSM_DT ? 1.0f : 0.3f;
    else if (row->name == TENSOR_ATTN_SINKS || strstr(names[row->name].text, "conv"))
        spread = 1.0f;
    else
        mean = 1;
    for (size_t i = 0; i < n; i++) {
        x[i] = mean + spread * noise_value(&state);
        if (row->name == TENSOR_SSM_A)
            x[i] = -expf(x[i]);
        else if (row->name >= TENSOR_ROPE_FREQS && row->name <= TENSOR_ROPE_SHORT)
            x[i] = 1 + 3 * fabsf(x[i] - mean);
    }
}

/* Writes a tensor's numbers, rounded by a format where their rows are whole blocks of it. */
static void write_numbers(const struct maker *k, const struct tensor_row *row, const char *text,
                          unsigned n_dims, const uint64_t *dims)
{
    const struct format *f = k->o->fmt ? k->o->fmt : format_of(FORMAT_f32);
    size_t n = dims[0] * dims[1] * dims[2] * dims[3];
    float *x;
    void *packed;

    if (row->use < USE_STACK || n == dims[0] || dims[0] % f->block_elems != 0)
        f = format_of(FORMAT_f32);
    if (k->o->fault != FAMILY_SOUND) {
        gguf_writer_declare(k->w, text, 0, n_dims, dims);
        return;
    }
    x = XNEW_ARRAY(float, n);
    packed = xcalloc(n / f->block_elems, f->block_bytes);
    fill(row, text, n, dims[0], x);
    f->from_f32(x, packed, n);
    if (k->o->unpacked)
        f->to_f32(packed, x, n);
    gguf_writer_tensor(k->w, text, k->o->unpacked ? 0 : f->gguf_type, n_dims, dims,
                       k->o->unpacked ? x : packed);
    free(packed);
    free(x);
}

/* Of rows of n ids: each id once in a row. */
static void write_ids(const struct maker *k, const char *text, unsigned n_dims,
                      const uint64_t *dims)
{
    size_t n = dims[0] * dims[1];
    int32_t *ids;

    if (k->o->fault != FAMILY_SOUND) {
        gguf_writer_declare(k->w, text, GGML_I32, n_dims, dims);
        return;
    }
    ids = XNEW_ARRAY(int32_t, n);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)((i / dims[0] * 7 + i % dims[0]) % k->hp.n_expert);
    gguf_writer_tensor(k->w, text, GGML_I32, n_dims, dims, ids);
    free(ids);
}

static unsigned shape_of(const struct maker *k, const struct tensor_row *row, int layer,
                         uint64_t dims[4])
{
    unsigned n_dims = 1;

    for (unsigned d = 0; d < 4; d++) {
        dims[d] = model_dim(&k->hp, layer, row->dims[d]);
        n_dims = row->dims[d] != DIM_NONE ? d + 1 : n_dims;
    }
    return n_dims;
}

static void write_row(struct maker *k, const struct tensor_row *row, int layer, const char *text)
{
    bool of_tensor = k->o->fault > FAMILY_SOUND && k->o->fault < FAMILY_NO_KEY;
    uint64_t dims[4];
    unsigned n_dims = shape_of(k, row, layer, dims);

    if (row->name == TENSOR_TOKEN_TYPES)
        dims[1] = 2;
    if (of_tensor && k->n++ == k->o->which) {
        /* A router tells such families that a layer has experts: without it the layer is another. */
        bool silent = k->arch->moe_by_router && row->name == TENSOR_FFN_GATE_INP;

        if (k->o->fault == FAMILY_NO_TENSOR) {
            if (model_needs(row->need) && !silent)
                snprintf(k->ret_name, 96, "%s", text);
            return;
        }
        snprintf(k->ret_name, 96, "%s", text);
        if (k->o->fault == FAMILY_WRONG_FORMAT) {
            /* an id where weights are wanted, a weight where ids are */
            gguf_writer_declare(k->w, text, row->use == USE_IDS ? 0 : GGML_I32, n_dims, dims);
            return;
        }
        dims[0]++;
    }
    if (row->use == USE_IDS)
        write_ids(k, text, n_dims, dims);
    else
        write_numbers(k, row, text, n_dims, dims);
}

static bool is_there(const struct maker *k, const struct tensor_row *row, int layer)
{
    char text[WORD], before[WORD];

    if (!model_wants(&k->hp, layer, row))
        return false;
    snprintf(text, sizeof text, "%s%s", names[row->name].text, ends[row->part]);
    snprintf(before, sizeof before, "%s%s", names[row->other].text, ends[PART_WEIGHT]);
    if (row->other != row->name && has_optional(k, before))
        return false;
    return model_needs(row->need) || has_optional(k, text);
}

static void write_tensors(struct maker *k)
{
    for (size_t i = 0; i < k->arch->n_tensors; i++) {
        const struct tensor_row *row = &k->arch->tensors[i];
        const char *text = names[row->name].text, *end = ends[row->part];
        char name[96];

        if (!names[row->name].in_layer && is_there(k, row, -1)) {
            snprintf(name, sizeof name, "%s%s", text, end);
            write_row(k, row, -1, name);
        }
        for (int layer = 0; names[row->name].in_layer && layer < (int)k->hp.n_layers; layer++)
            if (is_there(k, row, layer)) {
                snprintf(name, sizeof name, "blk.%d.%s%s", layer, text, end);
                write_row(k, row, layer, name);
            }
    }
}

static void maker_init(struct maker *k, const struct family_file *o, struct gguf_writer *w)
{
    *k = (struct maker){.o = o, .w = w};
    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        if (strcmp(family_names[i], o->family) == 0)
            k->arch = archs[i];
    k->family = words_of(o->family, NULL);
    k->variant =
        o->variant && strcmp(o->variant, FIRST) != 0 ? words_of(o->family, o->variant) : "";
}

bool family_file_build(const struct family_file *o, struct gguf_writer *w, char ret_name[96])
{
    struct err err = {0};
    struct maker k;

    maker_init(&k, o, w);
    k.ret_name = ret_name;
    ret_name[0] = '\0';
    if (read_numbers(&k, &err) < 0) {
        fprintf(stderr, "family_model: %s %s: %s\n", o->family, o->variant ? o->variant : FIRST,
                err.text);
        exit(1);
    }
    write_keys(&k);
    write_tensors(&k);
    return o->fault == FAMILY_SOUND || o->which < k.n;
}

/* Values of all tensors of the file, no more than most + 1. */
static size_t count_values(const struct maker *k, size_t most)
{
    size_t sum = 0;

    for (size_t i = 0; i < k->arch->n_tensors; i++) {
        const struct tensor_row *row = &k->arch->tensors[i];
        bool in_layer = names[row->name].in_layer;

        for (int layer = in_layer ? 0 : -1; layer < (in_layer ? (int)k->hp.n_layers : 0); layer++) {
            uint64_t dims[4], n = 1;

            if (!is_there(k, row, layer))
                continue;
            shape_of(k, row, layer, dims);
            for (unsigned d = 0; d < 4; d++) {
                if (dims[d] > most / n)
                    return most + 1;
                n *= MAX(dims[d], 1);
            }
            sum += n;
            if (sum > most)
                return most + 1;
        }
    }
    return sum;
}

int family_file_build_odd(const struct family_file *o, const char *words, struct gguf_writer *w,
                          struct err *err)
{
    const size_t most = 1 << 20;
    struct maker k;
    char *all;
    int r;

    maker_init(&k, o, w);
    all = xasprintf("%s %s", k.variant, words);
    k.variant = all;
    k.odd = true;
    r = read_numbers(&k, err);
    if (r >= 0 && count_values(&k, most) > most)
        r = err_set(err, ERR_TOO_LARGE, "the tensors would have more than %zu values", most);
    if (r >= 0) {
        write_keys(&k);
        write_tensors(&k);
    }
    free(all);
    return r;
}
