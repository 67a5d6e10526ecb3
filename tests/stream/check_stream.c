/*
 * check_stream - one model, one answer, whatever the budget: the digest of all
 * logits with everything resident, at half of that, at 1.1 times the floor, and
 * at the floor, on one and two threads and in several batches; then after the
 * budget has been cut and raised between two tokens.
 *
 *     check_stream [--tokens N] [--only NAME] [MODEL.gguf]
 *     check_stream --floor 1.2 [--tokens N] [--threads N] [--prompt N] MODEL.gguf...
 *     check_stream --time BUDGET [--tokens N] [--threads N] [--prompt N] MODEL.gguf
 *
 * Without a model: tiny ones of six families, with all of that, then of every family
 * (families.c).  --floor: each model with everything resident and with that many
 * times its floor, the budgets and speeds beside the digests.  --time measures
 * instead: prefill, then decode, with what was read for a token and how fast.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/thread.h"
#include "common/units.h"
#include "daemon/model/model.h"
#include "tests/stream/stream_rig.h"
#include "tests/support/tiny_model.h"

#define N_CTX 256

static const size_t batches[] = {1, 7, 64};

static struct ways ways;

static struct model_options options(size_t n_out)
{
    return (struct model_options){.n_ctx = N_CTX, .n_batch = 64, .n_out = n_out};
}

static void tell(const char *name, const char *how, size_t bytes, const struct loaded *r,
                 uint64_t want, uint64_t got)
{
    struct residency_stats s;
    char text[24];

    model_residency(r->m, &s);
    *(want == got ? &ways.passed : &ways.failed) += 1;
    printf("%s %-12s %-22s %10s %-8s dropped %-3zu slots %-4zu %016llx\n",
           want == got ? "  ok" : "FAIL", name, how, units_format_size(bytes, text, sizeof text),
           placement_mode_name(s.placement.mode), s.placement.n_dropped, s.placement.n_slots,
           (unsigned long long)got);
}

static void check_budget(const char *name, const char *path, const char *how, size_t bytes,
                         size_t n, uint64_t want)
{
    struct model_options o = options(64);

    for (unsigned threads = 1; threads <= 2; threads++) {
        struct loaded r =
            loaded_open(path, &o, &(struct loaded_how){.threads = threads, .bytes = bytes});

        for (size_t i = 0; i < ARRAY_LEN(batches); i++) {
            char text[64];

            snprintf(text, sizeof text, "%s, %u thr, batch %zu", how, threads, batches[i]);
            sequence_truncate(model_sequence(r.m), 0);
            tell(name, text, bytes, &r, want, rig_digest(&r, n, batches[i], 0));
        }
        loaded_close(&r);
    }
}

static void check_live(const char *name, const char *path, size_t all, size_t n, uint64_t want)
{
    struct model_options o = options(64);
    struct loaded r = loaded_open(path, &o, &(struct loaded_how){.threads = 2});

    tell(name, "live", all, &r, want, rig_digest_live(&r, all, n, &ways));
    loaded_close(&r);
}

static void check(const char *name, const char *path, size_t n)
{
    struct model_options o = options(64);
    struct loaded r = loaded_open(path, &o, &(struct loaded_how){.threads = 2});
    struct model_plan p;
    struct err err = {0};
    uint64_t want;

    if (model_plan(r.m, &o, r.cpu.ops, r.cpu.be, SIZE_MAX, &p, &err) < 0)
        die("%s: %s", name, err.text);
    want = rig_digest(&r, n, 64, 0);
    loaded_close(&r);
    check_budget(name, path, "all", p.all, n, want);
    check_budget(name, path, "half", MAX(p.all / 2, p.floor), n, want);
    check_budget(name, path, "1.1 floor", p.floor + p.floor / 10, n, want);
    check_budget(name, path, "floor", p.floor, n, want);
    check_live(name, path, p.all, n, want);
}

static void check_tiny(const char *only, size_t n)
{
    for (size_t i = 0; tiny_families[i]; i++)
        for (int tied = 0; tied <= 1; tied++) {
            struct tiny_model o = {.family = tiny_families[i], .n_layers = 5, .tied = tied};
            char name[64], *path;
            int fd;

            snprintf(name, sizeof name, "%s%s", tiny_families[i], tied ? "-tied" : "");
            if ((only && !strstr(name, only)) ||
                (tied && strncmp(name, "qwen3", 5) != 0 && strncmp(name, "llama", 5) != 0))
                continue;
            fd = tiny_model_memfd(&o);
            path = gguf_writer_fd_path(fd);
            check(name, path, n);
            free(path);
            close(fd);
        }
}

struct floor_run {
    uint64_t digest;
    double prefill, decode; /* tokens a second */
    struct placement placement;
};

