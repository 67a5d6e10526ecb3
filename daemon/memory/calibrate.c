/*
 * Measuring a drive and keeping the figures.  See calibrate.h.
 *
 * All cells of the table go through the reader itself, so that what is measured
 * is what will be had, engine and all.
 */

#include "daemon/memory/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/median.h"
#include "daemon/memory/kept.h"

#define DEPTH_MAX     16
#define SMALLEST_FILE ((size_t)64 << 20) /* below: what is measured is not kept */
#define ROUNDS        2                  /* of all cells; the better one counts: noise only slows */
#define LAST_TURNS    4                  /* of the chosen window, over all sizes … */
#define LAST_CELLS    4                  /* … each as long as so many cells */
#define BURST_CELLS   12                 /* as long as so many cells: bursts after a silence */
#define CELLS                                                                                      \
    (ROUNDS * (CALIBRATE_SIZES * CALIBRATE_DEPTHS + 1) +                                           \
     LAST_TURNS * LAST_CELLS * CALIBRATE_SIZES + BURST_CELLS)
#define BURSTS     11 /* of which the middle one tells what it takes to begin */
#define FEW        3u /* reads of an expert … */
#define BURST_SIZE 1  /* … of so many bytes, by index */
/*
 * The longer a drive has been idle, the longer it takes to begin: on a virtio disk
 * 0.07 ms after 2 ms, 0.2 to 0.3 after 12.  A token that misses little reads once in
 * about so long.
 */
#define SILENCE_US    10000
#define WINDOW_LEAST  4 /* while hits are computed, fewer leave the drive idle */
#define NEARLY        0.95
#define STATE_VERSION 7
#define STATE_MAX     16384

const size_t calibrate_sizes[CALIBRATE_SIZES] = {256 << 10, 1 << 20, 2 << 20};
const unsigned calibrate_depths[CALIBRATE_DEPTHS] = {1, 2, 4, 8, 16};

struct cell {
    double rate; /* bytes a second; 0: not measured */
    double cpu_s_per_gib;
};

struct trial {
    int fd;
    size_t file_bytes;
    char *buffers;
    size_t buffers_bytes;
    struct read reads[DEPTH_MAX];
    uint64_t turn;     /* walks over the file, so that no range is read twice soon */
    size_t cell_bytes; /* a cell ends at the first of these two */
    int64_t cell_us;
    const struct calibrate_options *options;
};

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

uint64_t calibrate_range(uint64_t turn, uint64_t n)
{
    uint64_t step = n * 618 / 1000 + !n;

    for (;; step++) { /* coprime to n: all come before any comes again */
        uint64_t a = n, b = step;

        while (b) {
            uint64_t rest = a % b;

            a = b;
            b = rest;
        }
        if (a <= 1)
            return n ? turn % n * step % n : 0;
    }
}

/*
 * A range of this size, far from the ones before it, into the next of a read's
 * own buffers, which are every depth-th: a few that stay in the processor's
 * cache are filled up to a tenth faster than weights spread over memory.
 */
static void place(struct trial *t, struct read *rd, size_t size, unsigned depth)
{
    uint64_t i = calibrate_range(t->turn++, t->file_bytes / size);
    size_t at = (size_t)((char *)rd->buffer - t->buffers) / size + depth;

    if (at >= t->buffers_bytes / size)
        at = (size_t)(rd - t->reads);
    rd->buffer = t->buffers + at * size;
    rd->offset = i * size;
    rd->bytes = MIN(size, t->file_bytes - rd->offset);
    rd->name = "of the drive's trial";
}

/* What has landed, and whether all of it has. */
static int landed(struct read *const *reads, unsigned n, size_t *ret_bytes, struct err *err)
{
    *ret_bytes = 0;
    for (unsigned i = 0; i < n; i++) {
        int r = read_check(reads[i], err);

        if (r < 0)
            return r;
        *ret_bytes += reads[i]->bytes;
    }
    return 0;
}

static int go_on(const struct trial *t, struct err *err)
{
    if (!t->options->stop || !t->options->stop(t->options->stop_arg))
        return 0;
    return err_set(err, ERR_CANCELLED, "measuring the drive was broken off");
}

/*
 * Keeps depth reads in flight for a while.  A drive may tell of several at once,
 * so the clock runs from what has landed together to what has landed together.
 */
