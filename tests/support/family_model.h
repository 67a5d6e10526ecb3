/*
 * family_model - a tiny file of any family, made from the family's own tables
 * of keys and tensors: for tests that hold for all of them.
 *
 * The file has the keys that the family needs and every tensor that it needs,
 * of small f32 numbers.  One thing about it can be made wrong.  Ends the process when a
 * family cannot be made: its numbers then belong into family_model.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/support/gguf_writer.h"

enum family_fault {
    FAMILY_SOUND,
    FAMILY_NO_TENSOR,    /* the which-th tensor is left out */
    FAMILY_WRONG_SHAPE,  /* its first dimension is one more */
    FAMILY_WRONG_TYPE,   /* the which-th key is a string */
    FAMILY_OUT_OF_RANGE, /* it is beyond its range */
    FAMILY_FAULTS
};

#define FAMILY_N_CTX   4096
#define FAMILY_N_VOCAB 80

/* Names of all families, NULL-terminated. */
extern const char *const family_names[];

/*
 * false when there is no which-th thing; *ret_name: what an error must name
 * ("" when this one cannot be made wrong in that way).
 */
bool family_model_build(const char *family, enum family_fault fault, size_t which,
                        struct gguf_writer *w, char ret_name[96]);
