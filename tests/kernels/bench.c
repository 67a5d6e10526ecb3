/* Speed of kernels as shares of what this machine can do, measured in the same process; see check.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/cpu/cpuid.h"
#include "common/median.h"
#include "tests/kernels/check.h"
#include "tests/kernels/machine.h"

#define ARENA_BYTES ((size_t)256 << 20)
#define SAMPLES     7
#define MAX_THREADS 64

void bench_machine(unsigned threads)
{
    double int8_peak, fma_peak;

    machine_peaks(&int8_peak, &fma_peak);
    printf("int8 peak %.0f Gop/s, f32 peak %.0f Gflop/s a thread; %u threads\n", int8_peak,
           fma_peak, threads);
}

/* -- threads: each sweep is one call of every thread ------------------------------------ */

struct sweep {
    void (*run)(void *arg, unsigned thread, unsigned threads);
    void *arg;
    unsigned threads;
    pthread_barrier_t start;
};

struct seat {
    struct sweep *s;
    unsigned thread;
    double seconds;
};

static void *sit(void *arg)
{
    struct seat *seat = arg;
    double t;

    pthread_barrier_wait(&seat->s->start);
    t = machine_now_s();
    seat->s->run(seat->s->arg, seat->thread, seat->s->threads);
    seat->seconds = machine_now_s() - t;
    return NULL;
}

/* Of the thread that took longest. */

static double sweep(void (*run)(void *, unsigned, unsigned), void *arg, unsigned threads)
{
    struct sweep s = {.run = run, .arg = arg, .threads = threads};
    struct seat seats[MAX_THREADS];
    pthread_t ids[MAX_THREADS];
    double longest = 0;

    pthread_barrier_init(&s.start, NULL, threads);
    for (unsigned i = 0; i < threads; i++)
        seats[i] = (struct seat){.s = &s, .thread = i};
    for (unsigned i = 1; i < threads; i++)
        pthread_create(&ids[i], NULL, sit, &seats[i]);
    sit(&seats[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&s.start);
    for (unsigned i = 0; i < threads; i++)
        longest = seats[i].seconds > longest ? seats[i].seconds : longest;
    return longest;
}

/* -- matvec ------------------------------------------------------------------------------ */

struct matrix_bench {
    const struct row *row;
    matvec_fn *matvec;
    struct matvec m;
    size_t matrices; /* of m.rows rows, one after the other */
    volatile uint64_t sink;
    struct gemm g;
    char *scratch[MAX_THREADS];
};

static void run_read(void *arg, unsigned thread, unsigned threads)
{
    struct matrix_bench *b = arg;
    size_t bytes = b->m.rows * b->m.row_bytes;
    size_t from = b->m.rows * thread / threads * b->m.row_bytes;
    size_t to = b->m.rows * (thread + 1) / threads * b->m.row_bytes;

    for (size_t i = 0; i < b->matrices; i++)
        b->sink = machine_read((const char *)b->m.w + i * bytes + from, to - from);
}

static void run_matvec(void *arg, unsigned thread, unsigned threads)
{
    struct matrix_bench *b = arg;
    size_t bytes = b->m.rows * b->m.row_bytes;
    size_t from = b->m.rows * thread / threads;
    size_t to = b->m.rows * (thread + 1) / threads;
    struct matvec m = b->m;

    m.rows = to - from;
    m.y += from;
    for (size_t i = 0; i < b->matrices; i++) {
        m.w = (const char *)b->m.w + i * bytes + from * m.row_bytes;
        b->matvec(&m);
    }
}

static char *arena(void)
{
    static char *at;

    if (!at) {
        at = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            perror("mmap");
            exit(2);
        }
        madvise(at, ARENA_BYTES, MADV_HUGEPAGE);
    }
    return at;
}

/* Real blocks at the start, copies of them after: filling 256 MiB one by one takes longer than the test. */
static void fill_arena(const struct format *f, size_t row_bytes, size_t n)
{
    char *at = arena();
    size_t bytes = 64 * row_bytes;

    fill_weights(f, FILL_RANDOM, at, 64 * n / f->block_elems);
    for (size_t done = bytes; done < ARENA_BYTES; done += bytes)
        memcpy(at + done, at, done + bytes <= ARENA_BYTES ? bytes : ARENA_BYTES - done);
}

/* In cache: how many times as fast as the twin, and how fast. */
static double times_twin(struct matrix_bench *b, double *ret_gb_s)
{
    struct matrix_bench small = *b;
    double fast[SAMPLES], slow[SAMPLES];

    small.m.rows = 64;
    for (size_t i = 0; i < SAMPLES; i++) {
        small.matrices = 1;
        small.matvec = b->row->twin.matvec;
        slow[i] = sweep(run_matvec, &small, 1);
        small.matvec = b->row->kernel.matvec;
        sweep(run_matvec, &small, 1);
        fast[i] = sweep(run_matvec, &small, 1);
    }
    *ret_gb_s = (double)(small.m.rows * small.m.row_bytes) / median(fast, SAMPLES) * 1e-9;
    return median(slow, SAMPLES) / median(fast, SAMPLES);
}

