/* Opening, closing and describing a model; running a batch.  See model.h. */

#include "daemon/model/model.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/thread.h"
#include "common/utf8.h"
#include "daemon/model/model_priv.h"

/* A name is for people: one that is longer is as long as the file likes, which nobody has charged. */
#define NAME_MAX_BYTES ((size_t)255)

/* At most so many bytes, and no part of a character at the end of them. */
static struct view cut(struct view text, size_t most)
{
    if (text.len > most)
        text.len = most - utf8_incomplete_tail(text.p, most);
    return text;
}

/* A string of the file as it is kept: what stands behind a zero byte would be held and never read. */
static struct view up_to_zero(struct view text)
{
    return (struct view){text.p, strnlen(text.p, text.len)};
}

/* "x.gguf" of a path, without the end. */
static char *name_of_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = xstrdup(slash ? slash + 1 : path);
    size_t n = strlen(name);

    if (n > 5 && strcmp(name + n - 5, ".gguf") == 0)
        name[n - 5] = '\0';
    return name;
}

static int read_arch(struct model *m, struct err *err)
{
    struct view name = {0};
    struct str known = {0};
    int r = gguf_get_string(m->g, "general.architecture", &name, err);
    size_t n;

    if (r < 0)
        return r;
    if (r == 0)
        return err_set_param(err, ERR_FORMAT, "general.architecture",
                             "the file does not name an architecture ('general.architecture')");
    m->arch = arch_find(name);
    if (m->arch)
        return 0;
    n = arch_names_like(name, &known);
    r = err_set_param(err, ERR_UNSUPPORTED, "general.architecture",
                      "architecture '%.*s' is not supported; of the %zu that are, these have names "
                      "like it: %s",
                      (int)MIN(name.len, 60), name.p, n, known.len ? str_text(&known) : "none");
    str_clear(&known);
    return r;
}

/* reserve of a gguf_room */
static int charge(void *arg, size_t bytes, struct err *err)
{
    struct model *m = arg;
    int r;

    do
        r = ledger_reserve(m->room.ledger, POOL_RAM, ACCOUNT_TEXT, bytes, m->room_who, err);
    while (r == -ERR_NOMEM && m->room.make && m->room.make(m->room.arg, bytes));
    if (r >= 0)
        m->text_charged += bytes;
    return r;
}

static int charge_if_asked(struct model *m, size_t bytes, struct err *err)
{
    return m->room.ledger ? charge(m, bytes, err) : 0;
}

/* From what it may take at most while it is made to what it takes. */
static int settle(struct model *m, struct err *err)
{
    size_t is = model_text_bytes(m);

    if (!m->room.ledger)
        return 0;
    m->text_asked = m->text_charged;
    if (m->text_charged < is)
        return charge(m, is - m->text_charged, err);
    ledger_release(m->room.ledger, POOL_RAM, ACCOUNT_TEXT, m->text_charged - is);
    m->text_charged = is;
    return 0;
}

static int read_text(struct model *m, const struct gguf_room *room, struct err *err)
{
    struct view text = {0};
    int r = gguf_get_string(m->g, "tokenizer.chat_template", &text, err);

    if (r > 0)
        text = up_to_zero(text);
    if (r > 0)
        r = charge_if_asked(m, text.len + 1, err) < 0 ? -ERR_NOMEM : r;
    if (r < 0)
        return r;
    if (r > 0)
        m->chat_template = view_dup(text);
    text = (struct view){0};
    if (gguf_get_string(m->g, "general.name", &text, NULL) > 0)
        text = cut(up_to_zero(text), NAME_MAX_BYTES);
    if (text.len)
        m->name = view_dup(text);
    else
        m->name = name_of_path(gguf_path(m->g, 0));
    return tokenizer_create_within(m->g, room, &m->tokenizer, err);
}

int model_open(const char *path, struct model **ret, struct err *err)
{
    static const struct model_room none;

    return model_open_within(path, &none, ret, err);
}