static int run_cell(struct trial *t, size_t size, unsigned depth, bool buffered, struct cell *ret,
                    struct err *err)
{
    struct reader_drive drive = {.window = depth, .segment_bytes = size, .buffered = buffered};
    struct reader_options options = {.drives = &drive};
    struct reader *r;
    struct read *list[DEPTH_MAX];
    size_t bytes = 0, more;
    int64_t t0 = 0, now = 0, end = clock_us() + t->cell_us;
    double cpu0 = 0;
    unsigned n = depth;
    int rc = go_on(t, err);

    if (rc >= 0)
        rc = reader_create(&t->fd, 1, &options, &r, err);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < n; i++) {
        t->reads[i] = (struct read){.buffer = t->buffers + i * size, .capacity = size};
        list[i] = &t->reads[i];
    }
    while (now < end && bytes < t->cell_bytes) {
        for (unsigned i = 0; i < n; i++)
            place(t, list[i], size, depth);
        reader_submit(r, list, n);
        n = reader_wait(r, 1, list, depth);
        now = clock_us();
        rc = landed(list, n, &more, err);
        if (rc < 0)
            break;
        if (t0) {
            bytes += more;
        } else {
            t0 = now;
            cpu0 = cpu_seconds();
        }
    }
    if (rc == 0 && now > t0) {
        double gib = (double)bytes / (double)(1 << 30);

        ret->rate = (double)bytes / ((double)(now - t0) / 1e6);
        ret->cpu_s_per_gib = (cpu_seconds() - cpu0) / gib;
    }
    reader_destroy(r);
    return rc;
}

static bool fits(size_t size, unsigned depth, const struct trial *t)
{
    return size * depth <= CALIBRATE_STAGING_LEAST &&
           size * depth * 2 <= MAX(t->file_bytes, (size_t)1);
}

struct table {
    struct cell direct[CALIBRATE_SIZES][CALIBRATE_DEPTHS];
    struct cell buffered; /* the middle size and depth */
};

static void keep_better(struct cell *best, const struct cell *c)
{
    if (c->rate > best->rate)
        *best = *c;
}

static int measure_all(struct trial *t, bool direct, struct table *ret, struct err *err)
{
    const size_t size = calibrate_sizes[1];
    const unsigned depth = calibrate_depths[2];

    for (int round = 0; round < ROUNDS; round++) {
        struct cell c = {0};
        int rc;

        for (int i = 0; i < CALIBRATE_SIZES; i++)
            for (int k = 0; k < CALIBRATE_DEPTHS; k++) {
                if (!fits(calibrate_sizes[i], calibrate_depths[k], t))
                    continue;
                c = (struct cell){0};
                rc = run_cell(t, calibrate_sizes[i], calibrate_depths[k], !direct, &c, err);
                if (rc < 0)
                    return rc;
                keep_better(&ret->direct[i][k], &c);
            }
        c = (struct cell){0};
        if (direct && fits(size, depth, t)) {
            rc = run_cell(t, size, depth, true, &c, err);
            if (rc < 0)
                return rc;
            keep_better(&ret->buffered, &c);
        }
    }
    return 0;
}

/* ---- what the table says ---- */

static void choose(const struct table *t, struct calibration *c)
{
    double best = 0, best_of_size[CALIBRATE_SIZES] = {0};
    int size = 1, depth;

    for (int i = 0; i < CALIBRATE_SIZES; i++)
        for (int k = 0; k < CALIBRATE_DEPTHS; k++) {
            c->rates[i][k] = t->direct[i][k].rate;
            best_of_size[i] = MAX(best_of_size[i], t->direct[i][k].rate);
        }
    for (int i = 0; i < CALIBRATE_SIZES;
         i++) /* the largest that is nearly the best: whole slices */
        best = MAX(best, best_of_size[i]);
    for (int i = 0; i < CALIBRATE_SIZES; i++)
        if (best_of_size[i] >= NEARLY * best)
            size = i;
    for (depth = 0; depth < CALIBRATE_DEPTHS - 1; depth++)
        if (t->direct[size][depth].rate >= NEARLY * best_of_size[size] &&
            calibrate_depths[depth] >= WINDOW_LEAST)
            break;
    while (depth && t->direct[size][depth].rate == 0)
        depth--;
    c->segment_bytes = calibrate_sizes[size];
    c->window = calibrate_depths[depth];
    c->buffered_rate = t->buffered.rate;
    c->buffered_cpu_s_per_gib = t->buffered.cpu_s_per_gib;
}

