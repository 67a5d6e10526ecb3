/* An engine of reads that can fail on request. */
#pragma once

#include "daemon/memory/reader.h"

struct faulty {
    long fail_at;      /* the read that fails, counted from 0; −1: none */
    int errnum;        /* with this; 0: it gives nothing, as at the end of a file */
    size_t most_bytes; /* what one read gives at most; 0: all */
    int einval_direct; /* direct descriptors say EINVAL, as some file systems do */
    int eintr_every;   /* n: each n-th read is interrupted first */
    long n_reads;
    size_t n_bytes;
};

reader_pread_fn faulty_pread;
