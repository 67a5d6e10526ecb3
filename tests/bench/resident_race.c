/*
 * Resident weights in owned memory against a map of the file, in one process:
 *
 *     resident_race [--threads 2] [--tokens 64] [--prompt 128] [--rounds 5] MODEL.gguf
 *
 * The model is loaded as always (huge pages, direct reads).  Then batches take
 * turns: as they are, and with the address of every weight in the ops changed to
 * its place in the map, below the program, where the device takes them.  Weights
 * are found in the file by their bytes, all of them, so the logits must be the
 * same bits.  Dense models only: experts lie in slots, not as in the file.
 *
 * Told as JSON: medians of decode and prefill both ways, the time of a load by
 * direct reads, that of a first pass over a map with nothing in the page cache
 * and with all of it there, and what each holds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/median.h"
#include "common/thread.h"
#include "daemon/gguf/gguf.h"
#include "tests/support/die.h"
#include "tests/support/loaded.h"

#define PAIRS_MAX 4096

static struct {
    const struct backend_ops *real;
    const char *map;
    size_t bytes;
    const struct gguf *g;
    bool mapped; /* the turn */
    struct {
        const void *owned;
        const char *file; /* NULL: no weight */
    } pairs[PAIRS_MAX];
    size_t n_pairs;
} race;

/* Where in the file the bytes of this weight are. */
static const char *find(const void *owned, size_t bytes)
{
    for (size_t i = 0; i < gguf_n_tensors(race.g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(race.g, i);

        if (t->bytes >= bytes && memcmp(race.map + t->offset, owned, bytes) == 0)
            return race.map + t->offset;
    }
    return NULL;
}

/* The weight's address in the map, if it is the map's turn. */
static void turn(struct tensor *t)
{
    size_t bytes = t->data && t->fmt ? tensor_bytes(t) : 0;
    size_t i = 0;

    if (bytes < 4096) /* caches and values of a batch change; weights that count are larger */
        return;
    while (i < race.n_pairs && race.pairs[i].owned != t->data)
        i++;
    if (i == race.n_pairs) {
        if (i == PAIRS_MAX)
            die("more tensors than it has places for");
        race.pairs[race.n_pairs].owned = t->data;
        race.pairs[race.n_pairs++].file = find(t->data, bytes);
    }
    if (race.mapped && race.pairs[i].file)
        t->data = (char *)(uintptr_t)race.pairs[i].file;
}

static int run_ops(struct backend *be, const struct op *ops, size_t n, const struct op_run *run,
                   void *scratch, struct err *err)
{
    struct op *turned = xmemdup(ops, n * sizeof *ops); /* both ways: it costs both the same */
    int r;

    for (size_t i = 0; i < n; i++)
        for (int s = 0; s < OP_MAX_SRC; s++)
            turn(&turned[i].src[s]);
    r = race.real->run(be, turned, n, run, scratch, err);
    free(turned);
    return r;
}

static double batch_ms(struct model *m, size_t rows, bool mapped, uint64_t *ret_digest)
{
    int32_t ids[512], last = (int32_t)rows - 1;
    size_t at = sequence_length(model_sequence(m));
    struct model_info info;
    const float *logits;
    int64_t began_us;
    double ms;

    model_info(m, &info);
    for (size_t i = 0; i < rows; i++)
        ids[i] = (int32_t)((i * 37 + 11) % info.n_vocab);
    race.mapped = mapped;
    began_us = clock_us();
    logits = must_eval(m, ids, rows, &last, 1);
    ms = (double)(clock_us() - began_us) / 1000;
    *ret_digest = hash_bytes_seed(logits, info.n_vocab * sizeof *logits, 0);
    sequence_truncate(model_sequence(m), at);
    return ms;
}

/* Medians in turns; the same bits both ways. */
static void turns(struct model *m, size_t rows, size_t n, double *ret_owned, double *ret_mapped)
{
    double *ms[2] = {XNEW_ARRAY(double, n), XNEW_ARRAY(double, n)};
    uint64_t digest[2];

    batch_ms(m, rows, true, &digest[1]); /* finds the weights */
    for (size_t i = 0; i < n; i++) {
        for (int mapped = 0; mapped <= 1; mapped++)
            ms[mapped][i] = batch_ms(m, rows, mapped, &digest[mapped]);
        if (digest[0] != digest[1])
            die("the logits differ");
    }
    *ret_owned = median(ms[0], n);
    *ret_mapped = median(ms[1], n);
    free(ms[0]);
    free(ms[1]);
}

/* Seconds to touch every page of a fresh map. */
static double pass_over_map(int fd, size_t bytes)
{
    int64_t began_us = clock_us();
    const volatile char *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    char sum = 0;

    if (p == MAP_FAILED)
        die("mmap failed");
    madvise((void *)(uintptr_t)p, bytes, MADV_WILLNEED);
    for (size_t i = 0; i < bytes; i += 4096)
        sum = (char)(sum + p[i]);
    munmap((void *)(uintptr_t)p, bytes);
    (void)sum;
    return (double)(clock_us() - began_us) / 1e6;
}

/* KiB of a line of smaps_rollup. */
static double rollup_mib(const char *name)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    char line[160];
    unsigned long kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoul(line + strlen(name) + 1, NULL, 10);
    if (f)
        fclose(f);
    return (double)kib / 1024;
}