static void bench_matvec(const struct row *r, unsigned threads)
{
    const struct format *f = format_of_name(r->fmt);
    struct matrix_bench b = {.row = r, .matvec = r->kernel.matvec};
    char *acts;
    double bytes;

    b.m.n = 1024;
    b.m.rows = 3072;
    b.m.row_bytes = format_row_bytes(f, b.m.n);
    b.m.w = arena();
    b.m.act_stride = act_row_bytes(f->act, b.m.n);
    acts = aligned_alloc(64, 4 * b.m.act_stride + 64);
    for (size_t c = 0; c < 4; c++)
        fill_act(f->act, FILL_RANDOM, acts + c * b.m.act_stride, b.m.n);
    b.m.act = acts;
    b.m.y_stride = b.m.rows;
    b.m.y = calloc(4 * b.m.rows, sizeof(float));
    fill_arena(f, b.m.row_bytes, b.m.n);
    b.matrices = ARENA_BYTES / (b.m.rows * b.m.row_bytes);
    if (row_is_twin(r))
        b.matrices = 1;
    bytes = (double)(b.matrices * b.m.rows * b.m.row_bytes);

    for (b.m.cols = 1; b.m.cols <= 4; b.m.cols++) {
        double read[SAMPLES], kernel[SAMPLES], share[SAMPLES], t, cached, times;

        for (size_t i = 0; i < SAMPLES; i++) {
            read[i] = sweep(run_read, &b, threads);
            kernel[i] = sweep(run_matvec, &b, threads);
            share[i] = read[i] / kernel[i];
        }
        t = median(kernel, SAMPLES);
        times = times_twin(&b, &cached);
        printf("%s_%s_%s cols %zu: %.0f ns, %.1f GB/s, %.0f %% of the read loop (%.1f GB/s), "
               "%.0f Gop/s; in cache %.1f GB/s, %.1f x scalar\n",
               r->op, r->fmt, r->tier, b.m.cols, t / (double)b.matrices * 1e9, bytes / t * 1e-9,
               100 * median(share, SAMPLES), bytes / median(read, SAMPLES) * 1e-9,
               2.0 * (double)(b.matrices * b.m.rows * b.m.n * b.m.cols) / t * 1e-9, cached, times);
        if (row_is_twin(r))
            break;
    }
    free(acts);
    free(b.m.y);
}

/* -- gemm ------------------------------------------------------------------------------ */

#define GEMM_N    1024
#define GEMM_ROWS 1024
#define GEMM_COLS 512

static void run_gemm(void *arg, unsigned thread, unsigned threads)
{
    struct matrix_bench *b = arg;
    size_t from = GEMM_ROWS / 32 * thread / threads * 32;
    size_t to = GEMM_ROWS / 32 * (thread + 1) / threads * 32;
    struct gemm g = b->g;

    g.w = (const char *)g.w + from * g.row_bytes;
    g.rows = to - from;
    g.y += from;
    g.scratch = b->scratch[thread];
    b->row->kernel.gemm(&g);
}

static void pack_tiles(const struct kernels *k, enum format_id id, const struct gemm *g, char *out)
{
    for (size_t c = 0; c < g->cols; c += k->tile_cols[id]) {
        struct pack p = {.act = (const char *)g->act + c * g->act_stride,
                         .act_stride = g->act_stride,
                         .n = g->n,
                         .cols = g->cols - c < k->tile_cols[id] ? g->cols - c : k->tile_cols[id],
                         .out = out + c / k->tile_cols[id] * k->pack_bytes[id](g->n)};

        k->pack[id](&p);
    }
}