static double rate(size_t n, int64_t since_us)
{
    return (double)n * 1e6 / (double)MAX(clock_us() - since_us, 1);
}

/* bytes 0: all the machine has. */
static struct floor_run floor_run(const char *path, const struct model_options *o, size_t bytes,
                                  unsigned threads, size_t n_prompt, size_t n)
{
    struct loaded r =
        loaded_open(path, o, &(struct loaded_how){.threads = threads, .bytes = bytes});
    struct floor_run run = {0};
    struct residency_stats s;
    int64_t t0 = clock_us();

    run.digest = rig_digest(&r, n_prompt, 64, 0);
    run.prefill = rate(n_prompt, t0);
    t0 = clock_us();
    run.digest = rig_digest(&r, n, 1, run.digest);
    run.decode = rate(n, t0);
    model_residency(r.m, &s);
    run.placement = s.placement;
    loaded_close(&r);
    return run;
}

static void tell_floor_run(const char *how, size_t bytes, const struct floor_run *run)
{
    char text[24];

    printf("     %-12s %10s %-8s prefill %7.1f tok/s, decode %6.2f tok/s, %016llx\n", how,
           units_format_size(bytes, text, sizeof text), placement_mode_name(run->placement.mode),
           run->prefill, run->decode, (unsigned long long)run->digest);
}

/* One digest with everything resident and at `factor` times the floor. */
static void check_floor(const char *path, double factor, unsigned threads, size_t n_prompt,
                        size_t n)
{
    struct model_options o = {.n_ctx = n_prompt + n, .n_batch = 64, .n_out = 64};
    struct loaded r = loaded_open(path, &o, &(struct loaded_how){.threads = threads});
    const char *slash = strrchr(path, '/');
    struct floor_run all, tight;
    struct model_plan p;
    struct err err = {0};
    char text[24];
    size_t bytes;
    bool same;

    if (model_plan(r.m, &o, r.cpu.ops, r.cpu.be, SIZE_MAX, &p, &err) < 0)
        die("%s: %s", path, err.text);
    loaded_close(&r);
    bytes = MIN((size_t)((double)p.floor * factor), p.all);
    all = floor_run(path, &o, 0, threads, n_prompt, n);
    tight = floor_run(path, &o, bytes, threads, n_prompt, n);
    same = all.digest == tight.digest;
    *(same ? &ways.passed : &ways.failed) += 1;
    printf("%s %s: floor %s\n", same ? "  ok" : "FAIL", slash ? slash + 1 : path,
           units_format_size(p.floor, text, sizeof text));
    tell_floor_run("unlimited", p.all, &all);
    snprintf(text, sizeof text, "%.2g x floor", factor);
    tell_floor_run(text, bytes, &tight);
}

