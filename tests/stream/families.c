/*
 * Every family in tiny files: one digest of logits (of the embedding where
 * it writes no text) with everything resident, at half of what may go, at 1.1
 * times the floor, at the floor, loaded there at once, and while the budget
 * changes; in batches and token by token, with keys and values of f16 and f32.
 * And what experts were chosen is noted alike, whether they come or are there.
 *
 * A file this small takes more memory to load than to run, so budgets are of
 * what it holds when it is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/hash.h"
#include "tests/stream/stream_rig.h"
#include "tests/support/family_model.h"

#define N_TOKENS   40 /* more than windows, and than what an indexer picks */
#define N_CTX      64
#define N_EMBEDDED 16 /* an encoder takes them at once, also at its floor */
/* So that what a layer streams is worth a read. */
#define WIDE "feed_forward_length=512 context_length=256"

static const size_t batches[] = {17, 1};

/* A file, how it is loaded, and what all ways must come to. */
struct family {
    const char *family, *name, *path; /* name: of the variant */
    struct model_options options;
    bool embeds; /* it writes no text */
    uint64_t want;
    size_t all, floor;
    unsigned modes; /* of placement, one bit each, that were met */
};

static uint64_t embedding(struct loaded *r)
{
    struct model_info info;
    struct err err = {0};
    int32_t ids[N_EMBEDDED];
    float *x;
    uint64_t h;

    model_info(r->m, &info);
    for (size_t i = 0; i < N_EMBEDDED; i++)
        ids[i] = rig_id_at(r, i);
    x = XNEW_ARRAY(float, info.n_embd);
    if (model_embed(r->m, ids, N_EMBEDDED, NULL, x, &err) < 0)
        die("an embedding: %s", err.text);
    h = hash_bytes_seed(x, info.n_embd * sizeof *x, 0);
    free(x);
    return h;
}

static void count(struct family *f, const char *how, uint64_t got, struct ways *ways)
{
    if (got == f->want) {
        ways->passed++;
        return;
    }
    ways->failed++;
    printf("FAIL %s, %s, keys %s, %s: %016llx, and not %016llx\n", f->family, f->name,
           f->options.kv ? f->options.kv->name : "f16", how, (unsigned long long)got,
           (unsigned long long)f->want);
}

static void note_mode(struct family *f, const struct loaded *r)
{
    struct residency_stats s;

    model_residency(r->m, &s);
    f->modes |= 1u << s.placement.mode;
}

/* As it is now. */
static void check_ways(struct family *f, struct loaded *r, const char *how, struct ways *ways)
{
    note_mode(f, r);
    for (size_t i = 0; i < ARRAY_LEN(batches); i++) {
        char text[64];

        snprintf(text, sizeof text, "%s, batch %zu", how, batches[i]);
        sequence_truncate(model_sequence(r->m), 0);
        if (!f->embeds)
            count(f, text, rig_digest(r, N_TOKENS, batches[i], 0), ways);
        else if (i == 0)
            count(f, how, embedding(r), ways);
    }
}

static void check_cut(struct family *f, struct loaded *r, const char *how, size_t bytes,
                      struct ways *ways)
{
    struct err err = {0};

    if (model_resize(r->m, bytes, &err) < 0)
        die("%s: %s", f->family, err.text);
    check_ways(f, r, how, ways);
}

/* How often every expert was chosen, lately more than long ago; a floor's batches are smaller than others. */
static uint64_t choices(const struct family *f, size_t bytes)
{
    struct loaded r =
        loaded_open(f->path, &f->options, &(struct loaded_how){.threads = 1, .bytes = bytes});
    const struct residency *w = model_weights(r.m);
    uint64_t h = 0;

    rig_digest(&r, N_TOKENS / 2, 5, 0);
    rig_digest(&r, N_TOKENS / 2, 1, 0);
    for (size_t i = 0; i < residency_n_layers(w); i++) {
        struct residency_layer l;
        double sum = 0;

        residency_layer(w, i, &l);
        for (unsigned e = 0; e < l.n_experts; e++) {
            struct residency_expert x;

            residency_expert(w, i, e, &x);
            sum += x.heat;
            h = hash_bytes_seed(&x.heat, sizeof x.heat, h);
        }
        if (sum <= 0)
            die("%s: no choice of layer %d was noted", f->family, l.layer);
    }
    loaded_close(&r);
    return h;
}

static void check_choices(const struct family *f, size_t floor, struct ways *ways)
{
    bool same = choices(f, 0) == choices(f, floor);

    *(same ? &ways->passed : &ways->failed) += 1;
    if (!same)
        printf("FAIL %s, %s: choices are noted in another way when all is there\n", f->family,
               f->name);
}

