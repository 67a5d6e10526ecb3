/*
 * check_quiet - computing a token takes no memory from the heap and no lock.
 *
 *     check_quiet [--tokens N]
 *
 * The functions that allocate and lock are this program's own: they count, in
 * every thread, while a decode step runs, and hand on to the C library.  So
 * what the library itself allocates (qsort did) is seen as well.  Models of
 * several families, caches and samplers; one line each, exit 1 when one was
 * not quiet.  System calls: tests/system/syscalls.sh.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/sampling/sampler.h"
#include "tests/support/die.h"
#include "tests/support/loaded.h"
#include "tests/support/tiny_model.h"

/* The C library's own, under the names that it exports for such programs. */
void *libc_malloc(size_t n) __asm__("__libc_malloc");
void *libc_calloc(size_t n, size_t size) __asm__("__libc_calloc");
void *libc_realloc(void *p, size_t n) __asm__("__libc_realloc");
void *libc_memalign(size_t alignment, size_t n) __asm__("__libc_memalign");

static atomic_bool counting;
static atomic_size_t n_allocations, n_locks;

static void count(atomic_size_t *what)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add_explicit(what, 1, memory_order_relaxed);
}

void *malloc(size_t n)
{
    count(&n_allocations);
    return libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    count(&n_allocations);
    return libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    count(&n_allocations);
    return libc_realloc(p, n);
}

void *memalign(size_t alignment, size_t n)
{
    count(&n_allocations);
    return libc_memalign(alignment, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    count(&n_allocations);
    return libc_memalign(alignment, n);
}

int posix_memalign(void **p, size_t alignment, size_t n)
{
    count(&n_allocations);
    *p = libc_memalign(alignment, n);
    return *p ? 0 : 12; /* ENOMEM */
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
    static int (*next)(pthread_mutex_t *); /* found while there is one thread */

    count(&n_locks);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    return next(m);
}

/* -- what is run ---------------------------------------------------------------------------------- */

#define N_PROMPT 40

static struct {
    int passed, failed;
    size_t n_tokens;
} sum = {.n_tokens = 300}; /* past the first chunk of the cache */

struct test {
    char name[80];
    struct tiny_model model;
    const char *kv;
    struct sampling_options sampling;
};

static void decode(struct model *m, struct sampler *s, size_t n)
{
    const int32_t row = 0;
    int32_t id = 1;

    for (size_t i = 0; i < n; i++) {
        id = sampler_choose(s, must_eval(m, &id, 1, &row, 1));
        sampler_accept(s, id);
    }
}

static void prefill(struct model *m)
{
    int32_t ids[N_PROMPT], last = N_PROMPT - 1;

    for (int i = 0; i < N_PROMPT; i++)
        ids[i] = 3 * i;
    must_eval(m, ids, N_PROMPT, &last, 1);
}

static void report(const struct test *t)
{
    size_t allocations = atomic_load(&n_allocations), locks = atomic_load(&n_locks);
    bool quiet = allocations == 0 && locks == 0;

    printf("%s %s: %zu allocations, %zu locks in %zu tokens\n", quiet ? "ok  " : "FAIL", t->name,
           allocations, locks, sum.n_tokens);
    quiet ? sum.passed++ : sum.failed++;
}

static void run(const struct test *t)
{
    struct model_options o = {
        .n_ctx = N_PROMPT + sum.n_tokens + 8, .n_batch = 64, .kv = format_of_name(t->kv)};
    int fd = tiny_model_memfd(&t->model);
    char *path = gguf_writer_fd_path(fd);
    struct sampler *s = sampler_create(&t->sampling, TINY_N_VOCAB, o.n_ctx);
    struct loaded l = loaded_open(path, &o, &(struct loaded_how){.threads = 2});

    prefill(l.m);
    decode(l.m, s, 2); /* tables of ops are made with the first batch of each width */
    atomic_store(&n_allocations, 0);
    atomic_store(&n_locks, 0);
    atomic_store(&counting, true);
    decode(l.m, s, sum.n_tokens);
    atomic_store(&counting, false);
    report(t);
    sampler_destroy(s);
    loaded_close(&l);
    free(path);
    close(fd);
}

static struct test test_of(const char *family, const char *kv)
{
    struct test t = {.model = {.family = family,
                               .fmt = format_of(FORMAT_q4_k),
                               .fmt2 = format_of(FORMAT_q6_k),
                               .seed = 1},
                     .kv = kv};

    sampling_defaults(&t.sampling);
    snprintf(t.name, sizeof t.name, "%s, %s cache", family, kv);
    return t;
}

/* Each step of the chain that keeps or sorts something. */
static void run_samplers(void)
{
    struct test greedy = test_of("llama", "f16"), every = greedy, mirostat = greedy;

    greedy.sampling.temperature = 0;
    snprintf(greedy.name, sizeof greedy.name, "greedy");
    run(&greedy);
    every.sampling.top_n_sigma = 2;
    every.sampling.typical_p = 0.9f;
    every.sampling.xtc_probability = 0.5f;
    every.sampling.repeat_last_n = -1;
    every.sampling.repeat_penalty = 1.1f;
    every.sampling.frequency_penalty = 0.1f;
    every.sampling.dry_multiplier = 0.8f;
    every.sampling.dry_last_n = -1;
    every.sampling.dynatemp_range = 0.2f;
    snprintf(every.name, sizeof every.name, "every step of the sampler");
    run(&every);
    mirostat.sampling.mirostat = 2;
    snprintf(mirostat.name, sizeof mirostat.name, "mirostat");
    run(&mirostat);
}

/* The counters must see what is there. */
static void check_counters(void)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    void *volatile p;

    atomic_store(&counting, true);
    p = malloc(100);
    free(p);
    p = aligned_alloc(64, 128);
    free(p);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    atomic_store(&counting, false);
    if (atomic_load(&n_allocations) == 2 && atomic_load(&n_locks) == 1) {
        sum.passed++;
        return;
    }
    printf("FAIL the counters do not count\n");
    sum.failed++;
}

int main(int argc, char **argv)
{
    static const char *const kvs[] = {"q8_0", "q4_0"};

    if (argc == 3 && strcmp(argv[1], "--tokens") == 0)
        sum.n_tokens = strtoul(argv[2], NULL, 10);
    else if (argc > 1)
        sum.n_tokens = 0;
    if (sum.n_tokens < 1) {
        fputs("usage: check_quiet [--tokens N]\n", stderr);
        return 2;
    }
    check_counters();
    for (size_t i = 0; tiny_families[i]; i++) {
        struct test t = test_of(tiny_families[i], "f16");

        run(&t);
    }
    for (size_t i = 0; i < ARRAY_LEN(kvs); i++) {
        struct test t = test_of("qwen3", kvs[i]);

        run(&t);
    }
    run_samplers();
    printf("quiet: %d passed, %d failed\n", sum.passed, sum.failed);
    return sum.failed ? 1 : 0;
}
