/*
 * extent - a range of a model file: a tensor, or one expert's slice of one.
 * The unit of residency, of reading and of counting.
 */
#pragma once

#include <stdint.h>

struct extent {
    char name[72];   /* of the tensor, "[expert]" appended for a slice; for messages */
    unsigned part;   /* file of a split */
    uint64_t offset; /* absolute in that file */
    uint64_t bytes;
    int layer;  /* −1 outside the layers */
    int expert; /* −1: not an expert's slice */
};

typedef uint32_t extent_id;
#define EXTENT_NONE UINT32_MAX