int model_open_within(const char *path, const struct model_room *room, struct model **ret,
                      struct err *err)
{
    struct model *m = XNEW(struct model);
    const struct gguf_room asked = {charge, m};
    const struct gguf_room *g = room->ledger ? &asked : NULL;
    int r;

    m->room = *room;
    m->room_who = xstrdup(room->who);
    /* what is held is counted in whole pages */
    r = charge_if_asked(m, alloc_page_round(1), err);
    if (r >= 0)
        r = gguf_open_within(path, g, &m->g, err);
    if (r >= 0)
        r = read_arch(m, err);
    if (r >= 0)
        r = read_text(m, g, err);
    if (r >= 0)
        r = hparams_read(m->g, m->arch, m->tokenizer ? tokenizer_n_vocab(m->tokenizer) : 0, &m->hp,
                         err);
    if (r >= 0)
        r = charge_if_asked(m, model_bind_bytes(m), err);
    if (r >= 0)
        r = model_bind(m, err);
    if (r >= 0)
        r = settle(m, err);
    m->room.make = NULL;
    if (r < 0)
        model_close(m);
    else
        *ret = m;
    return r < 0 ? r : 0;
}

void model_know_as(struct model *m, const char *name)
{
    free(m->known_as);
    m->known_as = xstrdup(name);
}

void model_close(struct model *m)
{
    if (!m)
        return;
    model_unload(m);
    free(m->weights);
    free(m->bound);
    free(m->chat_template);
    free(m->name);
    free(m->known_as);
    tokenizer_destroy(m->tokenizer);
    gguf_close(m->g);
    if (m->room.ledger)
        ledger_release(m->room.ledger, POOL_RAM, ACCOUNT_TEXT, m->text_charged);
    free(m->room_who);
    free(m);
}

const struct gguf *model_gguf(const struct model *m)
{
    return m->g;
}

const struct tokenizer *model_tokenizer(const struct model *m)
{
    return m->tokenizer;
}

bool model_loaded(const struct model *m)
{
    return m->loaded;
}

size_t model_n_ctx(const struct model *m)
{
    return m->n_ctx;
}

size_t model_n_batch(const struct model *m)
{
    return m->n_batch;
}

struct sequence *model_sequence(struct model *m)
{
    return m->sequence;
}

void model_residency(const struct model *m, struct residency_stats *ret)
{
    *ret = (struct residency_stats){0};
    if (m->residency)
        residency_stats(m->residency, ret);
}

/* The format of most bytes, in the spelling that people know ("Q4_K"). */
static void main_type(const struct model *m, char *out, size_t cap)
{
    uint64_t bytes[FORMAT_COUNT] = {0};
    enum format_id most = 0;
    size_t i;

    for (i = 0; i < m->n_bound; i++)
        bytes[format_id_of(m->bound[i]->fmt)] += m->bound[i]->bytes;
    for (int f = 1; f < FORMAT_COUNT; f++)
        if (bytes[f] > bytes[most])
            most = f;
    snprintf(out, cap, "%s", format_of(most)->name);
    for (i = 0; out[i]; i++)
        out[i] = (char)toupper((unsigned char)out[i]);
}

static void read_sampling(const struct gguf *g, struct model_sampling *s)
{
    uint32_t top_k = 0;

    /* A value that is out of range is not used: these are only defaults. */
    s->has_temperature =
        gguf_get_f32(g, "general.sampling.temp", 0.0f, 100.0f, &s->temperature, NULL) > 0;
    s->has_top_k = gguf_get_u32(g, "general.sampling.top_k", 0, INT32_MAX, &top_k, NULL) > 0;
    s->top_k = (int32_t)top_k;
    s->has_top_p = gguf_get_f32(g, "general.sampling.top_p", 0.0f, 1.0f, &s->top_p, NULL) > 0;
    s->has_min_p = gguf_get_f32(g, "general.sampling.min_p", 0.0f, 1.0f, &s->min_p, NULL) > 0;
    s->has_repeat_penalty = gguf_get_f32(g, "general.sampling.penalty_repeat", 0.0f, 100.0f,
                                         &s->repeat_penalty, NULL) > 0;
}

