/* Traces of expert choices, written and read.  See trace.h. */

#include "daemon/memory/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"

static const char magic[8] = "RNBDTRC1";

struct trace_writer {
    FILE *file;
    char *path;
    struct trace_shape shape;
    uint8_t *record; /* kind, then ids */
    size_t record_bytes;
    uint64_t n_tokens;
    bool begun; /* a layer has chosen for the token in progress */
    int errnum; /* of the first write that failed */
};

static void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, v & 0xffff);
    put16(p + 2, v >> 16);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void write_bytes(struct trace_writer *t, const void *p, size_t n)
{
    if (!t->errnum && fwrite(p, 1, n, t->file) != n)
        t->errnum = errno ? errno : EIO;
}

static void empty_record(struct trace_writer *t)
{
    memset(t->record, 0xff, t->record_bytes); /* TRACE_NONE */
}

static bool shape_is_sane(const struct trace_shape *s)
{
    return s->n_layers >= 1 && s->n_layers <= TRACE_LAYERS_MAX && s->n_experts >= 1 &&
           s->n_experts <= TRACE_EXPERTS_MAX && s->n_used >= 1 && s->n_used <= s->n_experts;
}

static size_t record_bytes_of(const struct trace_shape *s)
{
    return 1 + (size_t)s->n_layers * s->n_used * sizeof(uint16_t);
}

int trace_writer_open(const char *path, const struct trace_shape *shape, struct trace_writer **ret,
                      struct err *err)
{
    struct trace_writer *t;
    uint8_t head[16];
    uint32_t n_name = (uint32_t)strnlen(shape->model, sizeof shape->model);
    FILE *file;

    if (!shape_is_sane(shape))
        return err_set(err, ERR_UNPROCESSABLE,
                       "model '%s' has no experts whose use could be traced", shape->model);
    file = fopen(path, "we");
    if (!file)
        return err_set_errno(err, ERR_IO, errno, "writing trace '%s' failed", path);
    t = XNEW(struct trace_writer);
    t->file = file;
    t->path = xstrdup(path);
    t->shape = *shape;
    t->record_bytes = record_bytes_of(shape);
    t->record = xmalloc(t->record_bytes);
    empty_record(t);
    put32(head, shape->n_layers);
    put32(head + 4, shape->n_experts);
    put32(head + 8, shape->n_used);
    put32(head + 12, n_name);
    write_bytes(t, magic, sizeof magic);
    write_bytes(t, head, sizeof head);
    write_bytes(t, shape->model, n_name);
    *ret = t;
    return 0;
}

void trace_writer_layer(struct trace_writer *t, unsigned layer, const int32_t *ids, unsigned n)
{
    uint8_t *p = t->record + 1 + (size_t)layer * t->shape.n_used * 2;

    if (layer >= t->shape.n_layers)
        return;
    t->begun = true;
    for (unsigned i = 0; i < MIN(n, t->shape.n_used); i++)
        put16(p + (size_t)i * 2, (unsigned)ids[i]);
}

static int failed(const struct trace_writer *t, struct err *err)
{
    return err_set_errno(err, ERR_IO, t->errnum, "writing trace '%s' failed", t->path);
}

int trace_writer_token(struct trace_writer *t, bool prefill, struct err *err)
{
    if (!t->begun)
        return 0;
    t->begun = false;
    t->record[0] = prefill ? 'p' : 'd';
    write_bytes(t, t->record, t->record_bytes);
    empty_record(t);
    if (t->errnum)
        return failed(t, err);
    t->n_tokens++;
    return 0;
}

uint64_t trace_writer_tokens(const struct trace_writer *t)
{
    return t->n_tokens;
}

int trace_writer_close(struct trace_writer *t, struct err *err)
{
    int r = 0;

    if (!t)
        return 0;
    if (fclose(t->file) != 0 && !t->errnum)
        t->errnum = errno;
    if (t->errnum)
        r = failed(t, err);
    free(t->path);
    free(t->record);
    free(t);
    return r;
}

/* Header at p; returns its length, or 0 for what is none. */
static size_t parse_head(const uint8_t *p, size_t n, struct trace_shape *s)
{
    uint32_t n_name;

    if (n < 24 || memcmp(p, magic, sizeof magic) != 0)
        return 0;
    n_name = get32(p + 20);
    s->n_layers = get32(p + 8);
    s->n_experts = get32(p + 12);
    s->n_used = get32(p + 16);
    if (!shape_is_sane(s) || n_name >= sizeof s->model || n - 24 < n_name)
        return 0;
    memcpy(s->model, p + 24, n_name);
    s->model[n_name] = '\0';
    return 24 + (size_t)n_name;
}

/* One record's ids; false when one of them is no expert. */
static bool parse_record(const uint8_t *p, const struct trace_shape *s, uint16_t *ret_ids)
{
    size_t n = (size_t)s->n_layers * s->n_used;

    for (size_t i = 0; i < n; i++) {
        unsigned id = p[1 + 2 * i] | (unsigned)p[2 + 2 * i] << 8;

        if (id >= s->n_experts && id != TRACE_NONE)
            return false;
        ret_ids[i] = (uint16_t)id;
    }
    return p[0] == 'd' || p[0] == 'p';
}

int trace_read(const char *path, size_t max_bytes, struct trace *ret, struct err *err)
{
    struct trace t = {0};
    struct str text = {0};
    const uint8_t *p;
    size_t head, record, n_ids;
    int r = file_read_all(path, max_bytes, &text, err);

    if (r < 0)
        goto out;
    p = (const uint8_t *)str_text(&text);
    head = parse_head(p, text.len, &t.shape);
    if (!head) {
        r = err_set(err, ERR_FORMAT, "'%s' is no trace of expert choices", path);
        goto out;
    }
    record = record_bytes_of(&t.shape);
    n_ids = (size_t)t.shape.n_layers * t.shape.n_used;
    t.n_tokens = (text.len - head) / record;
    t.prefill = xcalloc(MAX(t.n_tokens, 1), 1);
    t.ids = xcalloc(MAX(t.n_tokens, 1), n_ids * sizeof *t.ids);
    for (size_t i = 0; i < t.n_tokens; i++) {
        if (!parse_record(p + head + i * record, &t.shape, t.ids + i * n_ids)) {
            r = err_set(err, ERR_FORMAT, "trace '%s' is damaged at token %zu", path, i);
            goto out;
        }
        t.prefill[i] = p[head + i * record] == 'p';
    }
    *ret = t;
    t = (struct trace){0};
    r = 0;
out:
    trace_clear(&t);
    str_clear(&text);
    return r;
}

void trace_clear(struct trace *t)
{
    free(t->prefill);
    free(t->ids);
    *t = (struct trace){0};
}
