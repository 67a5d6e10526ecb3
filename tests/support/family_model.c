/* A tiny file of any family; see family_model.h. */
#include "tests/support/family_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/model/model_priv.h"

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

enum kind { KIND_U32, KIND_F32, KIND_BOOL, KIND_LAYERS, KIND_WINDOWS, KIND_U32X4, KIND_FLAGS };

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

#define N_LAYERS 4

/* What a key is; keys that are not here are written only where a family needs them, as their least. */
static const struct {
    enum key key;
    double value;
} values[] = {
    {KEY_CONTEXT_LENGTH, FAMILY_N_CTX},
    {KEY_EMBEDDING_LENGTH, 64},
    {KEY_BLOCK_COUNT, N_LAYERS},
    {KEY_FEED_FORWARD_LENGTH, 96},
    {KEY_VOCAB_SIZE, FAMILY_N_VOCAB},
    {KEY_HEAD_COUNT, 4},
    {KEY_HEAD_COUNT_KV, 2},
    {KEY_RMS_EPS, 1e-5},
    {KEY_NORM_EPS, 1e-5},
    {KEY_LOGIT_SCALE, 2},
    {KEY_SWA_WINDOW, 16},
    {KEY_SWA_PATTERN, 2},
    {KEY_EXPERT_COUNT, 4},
    {KEY_EXPERT_USED_COUNT, 2},
    {KEY_EXPERT_FF, 32},
    {KEY_SHARED_FF, 48},
    {KEY_ROPE_DIMENSIONS, 8},
    {KEY_KEY_LENGTH, 16},
    {KEY_VALUE_LENGTH, 16},
    {KEY_KEY_LENGTH_SWA, 16},
    {KEY_VALUE_LENGTH_SWA, 16},
    {KEY_EMBEDDING_PER_LAYER, 8},
    {KEY_SSM_CONV, 4},
    {KEY_SSM_INNER, 64},
    {KEY_SSM_STATE, 16},
    {KEY_SSM_RANK, 4},
    {KEY_SSM_GROUPS, 2},
    {KEY_SHORTCONV, 3},
    {KEY_KDA_DIM, 16},
    {KEY_KV_LORA, 24},
    {KEY_INDEX_HEADS, 2},
    {KEY_INDEX_DIM, 16},
    {KEY_INDEX_TOP_K, 8},
};

/* Families whose numbers hang together in their own way. */
static const struct {
    const char *family;
    enum key key;
    double value;
} special[] = {
    {"deepseek32", KEY_HEAD_COUNT_KV, 1},
    {"deepseek32", KEY_Q_LORA, 20},
    {"deepseek32", KEY_KEY_LENGTH, 32},
    {"deepseek32", KEY_VALUE_LENGTH, 24},
    {"deepseek32", KEY_KEY_LENGTH_MLA, 24},
    {"deepseek32", KEY_VALUE_LENGTH_MLA, 16},
    {"glm-dsa", KEY_HEAD_COUNT_KV, 1},
    {"glm-dsa", KEY_Q_LORA, 20},
    {"glm-dsa", KEY_KEY_LENGTH, 32},
    {"glm-dsa", KEY_VALUE_LENGTH, 24},
    {"glm-dsa", KEY_KEY_LENGTH_MLA, 24},
    {"glm-dsa", KEY_VALUE_LENGTH_MLA, 16},
    {"deepseek2", KEY_HEAD_COUNT_KV, 4},
    {"kimi-linear", KEY_HEAD_COUNT_KV, 4},
    {"mistral4", KEY_HEAD_COUNT_KV, 4},
    {"nemotron_h", KEY_RMS_EPS, 1e-5},
    {"bert", KEY_POOLING, 1},
    {"nomic-bert", KEY_POOLING, 1},
    {"nemotron_h_moe", KEY_RMS_EPS, 1e-5},
};

static double value_of(const struct arch *a, enum key key)
{
    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        if (special[i].key == key && strcmp(special[i].family, a->name) == 0)
            return special[i].value;
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        if (values[i].key == key)
            return values[i].value;
    return keys[key].lo;
}

/* The least set of a family, and what all files have although a family could do without it. */
static bool is_written(const struct arch *a, const struct key_row *row)
{
    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        if (special[i].key == row->key && strcmp(special[i].family, a->name) == 0)
            return true;
    return row->required || row->key == KEY_HEAD_COUNT_KV || row->key == KEY_VOCAB_SIZE ||
           row->key == KEY_EXPERT_FF || row->key == KEY_SHARED_FF ||
           row->key == KEY_ROPE_DIMENSIONS;
}

static void write_value(struct gguf_writer *w, const char *text, enum key key, double value)
{
    uint32_t four[4] = {0};
    bool flags[N_LAYERS] = {0};

    switch (keys[key].kind) {
    case KIND_F32: gguf_writer_f32(w, text, (float)value); break;
    case KIND_BOOL: gguf_writer_bool(w, text, value != 0); break;
    case KIND_U32X4:
        for (int i = 0; i < 3; i++)
            four[i] = 4;
        gguf_writer_array(w, text, GGUF_U32, four, 4);
        break;
    case KIND_FLAGS: gguf_writer_array(w, text, GGUF_BOOL, flags, N_LAYERS); break;
    case KIND_U32:
    case KIND_LAYERS:
    case KIND_WINDOWS: gguf_writer_u32(w, text, (uint32_t)value); break;
    }
}

