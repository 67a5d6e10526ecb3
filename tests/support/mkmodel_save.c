/*
 * Writes synthetic models at the speed of the disk; see mkmodel.h.  Weights
 * come from a pool for each format: a few hundred blocks of encoded noise,
 * put together in random order, of which tensors are cut at random places.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/str.h"
#include "tests/support/mkmodel.h"

#define POOL_BYTES   ((size_t)32 << 20)
#define POOL_BLOCKS  256     /* that differ; encoders of grids are slow */
#define WEIGHT_SCALE 0.0346f /* noise() has variance 1/3: weights of about N(0, 0.02) */

struct pool {
    char *bytes; /* NULL until the format is met */
    size_t n;    /* blocks */
};

struct save {
    const char *path;
    int fd;
    uint64_t state;
    uint64_t written;
    struct pool pools[FORMAT_COUNT];
};

/* SplitMix64 (Steele et al. 2014): any seed will do. */
static uint64_t next(struct save *s)
{
    uint64_t z = s->state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static size_t below(struct save *s, size_t end)
{
    return (size_t)(((unsigned __int128)next(s) * end) >> 64);
}

/* Sum of four uniforms in −½ … ½: near enough to a normal one. */
static float normal(struct save *s)
{
    uint64_t z = next(s);
    float sum = 0;

    for (int i = 0; i < 4; i++)
        sum += (float)(z >> (16 * i) & 0xFFFF) / 65536.0f - 0.5f;
    return sum;
}

static void fail(const struct save *s)
{
    fprintf(stderr, "mkmodel: %s: %s\n", s->path, strerrordesc_np(errno));
    exit(1);
}

static void write_bytes(struct save *s, const void *bytes, size_t n)
{
    s->written += n;
    for (const char *p = bytes; n > 0;) {
        ssize_t done = write(s->fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            fail(s);
        p += done;
        n -= (size_t)done;
    }
}

static const struct pool *pool_of(struct save *s, const struct format *f)
{
    struct pool *p = &s->pools[format_id_of(f)];
    size_t elems = MAX(f->block_elems, 256u), bytes = elems / f->block_elems * f->block_bytes;
    float x[256];
    char *blocks;

    if (p->bytes)
        return p;
    blocks = xmalloc(POOL_BLOCKS * bytes);
    for (size_t i = 0; i < POOL_BLOCKS; i++) {
        for (size_t j = 0; j < elems; j++)
            x[j] = WEIGHT_SCALE * normal(s);
        f->from_f32(x, blocks + i * bytes, elems);
    }
    p->n = POOL_BYTES / bytes;
    p->bytes = xmalloc(p->n * bytes);
    for (size_t i = 0; i < p->n; i++)
        memcpy(p->bytes + i * bytes, blocks + below(s, POOL_BLOCKS) * bytes, bytes);
    p->n = p->n * bytes / f->block_bytes;
    free(blocks);
    return p;
}

/* Pieces that begin in the pool's first half, so that each is at least half a pool. */
static void write_noise(struct save *s, const struct format *f, size_t bytes)
{
    const struct pool *p = pool_of(s, f);

    while (bytes > 0) {
        size_t from = below(s, p->n / 2), n = MIN(bytes, (p->n - from) * f->block_bytes);

        write_bytes(s, p->bytes + from * f->block_bytes, n);
        bytes -= n;
    }
}

static void write_floats(struct save *s, const struct mkmodel_fill *fill, size_t n)
{
    float *x = xreallocarray(NULL, n, sizeof *x);

    for (size_t i = 0; i < n; i++) {
        x[i] = fill->lo + (fill->hi - fill->lo) * ((float)(next(s) >> 40) * 0x1p-24f);
        if (fill->kind == MKMODEL_ONES)
            x[i] = 1;
    }
    write_bytes(s, x, n * sizeof *x);
    free(x);
}

static void write_tensor(struct save *s, const struct gguf_writer_tensor *t,
                         const struct mkmodel_fill *fill)
{
    static const char zeros[32];

    if (fill->kind == MKMODEL_NOISE)
        write_noise(s, format_of_gguf(t->type), t->bytes);
    else
        write_floats(s, fill, t->bytes / sizeof(float));
    write_bytes(s, zeros, -t->bytes & 31);
}

uint64_t mkmodel_save(const struct mkmodel *o, const char *path)
{
    struct save s = {.path = path, .state = o->seed};
    struct mkmodel_plan plan;
    struct str head = {0};

    s.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (s.fd < 0)
        fail(&s);
    mkmodel_plan(o, &plan);
    gguf_writer_head(&plan.w, &head);
    write_bytes(&s, head.p, head.len);
    for (size_t i = 0; i < plan.w.n_tensors; i++)
        write_tensor(&s, &plan.w.tensors[i], &plan.fills[i]);
    if (close(s.fd) < 0)
        fail(&s);
    for (int i = 0; i < FORMAT_COUNT; i++)
        free(s.pools[i].bytes);
    mkmodel_plan_clear(&plan);
    str_clear(&head);
    return s.written;
}