static void run(const char *path, unsigned threads, size_t n_tokens, size_t n_prompt, size_t rounds)
{
    struct model_options o = {.n_ctx = n_prompt + 64, .n_batch = n_prompt, .n_out = 1};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    double cold, warm, load, rss, tg[2], pp[2];
    int64_t began_us;
    struct loaded l;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
        die("the file cannot be opened");
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    began_us = clock_us();
    race.real = backend_by_name("cpu");
    l = loaded_open(path, &o, &(struct loaded_how){.threads = threads, .run = run_ops});
    load = (double)(clock_us() - began_us) / 1e6;
    rss = rollup_mib("Rss:");
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    cold = pass_over_map(fd, (size_t)st.st_size);
    warm = pass_over_map(fd, (size_t)st.st_size);
    race.g = model_gguf(l.m);
    race.bytes = (size_t)st.st_size;
    race.map = mmap(NULL, race.bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (race.map == MAP_FAILED)
        die("mmap failed");
    turns(l.m, 1, n_tokens, &tg[0], &tg[1]);
    turns(l.m, n_prompt, rounds, &pp[0], &pp[1]);
    printf("{\"decode_ms\": {\"owned\": %.3f, \"mapped\": %.3f}, \"prefill_ms\": {\"owned\": %.1f, "
           "\"mapped\": %.1f}, \"load_s\": {\"owned\": %.2f, \"mapped_cold\": %.2f, "
           "\"mapped_warm\": %.2f}, \"mib\": {\"rss_owned\": %.0f, \"rss_both\": %.0f, "
           "\"huge_owned\": %.0f, \"huge_mapped\": %.0f}}\n",
           tg[0], tg[1], pp[0], pp[1], load, cold, warm, rss, rollup_mib("Rss:"),
           rollup_mib("AnonHugePages:"), rollup_mib("FilePmdMapped:"));
    munmap((void *)(uintptr_t)race.map, race.bytes);
    close(fd);
    loaded_close(&l);
}

int main(int argc, char **argv)
{
    size_t threads = 2, n_tokens = 64, n_prompt = 128, rounds = 5;
    const char *path = NULL;

    thread_take_role(THREAD_ENGINE, "resident_race");
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;

        if (strcmp(argv[i], "--threads") == 0 && more)
            threads = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--tokens") == 0 && more)
            n_tokens = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--prompt") == 0 && more)
            n_prompt = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0 && more)
            rounds = strtoul(argv[++i], NULL, 10);
        else
            path = argv[i];
    }
    if (!path || path[0] == '-' || !threads || !n_tokens || !rounds || !n_prompt ||
        n_prompt > 512) {
        fputs("usage: resident_race [--threads 2] [--tokens 64] [--prompt 128] [--rounds 5] "
              "MODEL.gguf\n",
              stderr);
        return 2;
    }
    run(path, (unsigned)threads, n_tokens, n_prompt, rounds);
    return 0;
}