void model_info(const struct model *m, struct model_info *ret)
{
    const struct hparams *hp = &m->hp;
    const struct format *kv = m->kv ? m->kv : format_of(FORMAT_f16);
    struct view name;

    *ret = (struct model_info){
        .arch = m->arch->name,
        .file_bytes = gguf_file_bytes(m->g),
        .n_ctx_train = hp->n_ctx_train,
        .n_layers = hp->n_layers,
        .n_embd = hp->n_embd,
        .n_vocab = hp->n_vocab,
        .n_heads = hp->n_heads,
        .n_kv_heads = hp->n_kv_heads,
        .n_experts = hp->n_expert,
        .n_experts_used = hp->n_expert_used,
        .kv_bytes_per_token = model_kv_bytes_per_token(m, kv),
        .state_bytes = model_state_bytes(m, kv),
        .chat_template = m->chat_template,
        .has_tokenizer = m->tokenizer != NULL,
        .pooling = pooling_name((enum pooling)hp->pooling),
    };
    name = cut(view_of(m->name), sizeof ret->name - 1);
    snprintf(ret->name, sizeof ret->name, "%.*s", (int)name.len, name.p);
    main_type(m, ret->type, sizeof ret->type);
    for (size_t i = 0; i < m->n_bound; i++)
        ret->n_params += m->bound[i]->dims[0] * m->bound[i]->dims[1] * m->bound[i]->dims[2] *
                         m->bound[i]->dims[3];
    read_sampling(m->g, &ret->sampling);
}

static int check_batch(const struct model *m, const int32_t *ids, size_t n, const int32_t *rows_out,
                       size_t n_out, struct err *err)
{
    size_t used = sequence_length(m->sequence);

    if (!n || n > m->n_batch)
        return err_set(err, ERR_INVALID, "a batch of %zu ids; it must be 1 to %zu", n, m->n_batch);
    if (n_out > m->n_out)
        return err_set(err, ERR_INVALID,
                       "logits of %zu rows are wanted; one call gives at most %zu", n_out,
                       m->n_out);
    if (n > m->n_ctx - used)
        return err_set(
            err, ERR_TOO_LARGE,
            "%zu tokens do not fit behind the %zu in a context of %zu; shorten the prompt or "
            "load with a larger context",
            n, used, m->n_ctx);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= m->hp.n_vocab)
            return err_set(err, ERR_INVALID, "token id %d is outside the vocabulary of %u", ids[i],
                           m->hp.n_vocab);
    for (size_t i = 0; i < n_out; i++)
        if (rows_out[i] < 0 || (size_t)rows_out[i] >= n || (i && rows_out[i] <= rows_out[i - 1]))
            return err_set(err, ERR_INVALID,
                           "row %d is not in ascending order within the batch of %zu", rows_out[i],
                           n);
    return 0;
}

void model_set_tick(struct model *m, void (*tick)(void *arg), void *arg)
{
    m->place.tick = tick;
    m->place.tick_arg = arg;
}

int model_eval(struct model *m, const int32_t *ids, size_t n, const int32_t *rows_out, size_t n_out,
               const _Atomic bool *cancel, const float **ret_logits, struct err *err)
{
    struct op_run run = {
        .tokens = ids, .rows = n, .rows_out = rows_out, .n_out = n_out, .cancel = cancel};
    const float *logits;
    int r;

    thread_assert(THREAD_ENGINE);
    if (!m->loaded)
        return err_set(err, ERR_INTERNAL, "model '%s' is used before it is loaded", m->name);
    r = check_batch(m, ids, n, rows_out, n_out, err);
    if (r < 0)
        return r;
    run.pos = sequence_length(m->sequence);
    r = program_run(m->program, &m->place, &run, &logits, err);
    if (r < 0) {
        sequence_spoiled(m->sequence, n);
        return r;
    }
    sequence_append(m->sequence, ids, n);
    if (ret_logits)
        *ret_logits = logits;
    return 0;
}
