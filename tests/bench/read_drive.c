/*
 * How near the reader comes to the drive: the calibration's table, then slices of
 * an expert's size at places of no order, as decode reads them, against plain
 * preads of one thread and against the calibrated rate.
 *
 *     read_drive [--slice BYTES] [--seconds S] [--pool] [--buffered] [--registered] [--in-order] [--json]
 *                [--state DIR] [--bursts N[:COUNT],…] [--silence US] FILE
 *
 * --bursts: as decode reads that mostly hits: the first N experts at once, the next after a silence, and
 * so on, each of three slices.  N:COUNT: so many such bursts; all are mixed.
 * --in-order: slices one after another, as dense weights stream.  --json: the reader's rate alone.
 * --state: reads as a daemon with this state folder does, which has calibrated the drive.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/memory/calibrate.h"

/* All in huge pages: small ones cost the drive half its rate. */
#define HUGE_PAGE   ((size_t)2 << 20)
#define SLOTS_MIN   24
#define SLOTS_MAX   96
#define SLOTS_BYTES ((size_t)64 << 20) /* fewer would stay in a cache */

struct options {
    size_t slice;
    double seconds;
    bool pool, buffered, registered, in_order, json;
    const char *bursts;
    int64_t silence_us;
};

/* A reader, and slots for what it reads. */
struct rig {
    struct reader *r;
    char *slots;
    size_t slots_bytes, cap;
    unsigned n_slots;
    struct read reads[SLOTS_MAX];
};

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* The slice of this number; off the block boundary, as tensor data is. */
static uint64_t slice_at(uint64_t i, const struct options *o, uint64_t file_bytes)
{
    uint64_t n = file_bytes / o->slice - 1;

    return (o->in_order ? i % n : calibrate_range(i, n)) * o->slice + 1824;
}

/* Elsewhere in every run: what was read a moment ago comes faster again. */
static uint64_t first_turn(void)
{
    return (uint64_t)clock_us();
}

static void tell(const char *what, double bytes, double seconds, double cpu, double of)
{
    printf("%-28s %7.2f GB/s  %5.3f s of CPU per GiB", what, bytes / seconds / 1e9,
           cpu / (bytes / (double)(1 << 30)));
    if (of > 0)
        printf("  %5.1f %% of calibrated", 100 * bytes / seconds / of);
    printf("\n");
}

static void plain(int fd, const struct options *o, uint64_t file_bytes, double of)
{
    char link[64];
    size_t cap = reader_slot_bytes_any(o->slice);
    char *buf = alloc_pages(cap, 1);
    double bytes = 0, cpu = cpu_seconds();
    int64_t t0 = clock_us();
    uint64_t turn = first_turn();
    int direct;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    direct = open(link, O_RDONLY | O_DIRECT | O_CLOEXEC);
    while ((double)(clock_us() - t0) / 1e6 < o->seconds && direct >= 0) {
        uint64_t at = slice_at(turn++, o, file_bytes);
        ssize_t got = pread(direct, buf, reader_slot_bytes(at, o->slice),
                            (off_t)(at / READER_ALIGN * READER_ALIGN));

        if (got < 0)
            break;
        bytes += (double)got;
    }
    if (bytes > 0)
        tell("pread, one thread, direct", bytes, (double)(clock_us() - t0) / 1e6,
             cpu_seconds() - cpu, of);
    if (direct >= 0)
        close(direct);
    free_pages(buf, cap);
}

static void report(const struct reader_stats *s, double seconds, double cpu,
                   const struct calibration *c)
{
    printf("%s, %s, window of %zu KiB, %.2f %% over-read\n", s->engine,
           s->direct ? "direct" : "buffered", s->window_bytes >> 10,
           100.0 * (double)(s->read_bytes - s->wanted_bytes) / (double)s->wanted_bytes);
    tell("reader", (double)s->read_bytes, seconds, cpu, c->rate);
}

