/*
 * Decode of a mixture of experts with everything but the reading taken out:
 * owned slots, direct reads and the daemon's policy, against a map of the same
 * file with MADV_WILLNEED for the chosen slices.
 *
 *     stream_race [--budget BYTES] [--tokens 30] [--json] MODEL
 *
 * Both make the same choices (invented traces, see expert_sim.h) and "compute" by
 * touching every line of a layer's dense weights and of the chosen experts in two
 * threads: a matrix times a vector is no more than that to memory.  Dense weights
 * are owned memory for both; --budget is theirs and the slots' together, the map
 * has what a cgroup leaves it.
 *
 * The bound is sum over layers of dense + max(bytes missed / drive, compute of the
 * hits), with the drive's rate calibrated just before.
 */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/gguf/gguf.h"
#include "daemon/memory/calibrate.h"
#include "tests/support/die.h"
#include "tests/support/expert_sim.h"

#define PARTS    3 /* gate, up, down */
#define USED     8
#define STAGING  8 /* slots beyond the quotas: a layer's choice may all miss */
#define WARM_SIM 300
#define WARM     10 /* tokens with reads, not measured */
#define ROUNDS   2

struct layer {
    const struct gguf_tensor *part[PARTS];
    size_t slice[PARTS];
};

struct slot {
    char *data;
    struct read reads[PARTS];
    unsigned to_land;
};

struct race {
    struct gguf *g;
    struct layer *layers;
    unsigned n_layers, n_experts;
    size_t part_at[PARTS]; /* in a slot */
    size_t slot_bytes;
    char *dense; /* one layer's worth for each layer */
    size_t dense_bytes;
    char *arena;
    struct slot *slots;
    unsigned n_slots;
    unsigned *free_slots, n_free;
    unsigned *quotas, *n_resident;
    struct policy_expert *experts; /* [layer][expert] */
    unsigned *slot_of;             /* [layer][expert]; only where resident */
    struct reader *reader;
    const char *map; /* of the whole file */
    size_t map_bytes;
    double rate;
};

struct sums {
    double seconds, bound, max_bound, compute;
    size_t wanted, missed, tokens;
};

/* ---- touching, in two threads ---- */

static struct {
    pthread_barrier_t begin, end;
    pthread_t thread;
    const char *p;
    size_t n;
    uint64_t sum[2];
} team;

static uint64_t touch_half(const char *p, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i + 64 <= n; i += 64) {
        uint64_t x;

        memcpy(&x, p + i, sizeof x);
        sum += x;
    }
    return sum;
}

static void *helper(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_barrier_wait(&team.begin);
        if (!team.p)
            return NULL;
        team.sum[1] += touch_half(team.p + team.n / 2, team.n - team.n / 2);
        pthread_barrier_wait(&team.end);
    }
}

static void touch(const char *p, size_t n)
{
    team.p = p;
    team.n = n;
    pthread_barrier_wait(&team.begin);
    team.sum[0] += touch_half(p, n / 2);
    pthread_barrier_wait(&team.end);
}

static void team_start(void)
{
    pthread_barrier_init(&team.begin, NULL, 2);
    pthread_barrier_init(&team.end, NULL, 2);
    pthread_create(&team.thread, NULL, helper, NULL);
}

static void team_stop(void)
{
    team.p = NULL;
    pthread_barrier_wait(&team.begin);
    pthread_join(team.thread, NULL);
}

/* ---- the model ---- */

static bool add_layer(struct race *s)
{
    static const char *const names[PARTS] = {"gate", "up", "down"};
    struct layer layer;

    for (int p = 0; p < PARTS; p++) {
        char name[64];

        snprintf(name, sizeof name, "blk.%u.ffn_%s_exps.weight", s->n_layers, names[p]);
        layer.part[p] = gguf_find_tensor(s->g, name);
        if (!layer.part[p])
            return false;
        if (layer.part[p]->part != 0)
            die("a model of one file is wanted");
        s->n_experts = (unsigned)layer.part[p]->dims[2];
        layer.slice[p] = layer.part[p]->bytes / s->n_experts;
    }
    s->layers = xreallocarray(s->layers, s->n_layers + 1, sizeof *s->layers);
    s->layers[s->n_layers++] = layer;
    return true;
}