/* The column of the table where reads of a size are as many as the window's bytes let through. */
static int window_depth(const struct calibration *c, int size)
{
    size_t most = c->window * c->segment_bytes / calibrate_sizes[size];
    int depth = CALIBRATE_DEPTHS - 1;

    while (depth && (calibrate_depths[depth] > most || !c->rates[size][depth]))
        depth--;
    return depth;
}

/*
 * The chosen window again, for longer: the best of many cells is partly luck.
 * Every size that is read in it, in turns, so that they can be compared although
 * a shared drive differs from one tenth of a second to the next.
 */
static int measure_chosen(struct trial *t, struct calibration *c, struct err *err)
{
    double s_per_byte[CALIBRATE_SIZES] = {0};
    int turns[CALIBRATE_SIZES] = {0};
    struct trial longer = *t;

    longer.cell_us *= LAST_CELLS;
    longer.cell_bytes *= LAST_CELLS;
    for (int turn = 0; turn < LAST_TURNS; turn++)
        for (int i = 0; i < CALIBRATE_SIZES && calibrate_sizes[i] <= c->segment_bytes; i++) {
            struct cell cell = {0};
            int r = run_cell(&longer, calibrate_sizes[i], calibrate_depths[window_depth(c, i)],
                             !c->direct, &cell, err);

            if (r < 0)
                return r;
            if (cell.rate <= 0) /* the file is too small */
                continue;
            s_per_byte[i] += 1 / cell.rate;
            turns[i]++;
            c->cpu_s_per_gib = cell.cpu_s_per_gib;
        }
    for (int i = 0; i < CALIBRATE_SIZES; i++)
        if (turns[i]) /* the last is that of segments */
            c->rate = c->rates[i][window_depth(c, i)] = turns[i] / s_per_byte[i];
    t->turn = longer.turn;
    c->window = MAX(c->window, WINDOW_LEAST);
    return 0;
}

/* So many reads at once after a silence, and waits for all; *ret_s: how long. */
static int run_burst(struct trial *t, struct reader *r, size_t size, unsigned n, double *ret_s,
                     struct err *err)
{
    struct read *list[DEPTH_MAX];
    int64_t t0 = clock_us();
    size_t bytes;
    int rc = 0;

    /* as a layer does that has computed: not asleep */
    while (clock_us() - t0 < SILENCE_US)
        continue;
    for (unsigned i = 0; i < n; i++) {
        list[i] = &t->reads[i];
        place(t, list[i], size, DEPTH_MAX);
    }
    t0 = clock_us();
    reader_submit(r, list, n);
    for (unsigned left = n; left && rc >= 0;) {
        unsigned more = reader_wait(r, 1, list, left);

        rc = landed(list, more, &bytes, err);
        left -= more;
    }
    *ret_s = (double)(clock_us() - t0) / 1e6;
    return rc;
}

/* On a slow drive fewer bursts tell. */
static int measure_wait(struct trial *t, struct calibration *c, struct err *err)
{
    size_t size = MIN(calibrate_sizes[BURST_SIZE], c->segment_bytes), bytes = 0;
    struct reader_drive drive = calibrate_reader(c);
    struct reader_options options = {.drives = &drive};
    struct reader *r;
    int64_t end = clock_us() + t->cell_us * BURST_CELLS;
    double s[BURSTS], few = 0, many = 0;
    unsigned n_many;
    size_t n = 0;
    int rc;

    /* one window: of more, the drive may begin on the rest when it has told of all of these */
    n_many = (unsigned)MIN(drive.window * drive.segment_bytes / size, (size_t)DEPTH_MAX);
    if (n_many <= FEW || !fits(size, DEPTH_MAX, t))
        return 0;
    rc = reader_create(&t->fd, 1, &options, &r, err);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < DEPTH_MAX; i++)
        t->reads[i] = (struct read){.buffer = t->buffers + i * size, .capacity = size};
    do {
        rc = go_on(t, err);
        if (rc >= 0)
            rc = run_burst(t, r, size, FEW, &few, err);
        if (rc >= 0)
            rc = run_burst(t, r, size, n_many, &many, err);
        /* n reads take what it takes to begin, and n times what each does */
        s[n++] = few - FEW * (many - few) / (n_many - FEW);
        bytes += (FEW + n_many) * size;
    } while (rc >= 0 && n < BURSTS && clock_us() < end && bytes < t->cell_bytes * BURST_CELLS);
    reader_destroy(r);
    if (rc < 0)
        return rc;
    c->wait_s = MAX(median(s, n), 0.0);
    return 0;
}