static void time_gemm(struct matrix_bench *b, const struct kernels *k, unsigned threads)
{
    const struct row *r = b->row;
    const struct format *f = format_of_name(r->fmt);
    enum format_id id = format_id_of(f);

    for (size_t cols = 8; cols <= GEMM_COLS; cols *= 4) {
        double t[SAMPLES], share[SAMPLES], pack = 0, ops = 2.0 * GEMM_ROWS * GEMM_N * (double)cols;
        char *packed = NULL;

        b->g.cols = cols;
        if (k->pack[id]) {
            size_t tiles = (cols + k->tile_cols[id] - 1) / k->tile_cols[id];

            packed = aligned_alloc(64, (tiles * k->pack_bytes[id](GEMM_N) + 63) / 64 * 64);
            pack_tiles(k, id, &b->g, packed);
            pack = machine_now_s();
            pack_tiles(k, id, &b->g, packed);
            pack = machine_now_s() - pack;
            b->g.packed = packed;
        }
        for (size_t i = 0; i < SAMPLES; i++) {
            double int8, f32;

            machine_burst(&int8, &f32);
            t[i] = sweep(run_gemm, b, threads);
            share[i] = ops / t[i] * 1e-9 / (f->act == ACT_F32 ? f32 : int8) / threads;
        }
        printf("%s_%s_%s cols %zu: %.0f ns, %.0f Gop/s, %.0f %% of the peak; pack %.0f ns\n", r->op,
               r->fmt, r->tier, cols, median(t, SAMPLES) * 1e9, ops / median(t, SAMPLES) * 1e-9,
               100 * median(share, SAMPLES), pack * 1e9);
        free(packed);
    }
}

static void bench_gemm(const struct row *r, unsigned threads)
{
    const struct format *f = format_of_name(r->fmt);
    struct matrix_bench b = {.row = r};
    struct kernels k;
    size_t act = act_row_bytes(f->act, GEMM_N);
    char *acts = aligned_alloc(64, GEMM_COLS * act);

    kernels_select(&k, cpu_tiers_cap(cpu_tiers(), r->tier));
    for (size_t c = 0; c < GEMM_COLS; c++)
        fill_act(f->act, FILL_RANDOM, acts + c * act, GEMM_N);
    b.g.n = GEMM_N;
    b.g.row_bytes = format_row_bytes(f, GEMM_N);
    b.g.w = arena();
    b.g.act = acts;
    b.g.act_stride = act;
    b.g.y_stride = GEMM_ROWS;
    b.g.y = calloc((size_t)GEMM_ROWS * GEMM_COLS, sizeof(float));
    fill_weights(f, FILL_RANDOM, arena(), (size_t)GEMM_ROWS * GEMM_N / f->block_elems);
    for (unsigned i = 0; i < threads; i++)
        b.scratch[i] = aligned_alloc(64, KERNELS_SCRATCH_BYTES(GEMM_N));
    time_gemm(&b, &k, threads);
    for (unsigned i = 0; i < threads; i++)
        free(b.scratch[i]);
    free(b.g.y);
    free(acts);
}

/* -- quantize --------------------------------------------------------------------------- */

static double time_quantize(quantize_fn *fn, const float *x, void *out)
{
    double t = machine_now_s();

    for (int i = 0; i < 100; i++)
        fn(x, 4096, out);
    return (machine_now_s() - t) / 100;
}

static void bench_quantize(const struct row *r)
{
    float *x = malloc(4096 * sizeof(float));
    char *out = aligned_alloc(64, 4096 * 2);
    double fast[SAMPLES], slow[SAMPLES], t;

    for (size_t i = 0; i < 4096; i++)
        x[i] = check_normal();
    for (size_t i = 0; i < SAMPLES; i++) {
        fast[i] = time_quantize(r->kernel.quantize, x, out);
        slow[i] = time_quantize(r->twin.quantize, x, out);
    }
    t = median(fast, SAMPLES);
    printf("%s_%s_%s: %.0f ns for 4096 values, %.1f GB/s, %.1f x scalar\n", r->op, r->fmt, r->tier,
           t * 1e9, 4096 * sizeof(float) / t * 1e-9, median(slow, SAMPLES) / t);
    free(x);
    free(out);
}

/* -- attention ------------------------------------------------------------------------------ */

#define HEAD         128
#define KV_HEADS     8
#define MOST_QUERIES 64

struct attn_bench {
    attn_fn *attn;
    struct attn a;
    size_t chunk_bytes; /* keys, then values */
    size_t n_chunks;
    volatile uint64_t sink;
};

static void run_attn(void *arg, unsigned thread, unsigned threads)
{
    struct attn_bench *b = arg;
    size_t from = b->n_chunks * thread / threads, to = b->n_chunks * (thread + 1) / threads;
    struct attn a = b->a;

    a.m += thread * a.n_q;
    a.l += thread * a.n_q;
    a.o += thread * a.n_q * HEAD;
    for (size_t i = from; i < to; i++) {
        a.k = arena() + i * b->chunk_bytes;
        a.v = arena() + i * b->chunk_bytes + b->chunk_bytes / 2;
        b->attn(&a);
    }
}

static void run_read_chunks(void *arg, unsigned thread, unsigned threads)
{
    struct attn_bench *b = arg;
    size_t from = b->n_chunks * thread / threads, to = b->n_chunks * (thread + 1) / threads;

    b->sink = machine_read(arena() + from * b->chunk_bytes, (to - from) * b->chunk_bytes);
}

