/* Blocks of ranges in their order, many in flight.  See stream.h. */

#include "daemon/memory/stream.h"

#include <string.h>

#include "common/alloc.h"

/* A place among the ranges. */
struct place {
    size_t range;
    uint64_t at;
};

struct block {
    struct read rd;
    struct place from, to;
    bool landed;
};

struct stream {
    struct reader *reader;
    const struct stream_range *ranges;
    size_t n_ranges;
    struct place next; /* not asked for yet */
    unsigned n_open;   /* blocks asked for, not taken */
    struct block blocks[STREAM_BLOCKS_MAX];
    unsigned n_blocks;
    char *memory; /* of all blocks */
};

size_t stream_staging_bytes(uint64_t bytes)
{
    uint64_t n = MIN(MAX(bytes / STREAM_BLOCK / 8, STREAM_BLOCKS_LEAST), STREAM_BLOCKS_MAX);

    return (size_t)n * STREAM_BLOCK;
}

static uint64_t first_byte(const struct block *b)
{
    return b->rd.offset - reader_skip(b->rd.offset);
}

/* May the next range be read by this block too?  A gap of a page is cheaper than a read. */
static bool goes_on(const struct stream *s, const struct block *b)
{
    const struct stream_range *x = &s->ranges[s->next.range];
    uint64_t at = x->offset + s->next.at;

    return x->part == b->rd.part && at >= b->rd.offset &&
           at <= b->rd.offset + b->rd.bytes + READER_ALIGN && at < first_byte(b) + STREAM_BLOCK;
}

/*
 * Asks for what comes next, as much as a block holds.  Blocks end on a boundary
 * of the file where more follows, so that no page is read twice.
 */
static void ask(struct stream *s, struct block *b)
{
    const struct stream_range *x = &s->ranges[s->next.range];
    struct read *rd = &b->rd;

    *rd = (struct read){.class = READ_DEMANDED,
                        .part = x->part,
                        .offset = x->offset + s->next.at,
                        .buffer = s->memory + (size_t)(b - s->blocks) * STREAM_BLOCK,
                        .capacity = STREAM_BLOCK,
                        .name = x->name,
                        .user = b};
    b->from = s->next;
    b->landed = false;
    while (s->next.range < s->n_ranges && goes_on(s, b)) {
        uint64_t at, n;

        x = &s->ranges[s->next.range];
        at = x->offset + s->next.at;
        n = MIN(x->bytes - s->next.at, first_byte(b) + STREAM_BLOCK - at);
        rd->bytes = MAX(rd->bytes, (size_t)(at + n - rd->offset));
        s->next.at += n;
        if (s->next.at < x->bytes)
            break;
        s->next = (struct place){.range = s->next.range + 1};
    }
    b->to = s->next;
    s->n_open++;
    reader_submit(s->reader, &rd, 1);
}

/* Looks at the reader in any case: its window is refilled only then, and copying takes a while. */
static void wait_for(struct stream *s, const struct block *b)
{
    struct read *done[STREAM_BLOCKS_MAX];

    do {
        unsigned n = reader_wait(s->reader, b->landed ? 0 : 1, done, STREAM_BLOCKS_MAX);

        for (unsigned i = 0; i < n; i++)
            ((struct block *)done[i]->user)->landed = true;
    } while (!b->landed);
}

/* Of the tensor that could not be read to its end. */
static const char *who_failed(const struct stream *s, const struct block *b)
{
    size_t i = b->from.range;

    while (i < b->to.range && i + 1 < s->n_ranges &&
           s->ranges[i].offset + s->ranges[i].bytes <= b->rd.failed_at)
        i++;
    return s->ranges[i].name;
}

/* Returns how many bytes that were. */
static size_t copy_out(const struct stream *s, const struct block *b)
{
    struct place p = b->from;
    size_t bytes = 0;

    while (p.range < b->to.range || (p.range == b->to.range && p.at < b->to.at)) {
        const struct stream_range *x = &s->ranges[p.range];
        uint64_t to = p.range == b->to.range ? b->to.at : x->bytes;
        const char *src = (const char *)b->rd.buffer + (x->offset + p.at - first_byte(b));

        memcpy((char *)x->dst + p.at, src, (size_t)(to - p.at));
        bytes += (size_t)(to - p.at);
        p = (struct place){.range = p.range + 1};
    }
    return bytes;
}

/* The oldest block: waits for it, copies it, and asks for another in its place. */
static int take(struct stream *s, struct block *b, stream_landed_fn *landed, void *arg,
                struct err *err)
{
    size_t bytes;
    int rc;

    wait_for(s, b);
    s->n_open--;
    if (b->rd.result < 0)
        b->rd.name = who_failed(s, b);
    rc = read_check(&b->rd, err);
    if (rc < 0)
        return rc;
    bytes = copy_out(s, b);
    if (s->next.range < s->n_ranges)
        ask(s, b);
    return landed ? landed(arg, bytes, err) : 0;
}

int stream_read(struct reader *reader, size_t staging_bytes, const struct stream_range *ranges,
                size_t n, stream_landed_fn *landed, void *arg, struct err *err)
{
    struct stream s = {.reader = reader,
                       .ranges = ranges,
                       .n_ranges = n,
                       .n_blocks = (unsigned)(staging_bytes / STREAM_BLOCK)};
    int rc = 0;

    s.memory = alloc_pages(staging_bytes, 1); /* huge: fewer pieces for the drive */
    if (!s.memory)
        return err_set(err, ERR_NOMEM, "the kernel has no %zu bytes for read buffers",
                       staging_bytes);
    while (s.n_open < s.n_blocks && s.next.range < n)
        ask(&s, &s.blocks[s.n_open]);
    for (unsigned i = 0; rc >= 0 && s.n_open; i = (i + 1) % s.n_blocks)
        rc = take(&s, &s.blocks[i], landed, arg, err);
    if (rc < 0)
        reader_cancel(reader);
    free_pages(s.memory, staging_bytes);
    return rc;
}