static void explain(struct calibration *c)
{
    size_t n = (size_t)snprintf(
        c->why, sizeof c->why,
        "%s: %.2f GB/s with %u reads in flight, %.2f ms to begin, %.2f s of CPU per GiB",
        c->direct ? "direct" : "buffered, the file system has no direct I/O", c->rate / 1e9,
        c->window, c->wait_s * 1e3, c->cpu_s_per_gib);

    if (c->buffered_rate > 0)
        snprintf(c->why + n, sizeof c->why - n,
                 "; buffered %.2f GB/s, %.2f s, and a copy in the page cache",
                 c->buffered_rate / 1e9, c->buffered_cpu_s_per_gib);
}

/* ---- what is kept ---- */

static int name_drive(int fd, struct calibration *c, struct err *err)
{
    struct stat st;
    struct statfs fs;

    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
        return err_set(err, ERR_IO, "the file system of a model file does not answer");
    snprintf(c->key, sizeof c->key, "%u-%u-%lx-%x%x", major(st.st_dev), minor(st.st_dev),
             (unsigned long)fs.f_type, (unsigned)fs.f_fsid.__val[0], (unsigned)fs.f_fsid.__val[1]);
    return 0;
}

static char *state_path(const char *dir, const struct calibration *c)
{
    return xasprintf("%s/drive-%s.json", dir, c->key);
}

static void save(const char *dir, const struct calibration *c)
{
    char *path = state_path(dir, c);
    json_t *rates = json_array();
    json_t *all;

    for (int i = 0; i < CALIBRATE_SIZES; i++)
        for (int k = 0; k < CALIBRATE_DEPTHS; k++)
            json_array_append_new(rates, json_real(c->rates[i][k]));
    all = json_pack("{s:i, s:I, s:b, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:o}", "version",
                    STATE_VERSION, "at", (json_int_t)clock_wall_s(), "direct", c->direct, "window",
                    (int)c->window, "segment_bytes", (json_int_t)c->segment_bytes, "rate", c->rate,
                    "cpu_s_per_gib", c->cpu_s_per_gib, "wait_s", c->wait_s, "buffered_rate",
                    c->buffered_rate, "buffered_cpu_s_per_gib", c->buffered_cpu_s_per_gib, "rates",
                    rates);
    kept_save(dir, path, all);
    free(path);
}

/* The fields of a kept file; what is missing or odd makes it worthless. */
static bool take(const json_t *all, struct calibration *c)
{
    int64_t window = 0, segment = 0;
    const json_t *rates = json_object_get(all, "rates");

    if (!kept_is_fresh(all, STATE_VERSION, CALIBRATE_KEPT_S) ||
        json_get_bool(all, "direct", &c->direct, NULL) != 1 ||
        json_get_int(all, "window", 1, READER_WINDOW_MAX, &window, NULL) != 1 ||
        json_get_int(all, "segment_bytes", READER_ALIGN, 1 << 30, &segment, NULL) != 1 ||
        json_get_double(all, "rate", 1, 1e15, &c->rate, NULL) != 1 ||
        json_get_double(all, "cpu_s_per_gib", 0, 1e6, &c->cpu_s_per_gib, NULL) != 1 ||
        json_get_double(all, "wait_s", 0, 60, &c->wait_s, NULL) != 1 ||
        json_get_double(all, "buffered_rate", 0, 1e15, &c->buffered_rate, NULL) != 1 ||
        json_get_double(all, "buffered_cpu_s_per_gib", 0, 1e6, &c->buffered_cpu_s_per_gib, NULL) !=
            1 ||
        json_array_size(rates) != (size_t)CALIBRATE_SIZES * CALIBRATE_DEPTHS)
        return false;
    for (int i = 0; i < CALIBRATE_SIZES; i++)
        for (int k = 0; k < CALIBRATE_DEPTHS; k++)
            c->rates[i][k] =
                json_number_value(json_array_get(rates, (size_t)i * CALIBRATE_DEPTHS + (size_t)k));
    c->window = (unsigned)window;
    c->segment_bytes = (size_t)segment;
    return true;
}

static bool load(const char *dir, struct calibration *c)
{
    char *path = state_path(dir, c);
    struct calibration got = *c;
    json_t *all = kept_load(path, STATE_MAX);
    bool ok = all && take(all, &got);

    if (ok) {
        *c = got;
        c->from_file = true;
        explain(c);
    }
    json_decref(all);
    free(path);
    return ok;
}