static size_t rss_bytes(void)
{
    size_t pages = 0, unused;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%zu %zu", &unused, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void measure(const char *path, size_t bytes, size_t n_prompt, size_t n, unsigned threads)
{
    struct model_options o = {.n_ctx = n_prompt + n + 8, .n_out = 1};
    int64_t t0 = clock_us(), t1;
    struct loaded r =
        loaded_open(path, &o, &(struct loaded_how){.threads = threads, .bytes = bytes});
    struct residency_stats a, b;
    int32_t *ids = XNEW_ARRAY(int32_t, n_prompt);
    const int32_t row = 0, last = (int32_t)n_prompt - 1;
    double s;

    model_residency(r.m, &a);
    printf("load %.2f s, read %.0f MB; mode %s, dropped %zu, slots %zu, ring %zu x %.1f MB, held "
           "%.1f MiB\n",
           (double)(clock_us() - t0) / 1e6, (double)a.bytes_read / 1e6,
           placement_mode_name(a.placement.mode), a.placement.n_dropped, a.placement.n_slots,
           a.placement.ring_depth, (double)a.placement.ring_slot_bytes / 1e6,
           (double)model_held_bytes(r.m) / 1048576.0);
    for (size_t i = 0; i < n_prompt; i++)
        ids[i] = rig_id_at(&r, i);
    t0 = clock_us();
    must_eval(r.m, ids, n_prompt, &last, 1);
    s = (double)(clock_us() - t0) / 1e6;
    model_residency(r.m, &b);
    printf("prefill %zu: %.1f tok/s, %.0f MB read, rss %.1f MiB\n", n_prompt, (double)n_prompt / s,
           (double)(b.bytes_read - a.bytes_read) / 1e6, (double)rss_bytes() / 1048576.0);
    for (size_t half = 0; half < 2; half++) {
        model_residency(r.m, &a);
        t0 = clock_us();
        for (size_t i = 0; i < n / 2; i++) {
            int32_t id = rig_id_at(&r, sequence_length(model_sequence(r.m)));

            must_eval(r.m, &id, 1, &row, 1);
        }
        t1 = clock_us();
        s = (double)(t1 - t0) / 1e6;
        model_residency(r.m, &b);
        printf("decode: %.2f tok/s, %.1f MB/token, hits %.1f %%, device %.0f MB/s, while reading "
               "%.0f MB/s, waited %.0f %%, rss %.1f MiB\n",
               (double)(n / 2) / s, (double)(b.bytes_read - a.bytes_read) / 1e6 / (double)(n / 2),
               b.uses > a.uses ? 100.0 * (double)(b.hits - a.hits) / (double)(b.uses - a.uses)
                               : 100.0,
               (double)(b.bytes_read - a.bytes_read) / 1e6 / s,
               (double)(b.bytes_read - a.bytes_read) / (double)MAX(b.busy_us - a.busy_us, 1u),
               100.0 * (double)(b.wait_us - a.wait_us) / 1e6 / s, (double)rss_bytes() / 1048576.0);
    }
    free(ids);
    loaded_close(&r);
}

struct asked {
    size_t n, n_prompt, bytes;
    unsigned threads;
    const char *only;
    double factor; /* 0: not asked for */
    bool timed;
};

static bool is(const char *arg, const char *name, bool more)
{
    return more && strcmp(arg, name) == 0;
}

/* Returns the first argument that is no option. */
static int read_args(int argc, char **argv, struct asked *a)
{
    struct err err = {0};
    int i;

    for (i = 1; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        bool more = i + 1 < argc;

        if (is(argv[i], "--tokens", more)) {
            a->n = strtoul(argv[++i], NULL, 10);
        } else if (is(argv[i], "--prompt", more)) {
            a->n_prompt = strtoul(argv[++i], NULL, 10);
        } else if (is(argv[i], "--threads", more)) {
            a->threads = (unsigned)strtoul(argv[++i], NULL, 10);
        } else if (is(argv[i], "--only", more)) {
            a->only = argv[++i];
        } else if (is(argv[i], "--floor", more)) {
            a->factor = strtod(argv[++i], NULL);
        } else if (is(argv[i], "--time", more)) {
            uint64_t size = 0;

            a->timed = true;
            if (strcmp(argv[++i], "all") != 0 && units_parse_size(argv[i], &size, &err) < 0)
                die("%s: %s", argv[i], err.text);
            a->bytes = size;
        } else {
            fprintf(stderr, "check_stream: no option '%s'\n", argv[i]);
            exit(2);
        }
    }
    return i;
}

int main(int argc, char **argv)
{
    struct asked a = {.n_prompt = 64, .threads = 2};
    int first;

    thread_take_role(THREAD_ENGINE, "check_stream");
    first = read_args(argc, argv, &a);
    if (a.timed && first < argc) {
        measure(argv[first], a.bytes, a.n_prompt, a.n ? a.n : 32, a.threads);
        return 0;
    }
    for (int i = first; i < argc; i++)
        if (a.factor > 0)
            check_floor(argv[i], a.factor, a.threads, a.n_prompt, a.n ? a.n : 16);
        else
            check(argv[i], argv[i], a.n ? a.n : 24);
    if (first == argc) {
        check_tiny(a.only, a.n ? a.n : 90);
        check_families(a.only, &ways);
    }
    printf("%zu passed, %zu failed\n", ways.passed, ways.failed);
    return ways.failed ? 1 : 0;
}