/* A few queries: bytes of the cache; many: multiplications and additions. */
static void time_attn(const struct row *r, struct attn_bench *b, unsigned threads)
{
    double read[SAMPLES], share[SAMPLES], t[SAMPLES], bytes, gflops, int8_peak, fma_peak;

    machine_peaks(&int8_peak, &fma_peak);
    for (size_t i = 0; i < SAMPLES; i++) {
        read[i] = sweep(run_read_chunks, b, threads);
        t[i] = sweep(run_attn, b, threads);
        share[i] = read[i] / t[i];
    }
    bytes = (double)(b->chunk_bytes * b->n_chunks);
    gflops =
        4.0 * HEAD * KERNELS_CHUNK * (double)(b->a.n_q * b->n_chunks) / median(t, SAMPLES) * 1e-9;
    printf("%s_%s_%s queries %zu: %.0f ns a chunk, %.1f GB/s, %.0f %% of the read loop (%.1f "
           "GB/s); %.1f Gflop/s, %.0f %% of the peak\n",
           r->op, r->fmt, r->tier, b->a.n_q, median(t, SAMPLES) / (double)b->n_chunks * 1e9,
           bytes / median(t, SAMPLES) * 1e-9, 100 * median(share, SAMPLES),
           bytes / median(read, SAMPLES) * 1e-9, gflops, 100 * gflops / (fma_peak * threads));
}

/* What a token of decode costs in one layer, by the depth of its context: two queries a kv head. */
static void time_depths(const struct row *r, struct attn_bench *b, unsigned threads)
{
    for (size_t depth = 2048; depth <= 32768; depth *= 4) {
        double read[SAMPLES], share[SAMPLES], t[SAMPLES], bytes;

        b->n_chunks = KV_HEADS * depth / KERNELS_CHUNK;
        bytes = (double)(b->chunk_bytes * b->n_chunks);
        if (bytes > (double)ARENA_BYTES)
            return;
        for (size_t i = 0; i < SAMPLES; i++) {
            read[i] = sweep(run_read_chunks, b, threads);
            t[i] = sweep(run_attn, b, threads);
            share[i] = read[i] / t[i];
        }
        printf("%s_%s_%s depth %zu: %.2f ns a key of a head, %.1f GB/s, %.0f %% of the read loop\n",
               r->op, r->fmt, r->tier, depth, median(t, SAMPLES) / (double)(KV_HEADS * depth) * 1e9,
               bytes / median(t, SAMPLES) * 1e-9, 100 * median(share, SAMPLES));
    }
}

static struct attn_bench attn_bench_of(const struct row *r, size_t n_q, const float *q, float *out,
                                       unsigned threads)
{
    size_t row = format_row_bytes(format_of_name(r->fmt), HEAD);

    return (struct attn_bench){
        .attn = r->kernel.attn,
        .chunk_bytes = 2 * KERNELS_CHUNK * row,
        .a =
            {
                .q = q,
                .n_q = n_q,
                .q_stride = HEAD,
                .k_stride = row,
                .v_stride = row,
                .to = KERNELS_CHUNK,
                .head_dim = HEAD,
                .v_dim = HEAD,
                .scale = 0.088f,
                .m = out,
                .l = out + threads * MOST_QUERIES,
                .o = out + threads * 2 * MOST_QUERIES,
            },
    };
}

static void bench_attn(const struct row *r, unsigned threads)
{
    static const size_t queries[] = {1, 2, 4, 8, MOST_QUERIES};
    const struct format *f = format_of_name(r->fmt);
    float *q = malloc(MOST_QUERIES * HEAD * sizeof(float)),
          *out = malloc(threads * MOST_QUERIES * (HEAD + 2) * sizeof(float));
    struct attn_bench b;

    fill_arena(f, format_row_bytes(f, HEAD), HEAD);
    for (size_t i = 0; i < MOST_QUERIES * HEAD; i++)
        q[i] = check_normal();
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        b = attn_bench_of(r, queries[i], q, out, threads);
        b.n_chunks = ARENA_BYTES / b.chunk_bytes / (queries[i] > 8 || row_is_twin(r) ? 64 : 1);
        time_attn(r, &b, threads);
    }
    if (!row_is_twin(r)) {
        b = attn_bench_of(r, 2, q, out, threads);
        time_depths(r, &b, threads);
    }
    free(q);
    free(out);
}

void bench_row(const struct row *r, unsigned threads)
{
    if (strcmp(r->op, "matvec") == 0)
        bench_matvec(r, threads);
    else if (strcmp(r->op, "gemm") == 0)
        bench_gemm(r, threads);
    else if (strcmp(r->op, "quantize") == 0)
        bench_quantize(r);
    else if (strcmp(r->op, "attn") == 0)
        bench_attn(r, threads);
}
