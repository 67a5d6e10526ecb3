/* A model file, byte by byte; see verify.h. */
#include "daemon/engine/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/alloc.h"
#include "common/file.h"
#include "common/json.h"
#include "common/sha256.h"
#include "daemon/engine/describe.h"
#include "daemon/engine/engine_priv.h"

#define CHUNK_BYTES ((size_t)4 << 20) /* read at once */
#define STEP_BYTES  ((size_t)32 << 20)
#define DECODED     4096 /* values looked at together; a multiple of every block */
#define FINDINGS    50   /* told of; more would only hide the first */

/* More than the kernel reads ahead: 128 KiB, or some MiB where a drive or a file system asks for it. */
#define READ_AHEAD_MOST ((uint64_t)16 << 20)

struct verify {
    struct look look;
    const struct gguf *g;
    const struct gguf_tensor **tensors; /* in the order of their bytes */
    size_t n_tensors, next;             /* next: the one that is read, or comes */
    unsigned part;
    uint64_t at, part_bytes; /* of the part that is read */
    uint64_t done_before;    /* of the parts before it */
    struct sha256 digest;
    json_t *parts, *findings;
    size_t n_findings;
    unsigned char *chunk;
    float *values;
    /* Of the tensor that is read. */
    uint64_t n_wrong, first_wrong;
    bool some; /* a value that is not zero */
};