/* The nearest value outside; false when every number of the type is inside. */
static bool beyond(enum key key, double *ret)
{
    if (keys[key].kind == KIND_BOOL || keys[key].kind == KIND_U32X4 || keys[key].kind == KIND_FLAGS)
        return false;
    if (keys[key].kind == KIND_F32)
        *ret = keys[key].hi * 10;
    else
        *ret = keys[key].lo >= 1 ? keys[key].lo - 1 : keys[key].hi + 1;
    return *ret <= UINT32_MAX || keys[key].kind == KIND_F32;
}

static bool write_keys(const struct arch *a, enum family_fault fault, size_t which,
                       struct gguf_writer *w, char *ret_name)
{
    bool of_key = fault == FAMILY_WRONG_TYPE || fault == FAMILY_OUT_OF_RANGE;
    size_t n = 0;

    gguf_writer_string(w, "general.architecture", a->name);
    gguf_writer_string(w, "tokenizer.ggml.model", "none");
    for (size_t i = 0; i < a->n_keys; i++) {
        enum key key = a->keys[i].key;
        double value = value_of(a, key), outside;
        char text[96];

        if (!is_written(a, &a->keys[i]))
            continue;
        snprintf(text, sizeof text, "%s.%s", a->name, keys[key].name);
        if (!of_key || n++ != which) {
            write_value(w, text, key, value);
            continue;
        }
        snprintf(ret_name, 96, "%s", text);
        if (fault == FAMILY_WRONG_TYPE)
            gguf_writer_string(w, text, "many");
        else if (beyond(key, &outside))
            write_value(w, text, key, outside);
        else
            ret_name[0] = '\0';
    }
    return !of_key || which < n;
}

/* The numbers of a sound file: read from one whose tensors are only there to be counted. */
static struct hparams numbers_of(const struct arch *a)
{
    const uint64_t one = 1;
    struct gguf_writer w = {0};
    struct gguf *g = NULL;
    struct hparams hp;
    struct err err = {0};
    char unused[96], *path;
    int fd;

    write_keys(a, FAMILY_SOUND, 0, &w, unused);
    for (int i = 0; i < N_LAYERS; i++) {
        char text[32];

        snprintf(text, sizeof text, "blk.%d.counted", i);
        gguf_writer_tensor(&w, text, 0, 1, &one, NULL);
    }
    fd = gguf_writer_memfd(&w);
    path = gguf_writer_fd_path(fd);
    if (gguf_open(path, &g, &err) < 0 || hparams_read(g, a, 0, &hp, &err) < 0) {
        fprintf(stderr, "family_model: %s: %s\n", a->name, err.text);
        exit(1);
    }
    gguf_close(g);
    free(path);
    close(fd);
    gguf_writer_clear(&w);
    return hp;
}

/* Between -½ and ½, by a counter that starts anew with each tensor. */
static void write_numbers(struct gguf_writer *w, const char *text, unsigned n_dims,
                          const uint64_t *dims)
{
    size_t n = dims[0] * (n_dims > 1 ? dims[1] : 1) * (n_dims > 2 ? dims[2] : 1);
    float *x = XNEW_ARRAY(float, n);
    uint32_t state = (uint32_t)strlen(text) * 2654435761u;

    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u; /* Knuth's and Lewis's */
        x[i] = (float)(state >> 8) / 16777216.0f - 0.5f;
    }
    gguf_writer_tensor(w, text, 0, n_dims, dims, x);
    free(x);
}

static void write_row(const struct arch *a, const struct hparams *hp, const struct tensor_row *row,
                      int layer, enum family_fault fault, size_t which, size_t *n,
                      struct gguf_writer *w, char *ret_name)
{
    static const char *const ends[PART_COUNT] = {".weight", ".bias", "", ".scale"};
    bool of_tensor = fault == FAMILY_NO_TENSOR || fault == FAMILY_WRONG_SHAPE;
    uint64_t dims[3];
    unsigned n_dims = 1;
    char text[96];

    for (unsigned d = 0; d < 3; d++) {
        dims[d] = model_dim(hp, layer, row->dims[d]);
        n_dims = row->dims[d] != DIM_NONE ? d + 1 : n_dims;
    }
    if (layer < 0)
        snprintf(text, sizeof text, "%s%s", names[row->name].text, ends[row->part]);
    else
        snprintf(text, sizeof text, "blk.%d.%s%s", layer, names[row->name].text, ends[row->part]);
    if (of_tensor && (*n)++ == which) {
        /* A router tells such families that a layer has experts: without it the layer is another. */
        bool silent = a->moe_by_router && row->name == TENSOR_FFN_GATE_INP;

        snprintf(ret_name, 96, "%s", silent && fault == FAMILY_NO_TENSOR ? "" : text);
        if (fault == FAMILY_NO_TENSOR)
            return;
        dims[0]++;
    }
    write_numbers(w, text, n_dims, dims);
}

bool family_model_build(const char *family, enum family_fault fault, size_t which,
                        struct gguf_writer *w, char ret_name[96])
{
    const struct arch *a = NULL;
    struct hparams hp;
    bool there;
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        if (strcmp(family_names[i], family) == 0)
            a = archs[i];
    ret_name[0] = '\0';
    hp = numbers_of(a);
    there = write_keys(a, fault, which, w, ret_name);
    for (size_t i = 0; i < a->n_tensors; i++) {
        const struct tensor_row *row = &a->tensors[i];
        int from = names[row->name].in_layer ? 0 : -1;
        int to = names[row->name].in_layer ? (int)hp.n_layers : 0;

        for (int layer = from; layer < to; layer++)
            if (model_needs(row->need) && model_wants(&hp, layer, row))
                write_row(a, &hp, row, layer, fault, which, &n, w, ret_name);
    }
    if (fault == FAMILY_NO_TENSOR || fault == FAMILY_WRONG_SHAPE)
        return which < n;
    return there;
}