static bool rig_open(struct rig *g, int fd, const struct options *o, const struct calibration *c)
{
    struct reader_drive drive = calibrate_reader(c);
    struct reader_options ro = {.drives = &drive, .engine = o->pool ? READER_POOL : READER_AUTO};
    struct err err = {0};

    drive.buffered |= o->buffered;
    *g = (struct rig){.cap = reader_slot_bytes_any(o->slice)};
    g->n_slots = (unsigned)MIN(MAX(SLOTS_BYTES / g->cap, SLOTS_MIN), SLOTS_MAX);
    g->slots_bytes = (g->n_slots * g->cap + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    g->slots = alloc_pages(g->slots_bytes, 1);
    if (!g->slots || reader_create(&fd, 1, &ro, &g->r, &err) < 0) {
        fprintf(stderr, "read_drive: %s\n", err.text);
        return false;
    }
    memset(g->slots, 1, g->slots_bytes);
    for (unsigned i = 0; i < g->n_slots; i++)
        g->reads[i] =
            (struct read){.buffer = g->slots + i * g->cap, .capacity = g->cap, .name = "slice"};
    if (o->registered && !reader_register(g->r, g->slots, g->slots_bytes))
        printf("(the kernel refuses to register buffers)\n");
    return true;
}

static void rig_close(struct rig *g)
{
    reader_destroy(g->r);
    free_pages(g->slots, g->slots_bytes);
}

static unsigned take(struct rig *g, struct read **done, unsigned cap)
{
    unsigned n = reader_wait(g->r, 1, done, cap);
    struct err err = {0};

    for (unsigned i = 0; i < n; i++)
        if (read_check(done[i], &err) < 0)
            fprintf(stderr, "read_drive: %s\n", err.text);
    return n;
}

static int through_reader(int fd, const struct options *o, const struct calibration *c,
                          uint64_t file_bytes)
{
    struct read *done[SLOTS_MAX];
    struct reader_stats s;
    struct rig g;
    uint64_t turn = first_turn();
    int64_t t0;
    double cpu, seconds;

    if (!rig_open(&g, fd, o, c))
        return 1;
    t0 = clock_us();
    cpu = cpu_seconds();
    for (unsigned i = 0; i < g.n_slots; i++)
        done[i] = &g.reads[i];
    for (unsigned n = g.n_slots; n;) {
        bool more = (double)(clock_us() - t0) / 1e6 < o->seconds;

        for (unsigned i = 0; more && i < n; i++) {
            done[i]->offset = slice_at(turn++, o, file_bytes);
            done[i]->bytes = o->slice;
        }
        if (more)
            reader_submit(g.r, done, n);
        n = take(&g, done, g.n_slots);
    }
    seconds = (double)(clock_us() - t0) / 1e6;
    reader_stats(g.r, &s);
    if (o->json)
        printf("{\"bytes_per_s\": %.0f}\n", (double)s.read_bytes / seconds);
    else
        report(&s, seconds, cpu_seconds() - cpu, c);
    rig_close(&g);
    return 0;
}

/* ---- bursts ---- */

#define EXPERT     3u /* slices */
#define BURSTS_MAX 1024

/* The list of --bursts: experts of each, those of a kind far from one another. */
static unsigned parse_bursts(const char *list, unsigned ret[BURSTS_MAX])
{
    unsigned plain[BURSTS_MAX], n = 0;
    char *end;

    for (const char *p = list; *p && n < BURSTS_MAX;) {
        unsigned long experts = strtoul(p, &end, 10);
        unsigned long count = *end == ':' ? strtoul(end + 1, &end, 10) : 1;

        if (end == p || (*end && *end != ','))
            return 0;
        while (count-- && n < BURSTS_MAX)
            plain[n++] = (unsigned)MIN(experts, (unsigned long)SLOTS_MIN / EXPERT);
        p = *end ? end + 1 : end;
    }
    for (unsigned i = 0; i < n; i++)
        ret[i] = plain[calibrate_range(i, n)];
    return n;
}

/* Expert by expert, as a choice is read; how long until all are there. */
static int64_t burst(struct rig *g, const struct options *o, uint64_t file_bytes, unsigned experts,
                     uint64_t *turn)
{
    unsigned n = experts * EXPERT;
    struct read *list[SLOTS_MAX], *done[SLOTS_MAX];
    int64_t t0 = clock_us();

    /* computing, that is, not asleep */
    while (clock_us() - t0 < o->silence_us)
        continue;
    for (unsigned i = 0; i < n; i++) {
        list[i] = &g->reads[*turn % g->n_slots];
        list[i]->offset = slice_at((*turn)++, o, file_bytes);
        list[i]->bytes = o->slice;
    }
    t0 = clock_us();
    for (unsigned i = 0; i < n; i += EXPERT)
        reader_submit(g->r, list + i, EXPERT);
    while (n)
        n -= take(g, done, n);
    return clock_us() - t0;
}

static int in_bursts(int fd, const struct options *o, const struct calibration *c,
                     uint64_t file_bytes)
{
    unsigned experts[BURSTS_MAX], n = parse_bursts(o->bursts, experts);
    struct reader_stats s;
    struct rig g;
    uint64_t turn = first_turn();
    int64_t us = 0;

    if (!n) {
        fprintf(stderr, "read_drive: --bursts takes a list like 1:60,2:30,4:8\n");
        return 2;
    }
    if (!rig_open(&g, fd, o, c))
        return 1;
    for (unsigned i = 0; i < n; i++)
        us += burst(&g, o, file_bytes, experts[i], &turn);
    reader_stats(g.r, &s);
    if (o->json)
        printf("{\"bytes_per_s\": %.0f}\n", (double)s.read_bytes * 1e6 / (double)MAX(us, 1));
    else
        printf("reader, in bursts: %.2f GB/s, %.1f %% of calibrated\n",
               (double)s.read_bytes / (double)MAX(us, 1) / 1e3,
               100 * (double)s.read_bytes * 1e6 / (double)MAX(us, 1) / c->rate);
    rig_close(&g);
    return 0;
}

static void print_table(const struct calibration *c)
{
    printf("GB/s by size and reads in flight:\n        ");
    for (int k = 0; k < CALIBRATE_DEPTHS; k++)
        printf("%7u", calibrate_depths[k]);
    for (int i = 0; i < CALIBRATE_SIZES; i++) {
        printf("\n%5zu KiB", calibrate_sizes[i] >> 10);
        for (int k = 0; k < CALIBRATE_DEPTHS; k++)
            printf("%7.2f", c->rates[i][k] / 1e9);
    }
    printf("\n%s\n", c->why);
}

int main(int argc, char **argv)
{
    static const struct option words[] = {{"slice", required_argument, NULL, 's'},
                                          {"seconds", required_argument, NULL, 't'},
                                          {"pool", no_argument, NULL, 'p'},
                                          {"buffered", no_argument, NULL, 'b'},
                                          {"registered", no_argument, NULL, 'r'},
                                          {"in-order", no_argument, NULL, 'o'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"state", required_argument, NULL, 'd'},
                                          {"bursts", required_argument, NULL, 'n'},
                                          {"silence", required_argument, NULL, 'w'},
                                          {0}};
    struct options o = {.slice = 884736, .seconds = 1, .silence_us = 2000};
    struct calibrate_options co = {.again = true, .staging_bytes = CALIBRATE_STAGING};
    struct calibration c;
    struct err err = {0};
    struct stat st;
    int64_t t0;
    int opt, fd, rc;

    while ((opt = getopt_long(argc, argv, "", words, NULL)) >= 0)
        switch (opt) {
        case 's': o.slice = strtoull(optarg, NULL, 10); break;
        case 't': o.seconds = strtod(optarg, NULL); break;
        case 'p': o.pool = true; break;
        case 'b': o.buffered = true; break;
        case 'r': o.registered = true; break;
        case 'o': o.in_order = true; break;
        case 'j': o.json = true; break;
        case 'n': o.bursts = optarg; break;
        case 'w': o.silence_us = strtoll(optarg, NULL, 10); break;
        case 'd':
            co.state_dir = optarg;
            co.again = false;
            break;
        default: return 2;
        }
    fd = optind < argc ? open(argv[optind], O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &st) < 0 || !o.slice || (size_t)st.st_size < 4 * o.slice) {
        fprintf(stderr, "read_drive: it needs a file of several slices\n");
        return 2;
    }
    t0 = clock_us();
    if (calibrate_drive(fd, &co, &c, &err) < 0) {
        fprintf(stderr, "read_drive: %s\n", err.text);
        return 1;
    }
    if (!o.json) {
        printf("calibrated in %.2f s\n", (double)(clock_us() - t0) / 1e6);
        print_table(&c);
    }
    rc = o.bursts ? in_bursts(fd, &o, &c, (uint64_t)st.st_size)
                  : through_reader(fd, &o, &c, (uint64_t)st.st_size);
    if (!o.json && !o.bursts)
        plain(fd, &o, (uint64_t)st.st_size, c.rate);
    close(fd);
    return rc;
}