static void finding(struct verify *v, const struct gguf_tensor *t, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void finding(struct verify *v, const struct gguf_tensor *t, const char *fmt, ...)
{
    struct str s = {0};
    va_list ap;

    if (v->n_findings++ >= FINDINGS)
        return;
    str_addf(&s, "tensor '%.*s' ", (int)MIN(t->name.len, 200), t->name.p);
    va_start(ap, fmt);
    str_vaddf(&s, fmt, ap);
    va_end(ap);
    json_array_append_new(v->findings, json_text(str_text(&s), s.len));
    str_clear(&s);
}

/* -- opening ------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *y = *(const struct gguf_tensor *const *)b;

    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int begin_part(struct verify *v, struct err *err)
{
    struct stat st;

    if (fstat(gguf_fd(v->g, v->part), &st) < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot look at '%s'", gguf_path(v->g, v->part));
    v->at = 0;
    v->part_bytes = (uint64_t)st.st_size;
    sha256_init(&v->digest);
    return 0;
}

static int begin(struct engine *e, struct job *j, struct err *err)
{
    const size_t bytes = CHUNK_BYTES + DECODED * sizeof(float);
    struct verify *v;
    struct look l;
    int r = look_open(e, j, &l, err);

    if (r < 0)
        return r;
    r = ledger_reserve(l.ledger, POOL_RAM, ACCOUNT_STAGING, bytes, "reading a model file", err);
    if (r < 0) {
        look_close(&l);
        return r;
    }
    v = XNEW(struct verify);
    v->look = l;
    v->g = model_gguf(l.model);
    v->n_tensors = gguf_n_tensors(v->g);
    v->tensors = XNEW_ARRAY(const struct gguf_tensor *, v->n_tensors);
    for (size_t i = 0; i < v->n_tensors; i++)
        v->tensors[i] = gguf_tensor_at(v->g, i);
    qsort(v->tensors, v->n_tensors, sizeof(*v->tensors), by_place);
    v->parts = json_array();
    v->findings = json_array();
    v->chunk = xmalloc(CHUNK_BYTES);
    v->values = XNEW_ARRAY(float, DECODED);
    j->verify = v;
    return begin_part(v, err);
}

/* What was read is not asked for again soon, and would count as memory of the daemon's. */
static void forget(const struct verify *v)
{
    if (v->part < gguf_parts(v->g))
        posix_fadvise(gguf_fd(v->g, v->part), 0, (off_t)(v->at + READ_AHEAD_MOST),
                      POSIX_FADV_DONTNEED);
}

void verify_destroy(struct verify *v)
{
    if (!v)
        return;
    forget(v); /* it may have been cancelled, or have failed, in the middle of a part */
    ledger_release(v->look.ledger, POOL_RAM, ACCOUNT_STAGING,
                   CHUNK_BYTES + DECODED * sizeof(float));
    look_close(&v->look);
    free(v->tensors);
    json_decref(v->parts);
    json_decref(v->findings);
    free(v->chunk);
    free(v->values);
    free(v);
}

/* -- values -------------------------------------------------------------------------------- */

static void look_at_values(struct verify *v, const struct gguf_tensor *t, size_t n)
{
    const struct format *f = t->fmt;
    uint64_t from = (v->at - t->offset) / f->block_bytes * f->block_elems;
    size_t elems = n / f->block_bytes * f->block_elems;

    for (size_t at = 0; at < elems; at += DECODED) {
        size_t k = MIN(elems - at, (size_t)DECODED);

        f->to_f32(v->chunk + at / f->block_elems * f->block_bytes, v->values, k);
        for (size_t i = 0; i < k; i++) {
            if (!isfinite(v->values[i]) && v->n_wrong++ == 0)
                v->first_wrong = from + at + i;
            v->some = v->some || v->values[i] != 0.0f;
        }
    }
}

static void end_tensor(struct verify *v, const struct gguf_tensor *t)
{
    if (v->n_wrong)
        finding(v, t, "has %llu values that are no numbers, the first in row %llu, column %llu",
                (unsigned long long)v->n_wrong, (unsigned long long)(v->first_wrong / t->dims[0]),
                (unsigned long long)(v->first_wrong % t->dims[0]));
    else if (!v->some && t->n_dims > 1)
        finding(v, t, "is zero throughout, as after a download that was cut off");
    v->n_wrong = 0;
    v->some = false;
    v->next++;
}

/* -- reading ------------------------------------------------------------------------------- */

/* Whole blocks of the tensor that stands here, or what is between tensors. */
static size_t next_bytes(const struct verify *v, const struct gguf_tensor **ret_tensor)
{
    const struct gguf_tensor *t = v->next < v->n_tensors ? v->tensors[v->next] : NULL;
    uint64_t left = v->part_bytes - v->at;

    *ret_tensor = NULL;
    if (!t || t->part != v->part)
        return (size_t)MIN(left, (uint64_t)CHUNK_BYTES);
    if (v->at < t->offset)
        return (size_t)MIN(MIN(left, t->offset - v->at), (uint64_t)CHUNK_BYTES);
    *ret_tensor = t;
    left = t->offset + t->bytes - v->at;
    return (size_t)MIN(left, (uint64_t)CHUNK_BYTES / t->fmt->block_bytes * t->fmt->block_bytes);
}

static int read_on(struct verify *v, size_t *ret_n, struct err *err)
{
    const struct gguf_tensor *t;
    size_t n = next_bytes(v, &t);
    int r = file_pread_all(gguf_fd(v->g, v->part), v->chunk, n, (off_t)v->at,
                           gguf_path(v->g, v->part), err);

    if (r < 0)
        return r;
    sha256_add(&v->digest, v->chunk, n);
    if (t)
        look_at_values(v, t, n);
    v->at += n;
    if (t && v->at == t->offset + t->bytes)
        end_tensor(v, t);
    *ret_n = n;
    return 0;
}

/* 1: there is another part. */
static int end_part(struct verify *v, struct err *err)
{
    char digest[SHA256_HEX_LEN + 1];
    const char *path = gguf_path(v->g, v->part);

    sha256_hex(&v->digest, digest);
    json_array_append_new(v->parts,
                          json_pack("{s:o, s:I, s:s}", "path", json_text(path, strlen(path)),
                                    "bytes", (json_int_t)v->part_bytes, "sha256", digest));
    v->done_before += v->part_bytes;
    forget(v);
    if (++v->part == gguf_parts(v->g))
        return 0;
    return begin_part(v, err) < 0 ? -ERR_IO : 1;
}

static json_t *result_of(const struct verify *v, const struct job *j)
{
    return json_pack(
        "{s:o, s:o, s:b, s:I, s:I, s:O, s:O, s:I}", "model", json_text(j->name, strlen(j->name)),
        "path", json_text(j->target, strlen(j->target)), "sound", v->n_findings == 0, "n_tensors",
        (json_int_t)v->n_tensors, "bytes", (json_int_t)v->done_before, "parts", v->parts,
        "findings", v->findings, "n_findings", (json_int_t)v->n_findings);
}

int verify_step(struct engine *e, struct job *j, json_t **ret, struct err *err)
{
    struct verify *v = j->verify;
    size_t done = 0, n;
    int r = v ? 0 : begin(e, j, err);

    *ret = NULL;
    v = j->verify;
    while (r >= 0 && done < STEP_BYTES) {
        if (v->at < v->part_bytes) {
            r = read_on(v, &n, err);
            done += r < 0 ? 0 : n;
        } else {
            r = end_part(v, err);
            if (r == 0) {
                *ret = result_of(v, j);
                return 0;
            }
        }
    }
    if (r < 0)
        return r;
    forget(v);
    events_job_progress(e, j, "verifying", (size_t)(v->done_before + v->at),
                        (size_t)gguf_file_bytes(v->g));
    return 0;
}