/* Loaded into less memory than all of it takes, and the least that it can be cut to. */
static void check_floor(struct family *f, struct ways *ways)
{
    struct loaded r = loaded_open(f->path, &f->options, &(struct loaded_how){.threads = 1});
    struct model_plan p;
    struct err err = {0};

    if (model_plan(r.m, &f->options, r.cpu.ops, r.cpu.be, SIZE_MAX, &p, &err) < 0)
        die("%s: %s", f->family, err.text);
    loaded_close(&r);
    r = loaded_open(f->path, &f->options, &(struct loaded_how){.threads = 1, .bytes = p.floor});
    check_ways(f, &r, "loaded at the floor", ways);
    check_cut(f, &r, "cut there", model_floor_bytes(r.m), ways);
    loaded_close(&r);
    if (!f->embeds)
        check_choices(f, p.floor, ways);
}

static void check_cuts(struct family *f, struct loaded *r, size_t floor, size_t all,
                       struct ways *ways)
{
    check_cut(f, r, "half", (floor + all) / 2, ways);
    check_cut(f, r, "1.1 floor", MIN(floor + floor / 10, all), ways);
    check_cut(f, r, "floor", floor, ways);
    sequence_truncate(model_sequence(r->m), 0);
    if (!f->embeds)
        count(f, "live", rig_digest_live(r, all, N_TOKENS, ways), ways);
}

static void check_file(struct family *f, bool all_ways, struct ways *ways)
{
    struct loaded r = loaded_open(f->path, &f->options, &(struct loaded_how){.threads = 1});
    size_t floor = model_floor_bytes(r.m), all = model_held_bytes(r.m);
    struct model_info info;

    f->floor = floor;
    f->all = all;
    model_info(r.m, &info);
    f->embeds = info.pooling != NULL;
    f->want = f->embeds ? embedding(&r) : rig_digest(&r, N_TOKENS, 64, 0);
    check_ways(f, &r, "all", ways);
    if (all_ways)
        check_cuts(f, &r, floor, all, ways);
    loaded_close(&r);
    check_floor(f, ways);
}

static void tell(const struct family *f, const struct ways *ways)
{
    printf("%s %-16s %-10s %2zu ways, %2zu of another digest; all %5zu KiB, floor %5zu KiB;",
           ways->failed ? "FAIL" : "  ok", f->family, f->name, ways->passed + ways->failed,
           ways->failed, f->all >> 10, f->floor >> 10);
    for (unsigned mode = 0; f->modes >> mode; mode++)
        if (f->modes >> mode & 1)
            printf(" %s", placement_mode_name((enum placement_mode)mode));
    putchar('\n');
}

/* The first variant of a family in all ways; of the others both ends alone. */
static void check_variant(struct family *f, const char *family, bool all_ways, struct ways *ways)
{
    static const enum format_id kinds[] = {FORMAT_f16, FORMAT_f32};
    struct gguf_writer w = {0};
    char unused[96], *path;
    int fd;

    family_file_build(&(struct family_file){.family = family, .variant = f->name, .numbers = WIDE},
                      &w, unused);
    fd = gguf_writer_memfd(&w);
    gguf_writer_clear(&w);
    f->path = path = gguf_writer_fd_path(fd);
    for (size_t i = 0; i < (all_ways ? ARRAY_LEN(kinds) : 1); i++) {
        f->options = (struct model_options){
            .n_ctx = N_CTX, .n_batch = 64, .n_out = 64, .kv = format_of(kinds[i])};
        check_file(f, all_ways && i == 0, ways);
    }
    free(path);
    close(fd);
}

static void check_family(const char *name, struct ways *total)
{
    const char *variant;
    unsigned modes = 0;

    for (size_t i = 0; (variant = family_variant(name, i)); i++) {
        struct family f = {.family = name, .name = variant};
        struct ways ways = {0};

        check_variant(&f, name, i == 0, &ways);
        tell(&f, &ways);
        total->passed += ways.passed;
        total->failed += ways.failed;
        modes |= f.modes;
    }
    if (!(modes & ~(1u << PLACEMENT_ALL))) {
        printf("FAIL %s: all of it is resident at its floor\n", name);
        total->failed++;
    }
}

void check_families(const char *only, struct ways *ways)
{
    size_t n = 0;

    for (size_t i = 0; family_names[i]; i++)
        if (!only || strstr(family_names[i], only)) {
            check_family(family_names[i], ways);
            n++;
        }
    printf("%zu families\n", n);
}