static void find_layers(struct race *s)
{
    size_t dense = 0;

    while (add_layer(s))
        continue;
    if (!s->n_layers)
        die("a model with experts in every layer is wanted");
    for (size_t i = 0; i < gguf_n_tensors(s->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(s->g, i);

        if (view_starts(t->name, VIEW("blk.")) && view_find(t->name, VIEW("_exps."), 0) < 0)
            dense += t->bytes;
    }
    s->dense_bytes = dense / s->n_layers;
}

static void make_slots(struct race *s, size_t budget)
{
    struct policy_layer *layers = XNEW_ARRAY(struct policy_layer, s->n_layers);
    size_t dense = s->dense_bytes * s->n_layers, at = 0;

    for (int p = 0; p < PARTS; p++) {
        size_t most = 0;

        for (unsigned l = 0; l < s->n_layers; l++)
            most = MAX(most, s->layers[l].slice[p]);
        s->part_at[p] = at;
        at += reader_slot_bytes_any(most);
    }
    s->slot_bytes = at;
    if (budget < dense + (STAGING + s->n_layers) * s->slot_bytes)
        die("the budget is too small");
    s->n_slots = (unsigned)((budget - dense) / s->slot_bytes);
    s->arena = alloc_pages(s->n_slots * s->slot_bytes, 1);
    s->dense = alloc_pages(dense, 1);
    if (!s->arena || !s->dense)
        die("no memory");
    memset(s->dense, 1, dense);
    s->slots = XNEW_ARRAY(struct slot, s->n_slots);
    s->free_slots = XNEW_ARRAY(unsigned, s->n_slots);
    for (unsigned i = 0; i < s->n_slots; i++)
        s->slots[i].data = s->arena + i * s->slot_bytes;
    s->quotas = XNEW_ARRAY(unsigned, s->n_layers);
    s->n_resident = XNEW_ARRAY(unsigned, s->n_layers);
    s->experts = XNEW_ARRAY(struct policy_expert, (size_t)s->n_layers * s->n_experts);
    s->slot_of = XNEW_ARRAY(unsigned, (size_t)s->n_layers * s->n_experts);
    for (unsigned l = 0; l < s->n_layers; l++)
        layers[l] = (struct policy_layer){s->n_experts, USED, 1};
    policy_quotas(layers, s->n_layers, s->n_slots - STAGING, s->quotas);
    free(layers);
}

static uint64_t slice_offset(const struct race *s, unsigned l, unsigned e, int p)
{
    return s->layers[l].part[p]->offset + e * s->layers[l].slice[p];
}

/* ---- owned slots ---- */

static void begin_expert(struct race *s, unsigned l, unsigned e)
{
    struct slot *slot = &s->slots[s->free_slots[--s->n_free]];
    struct read *list[PARTS];

    s->slot_of[l * s->n_experts + e] = (unsigned)(slot - s->slots);
    slot->to_land = PARTS;
    for (int p = 0; p < PARTS; p++) {
        slot->reads[p] = (struct read){.offset = slice_offset(s, l, e, p),
                                       .bytes = s->layers[l].slice[p],
                                       .buffer = slot->data + s->part_at[p],
                                       .capacity = s->slot_bytes - s->part_at[p],
                                       .name = "a slice",
                                       .user = slot};
        list[p] = &slot->reads[p];
    }
    reader_submit(s->reader, list, PARTS);
}

static void touch_slot(struct race *s, unsigned l, const struct slot *slot)
{
    for (int p = 0; p < PARTS; p++)
        touch(reader_data(&slot->reads[p]), s->layers[l].slice[p]);
}

/* Waits for what is left of a layer's misses and touches each as it lands. */
static void land(struct race *s, unsigned l, unsigned n_missed, bool compute)
{
    while (n_missed) {
        struct read *done[PARTS];
        struct err err;
        unsigned n = reader_wait(s->reader, 1, done, PARTS);

        for (unsigned i = 0; i < n; i++) {
            struct slot *slot = done[i]->user;

            if (read_check(done[i], &err) < 0)
                die("%s", err.text);
            if (--slot->to_land)
                continue;
            n_missed--;
            if (compute)
                touch_slot(s, l, slot);
        }
    }
}

static void evict(struct race *s, unsigned l, uint64_t token)
{
    struct policy_expert *layer = s->experts + (size_t)l * s->n_experts;
    unsigned victims[2 * USED];
    unsigned n = s->n_resident[l] > s->quotas[l] ? s->n_resident[l] - s->quotas[l] : 0;

    n = policy_victims(layer, s->n_experts, token, MIN(n, 2 * USED), victims);
    for (unsigned i = 0; i < n; i++) {
        layer[victims[i]].resident = false;
        s->free_slots[s->n_free++] = s->slot_of[l * s->n_experts + victims[i]];
    }
    s->n_resident[l] -= n;
}

static double seconds_since(int64_t t0)
{
    return (double)(clock_us() - t0) / 1e6;
}

static void slots_layer(struct race *s, unsigned l, const uint16_t *ids, uint64_t token,
                        struct sums *sum)
{
    struct policy_expert *layer = s->experts + (size_t)l * s->n_experts;
    unsigned n_missed = 0, hits[USED] = {0}, n_hits = 0;
    size_t missed = 0, wanted = 0;
    double dense, compute;
    int64_t t0 = clock_us();

    touch(s->dense + l * s->dense_bytes, s->dense_bytes);
    dense = seconds_since(t0);
    for (int p = 0; p < PARTS; p++)
        wanted += s->layers[l].slice[p];
    for (unsigned i = 0; i < USED; i++) {
        policy_use(&layer[ids[i]], token);
        if (layer[ids[i]].resident) {
            hits[n_hits++] = ids[i];
            continue;
        }
        begin_expert(s, l, ids[i]);
        layer[ids[i]].resident = true;
        s->n_resident[l]++;
        n_missed++;
        missed += wanted;
    }
    t0 = clock_us();
    for (unsigned i = 0; i < n_hits; i++) {
        touch_slot(s, l, &s->slots[s->slot_of[l * s->n_experts + hits[i]]]);
        reader_wait(s->reader, 0, NULL, 0);
    }
    compute = seconds_since(t0);
    land(s, l, n_missed, true);
    evict(s, l, token);
    sum->wanted += USED * wanted;
    sum->missed += missed;
    sum->compute += dense + compute;
    sum->bound += dense + MAX((double)missed / s->rate, compute);
}

/* The policy as it is after some hundred tokens, and the bytes of what it keeps. */
static void fill_slots(struct race *s, const struct trace *t)
{
    memset(s->experts, 0, (size_t)s->n_layers * s->n_experts * sizeof *s->experts);
    memset(s->n_resident, 0, s->n_layers * sizeof *s->n_resident);
    s->n_free = 0;
    for (unsigned i = 0; i < s->n_slots; i++)
        s->free_slots[s->n_free++] = i;
    for (unsigned l = 0; l < s->n_layers; l++) {
        struct policy_expert *layer = s->experts + (size_t)l * s->n_experts;
        unsigned victims[USED], n;

        for (uint64_t k = 0; k < WARM_SIM; k++) {
            for (unsigned i = 0; i < USED; i++) {
                struct policy_expert *e = &layer[trace_ids(t, k, l)[i]];

                s->n_resident[l] += !e->resident;
                e->resident = true;
                policy_use(e, k + 1);
            }
            while (s->n_resident[l] > s->quotas[l] &&
                   (n = policy_victims(layer, s->n_experts, k + 1,
                                       MIN(s->n_resident[l] - s->quotas[l], USED), victims)))
                for (unsigned i = 0; i < n; i++) {
                    layer[victims[i]].resident = false;
                    s->n_resident[l]--;
                }
        }
        for (unsigned e = 0; e < s->n_experts; e++)
            if (layer[e].resident) {
                begin_expert(s, l, e);
                land(s, l, 1, false);
            }
    }
}

/* ---- the map ---- */

static void mapped_layer(struct race *s, unsigned l, const uint16_t *ids)
{
    touch(s->dense + l * s->dense_bytes, s->dense_bytes);
    for (unsigned i = 0; i < USED; i++)
        for (int p = 0; p < PARTS; p++) {
            uint64_t at = slice_offset(s, l, ids[i], p);

            madvise((void *)(uintptr_t)(s->map + at / READER_ALIGN * READER_ALIGN),
                    reader_slot_bytes(at, s->layers[l].slice[p]), MADV_WILLNEED);
        }
    for (unsigned i = 0; i < USED; i++)
        for (int p = 0; p < PARTS; p++)
            touch(s->map + slice_offset(s, l, ids[i], p), s->layers[l].slice[p]);
}

/* ---- the race ---- */

static void run(struct race *s, const struct trace *t, size_t from, size_t n, bool mapped,
                struct sums *sum)
{
    int64_t t0 = clock_us();

    for (size_t k = from; k < from + n; k++)
        for (unsigned l = 0; l < s->n_layers; l++) {
            if (mapped)
                mapped_layer(s, l, trace_ids(t, k, l));
            else
                slots_layer(s, l, trace_ids(t, k, l), k + 1, sum);
        }
    sum->seconds += seconds_since(t0);
    sum->tokens += n;
}

static void calibrate(struct race *s, struct reader_drive *ret)
{
    struct calibrate_options o = {.again = true, .most_ms = 400};
    struct calibration c;
    struct err err;

    if (calibrate_drive(gguf_fd(s->g, 0), &o, &c, &err) < 0)
        die("%s", err.text);
    s->rate = c.rate;
    *ret = calibrate_reader(&c);
}

static void race(struct race *s, char kind, size_t n_tokens, bool json, bool last)
{
    struct trace t;
    struct sums slots = {0}, mapped = {0}, unused = {0};
    struct reader_drive drive;
    int fd = gguf_fd(s->g, 0);
    double max, rate = 0;

    expert_sim_invent(kind, s->n_layers, s->n_experts, USED, WARM_SIM + (WARM + n_tokens) * ROUNDS,
                      11, &t);
    for (int round = 0; round < ROUNDS; round++) {
        size_t from = WARM_SIM + (WARM + n_tokens) * (size_t)round;
        struct err err;

        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        calibrate(s, &drive);
        rate += s->rate / ROUNDS;
        if (reader_create(&fd, 1, &(struct reader_options){.drives = &drive}, &s->reader, &err) < 0)
            die("%s", err.text);
        fill_slots(s, &t);
        run(s, &t, from, WARM, false, &unused);
        run(s, &t, from + WARM, n_tokens, false, &slots);
        reader_destroy(s->reader);
        /* the map gets the memory of the slots */
        madvise(s->arena, s->n_slots * s->slot_bytes, MADV_DONTNEED);
        run(s, &t, from, WARM, true, &unused);
        run(s, &t, from + WARM, n_tokens, true, &mapped);
        madvise((void *)(uintptr_t)s->map, s->map_bytes, MADV_DONTNEED);
    }
    max = MAX(slots.compute, (double)slots.missed / rate);
    printf(json ? "  {\"trace\": \"%c\", \"slots\": %u, \"hit\": %.3f, \"missed_bytes_per_token\": "
                  "%.0f, "
                  "\"slots_ms\": %.2f, \"mapped_ms\": %.2f, \"slots_over_mapped\": %.3f, "
                  "\"share_of_bound\": %.3f, \"share_of_max\": %.3f, \"drive_rate\": %.0f}%s\n"
                : "%c: %u slots, hits %.3f, %.0f bytes missed a token; %.2f ms a token, mapped "
                  "%.2f ms: "
                  "%.2f x; %.3f of the bound, %.3f of max(compute, I/O) at %.3g B/s%s\n",
           kind, s->n_slots, 1 - (double)slots.missed / (double)slots.wanted,
           (double)slots.missed / (double)slots.tokens, 1e3 * slots.seconds / (double)slots.tokens,
           1e3 * mapped.seconds / (double)mapped.tokens,
           mapped.seconds / (double)mapped.tokens / (slots.seconds / (double)slots.tokens),
           slots.bound / slots.seconds, max / slots.seconds, rate, json && !last ? "," : "");
    trace_clear(&t);
}

int main(int argc, char **argv)
{
    static const struct option words[] = {{"budget", required_argument, NULL, 'b'},
                                          {"tokens", required_argument, NULL, 't'},
                                          {"json", no_argument, NULL, 'j'},
                                          {0}};
    struct race s = {0};
    struct err err = {0};
    size_t budget = (size_t)1700 << 20, n_tokens = 30;
    bool json = false;
    int opt;

    while ((opt = getopt_long(argc, argv, "", words, NULL)) >= 0)
        switch (opt) {
        case 'b': budget = strtoull(optarg, NULL, 10); break;
        case 't': n_tokens = strtoull(optarg, NULL, 10); break;
        case 'j': json = true; break;
        default: return 2;
        }
    if (optind >= argc || gguf_open(argv[optind], &s.g, &err) < 0)
        die("%s", err.text[0] ? err.text : "name a model");
    find_layers(&s);
    make_slots(&s, budget);
    s.map_bytes = (size_t)lseek(gguf_fd(s.g, 0), 0, SEEK_END);
    s.map = mmap(NULL, s.map_bytes, PROT_READ, MAP_SHARED, gguf_fd(s.g, 0), 0);
    if (s.map == MAP_FAILED)
        die("the file cannot be mapped");
    team_start();
    if (json)
        printf("{\"traces\": [\n");
    race(&s, 'l', n_tokens, json, false);
    race(&s, 'u', n_tokens, json, true);
    if (json)
        printf("]}\n");
    team_stop();
    gguf_close(s.g);
    free(s.layers);
    free(s.slots);
    free(s.free_slots);
    free(s.quotas);
    free(s.n_resident);
    free(s.experts);
    free(s.slot_of);
    return 0;
}