static bool reads_direct(int fd)
{
    struct reader *r;
    struct reader_stats s = {0};

    if (reader_create(&fd, 1, NULL, &r, NULL) == 0) {
        reader_stats(r, &s);
        reader_destroy(r);
    }
    return s.direct;
}

bool calibrate_known(int fd, const char *state_dir, struct calibration *ret)
{
    struct calibration c = {0};

    if (!state_dir || name_drive(fd, &c, NULL) < 0 || !load(state_dir, &c))
        return false;
    *ret = c;
    return true;
}

int calibrate_drive(int fd, const struct calibrate_options *options, struct calibration *ret,
                    struct err *err)
{
    struct calibration c = {0};
    struct trial t = {.fd = fd, .options = options};
    struct table table = {0};
    struct stat st;
    int r = name_drive(fd, &c, err);

    if (r < 0)
        return r;
    if (options->state_dir && !options->again && load(options->state_dir, &c)) {
        *ret = c;
        return 0;
    }
    if (fstat(fd, &st) < 0 || st.st_size <= 0)
        return err_set(err, ERR_IO, "an empty file says nothing about its drive");
    t.file_bytes = (size_t)st.st_size;
    t.cell_bytes = (options->most_bytes ? options->most_bytes : CALIBRATE_BYTES) / CELLS;
    t.cell_us = (options->most_ms ? options->most_ms : CALIBRATE_MS) * 1000 / CELLS;
    /* Huge pages, as slots are: a read is then a few pieces for the drive instead of hundreds, and
     * three times as fast on a virtio disk. */
    t.buffers_bytes = MAX(options->staging_bytes, CALIBRATE_STAGING_LEAST);
    t.buffers = alloc_pages(t.buffers_bytes, 1);
    if (!t.buffers)
        return err_set(err, ERR_NOMEM, "the kernel has no %zu bytes for read buffers",
                       t.buffers_bytes);
    c.direct = reads_direct(fd);
    r = measure_all(&t, c.direct, &table, err);
    if (r >= 0) {
        choose(&table, &c);
        r = measure_chosen(&t, &c, err);
    }
    if (r >= 0)
        r = measure_wait(&t, &c, err);
    free_pages(t.buffers, t.buffers_bytes);
    if (r < 0)
        return r;
    explain(&c);
    if (options->state_dir && t.file_bytes >= SMALLEST_FILE && c.rate > 0)
        save(options->state_dir, &c);
    *ret = c;
    return 0;
}

int calibrate_within(struct ledger *l, const char *who, int fd,
                     const struct calibrate_options *options, struct calibration *ret,
                     struct err *err)
{
    struct calibrate_options o = *options;
    int r;

    if (calibrate_known(fd, o.state_dir, ret))
        return 0;
    o.again = true;
    o.staging_bytes = CALIBRATE_STAGING;
    if (ledger_reserve(l, POOL_RAM, ACCOUNT_STAGING, o.staging_bytes, who, NULL) < 0) {
        o.staging_bytes = CALIBRATE_STAGING_LEAST;
        r = ledger_reserve(l, POOL_RAM, ACCOUNT_STAGING, o.staging_bytes, who, err);
        if (r < 0)
            return r;
    }
    if (o.charged)
        *o.charged += o.staging_bytes;
    r = calibrate_drive(fd, &o, ret, err);
    if (o.charged)
        *o.charged -= o.staging_bytes;
    ledger_release(l, POOL_RAM, ACCOUNT_STAGING, o.staging_bytes);
    return r;
}

static double table_rate(const struct calibration *c, int size)
{
    return c->rates[size][window_depth(c, size)];
}

double calibrate_rate(const struct calibration *c, double read_bytes)
{
    double lower = table_rate(c, 0), rate = lower;

    for (int i = 1; i < CALIBRATE_SIZES && calibrate_sizes[i] <= c->segment_bytes; i++) {
        double from = (double)calibrate_sizes[i - 1], to = (double)calibrate_sizes[i];
        double upper = table_rate(c, i);

        if (read_bytes > from)
            rate = lower + (upper - lower) * fmin(1, log2(read_bytes / from) / log2(to / from));
        lower = upper;
    } /* lower is now that of segments */
    return lower > 0 && rate > 0 ? c->rate * fmin(1, rate / lower) : c->rate;
}

struct reader_drive calibrate_reader(const struct calibration *c)
{
    return (struct reader_drive){
        .window = c->window, .segment_bytes = c->segment_bytes, .buffered = !c->direct};
}
