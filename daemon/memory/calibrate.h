/*
 * calibrate - how fast the drive below a file is, and how to read it.
 *
 * Measured once per drive, at first use, on the model file itself: sizes of
 * reads × how many in flight × direct or buffered, at most CALIBRATE_MS and
 * CALIBRATE_BYTES; then kept in the state folder, one small file per drive,
 * named by device and file system.
 *
 * Segments are the largest size that is nearly the best, the window the smallest
 * that comes nearly to the best of that size, and the rate what both give; reads
 * of less than a segment, such as experts' slices, give less, and after a silence
 * of some milliseconds a drive takes a while to begin.  Direct wins unless
 * the file system refuses it: what is read buffered costs several times the CPU
 * and would have to be dropped from the page cache again for the budget to hold.
 *
 * Thread: ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/memory/ledger.h"
#include "daemon/memory/reader.h"

#define CALIBRATE_BYTES ((size_t)6 << 30)
#define CALIBRATE_MS    2200
/*
 * Bytes of buffers while it measures: what the caller reserves as staging.  The
 * least may all stay in a processor's cache, which is filled a few percent faster
 * than weights spread over memory.
 */
#define CALIBRATE_STAGING       ((size_t)64 << 20)
#define CALIBRATE_STAGING_LEAST ((size_t)16 << 20)
/* A drive, and what is beside it on a shared one, does not stay what it was. */
#define CALIBRATE_KEPT_S ((int64_t)7 * 24 * 3600)

struct calibrate_options {
    const char *state_dir; /* NULL: nothing is kept */
    bool again;            /* measure even if it is known */
    size_t most_bytes;     /* 0: CALIBRATE_BYTES */
    int64_t most_ms;       /* 0: CALIBRATE_MS */
    size_t staging_bytes;  /* 0: CALIBRATE_STAGING_LEAST */
    /* Asked between two cells, some tens of milliseconds apart; true breaks it off.  NULL: nobody is. */
    bool (*stop)(void *arg);
    void *stop_arg;
    size_t
        *charged; /* of calibrate_within: has its buffers in it while there are any; NULL: none */
};

#define CALIBRATE_SIZES  3
#define CALIBRATE_DEPTHS 5

struct calibration {
    char key[96]; /* device and file system */
    bool direct;
    unsigned window;
    size_t segment_bytes;
    double rate;          /* bytes a second, as the reader is told to read */
    double cpu_s_per_gib; /* of it, kernel and user */
    double wait_s; /* n reads at once after a silence take this, and n times what each does */
    double buffered_rate; /* the other way; 0: not measured */
    double buffered_cpu_s_per_gib;
    double rates[CALIBRATE_SIZES]
                [CALIBRATE_DEPTHS]; /* direct (or buffered where that is all there is) */
    bool from_file;                 /* known before */
    char why[192];                  /* one sentence for `cache` */
};

extern const size_t calibrate_sizes[CALIBRATE_SIZES];
extern const unsigned calibrate_depths[CALIBRATE_DEPTHS];

/*
 * fd: the file to read.  ERR_IO when it cannot be read at all, ERR_CANCELLED when it was
 * broken off; a state folder that cannot be written is not an error.
 */
int calibrate_drive(int fd, const struct calibrate_options *options, struct calibration *ret,
                    struct err *err);

/*
 * The same within a budget: what is kept costs nothing; else buffers are reserved
 * as staging for as long as it measures, CALIBRATE_STAGING or, where there is no
 * room for that, the least.  ERR_NOMEM: not even for those.
 */
int calibrate_within(struct ledger *l, const char *who, int fd,
                     const struct calibrate_options *options, struct calibration *ret,
                     struct err *err);

/*
 * Which of n ranges of a file is read at this turn: one far from those of the turns
 * before, and none twice in n turns, for what was read a moment ago comes faster
 * again.  n below 2^32.
 */
uint64_t calibrate_range(uint64_t turn, uint64_t n);

/* What is kept of the drive below fd, and nothing is measured.  Any thread. */
bool calibrate_known(int fd, const char *state_dir, struct calibration *ret);

/* The reader's settings for a drive. */
struct reader_drive calibrate_reader(const struct calibration *c);

/*
 * Bytes a second of reads of this size, read as calibrate_reader() says: the
 * rate, times what the table has for the size and what it has for segments.
 */
double calibrate_rate(const struct calibration *c, double read_bytes);
