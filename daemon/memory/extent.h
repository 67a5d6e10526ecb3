/*
 * extent - a range of a model file: a tensor, of which the whole, one slice for
 * each expert, or single rows are wanted.  The unit of residency, of reading and
 * of counting.
 */
#pragma once

#include <stdint.h>

struct extent {
    char name[72];   /* of the tensor, for messages */
    unsigned part;   /* file of a split */
    uint64_t offset; /* absolute in that file */
    uint64_t bytes;
    int layer;          /* −1 outside the layers */
    unsigned n_experts; /* 0: wanted whole; else that many equal slices, one for each expert */
    uint64_t n_rows;    /* 0: wanted whole; else that many equal rows, looked up one by one */
};

typedef uint32_t extent_id;
#define EXTENT_NONE UINT32_MAX
