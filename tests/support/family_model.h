/*
 * family_model - tiny files of every family, made from the family's own tables
 * of keys and tensors: for tests that hold for all of them.
 *
 * family_model.def lists the variants.  A file has the keys and tensors that
 * its family needs and what its variant adds; its numbers are random, the same
 * on every machine, and such that values keep their size from layer to layer.
 * One thing about it can be made wrong.  Ends the process when a file cannot be
 * made: its numbers then belong into family_model.def.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "backends/formats/format.h"
#include "common/err.h"
#include "tests/support/gguf_writer.h"

enum family_fault {
    FAMILY_SOUND,
    FAMILY_NO_TENSOR,    /* the which-th tensor is left out, where it is needed */
    FAMILY_WRONG_SHAPE,  /* its first dimension is one more */
    FAMILY_WRONG_FORMAT, /* it is of integers */
    FAMILY_NO_KEY,       /* the which-th key is left out, where it is needed */
    FAMILY_WRONG_TYPE,   /* it is a string */
    FAMILY_ABOVE,        /* it is above its range */
    FAMILY_BELOW,
    FAMILY_NOT_A_NUMBER,
    FAMILY_WRONG_LENGTH, /* it is an array for more layers than there are */
    FAMILY_FAULTS
};

struct family_file {
    const char *family;       /* one of family_names */
    const char *variant;      /* one of family_variant(); NULL: the first */
    const struct format *fmt; /* of matrices whose rows are whole blocks of it; NULL: f32 */
    const char *numbers;      /* words that win where no word of the family says otherwise; NULL */
    bool unpacked;            /* such values, but as f32 in the file: for a reference */
    enum family_fault fault;  /* a file with a fault has no numbers, only room for them */
    size_t which;
};

#define FAMILY_N_CTX   4096
#define FAMILY_N_VOCAB 80

/* Names of all families (files of daemon/model/arch), NULL-terminated. */
extern const char *const family_names[];
/* The name of the i-th variant, NULL behind the last; each family has one. */
const char *family_variant(const char *family, size_t i);

/*
 * false when there is no which-th thing; *ret_name: what an error must name
 * ("" when this one cannot be made wrong in that way).
 */
bool family_file_build(const struct family_file *o, struct gguf_writer *w, char ret_name[96]);
/*
 * The same with words of family_model.def behind those of the variant, for
 * numbers that nobody thought of: the tensors have the shapes that they call
 * for.  Fails as the reader of these numbers does, or with ERR_TOO_LARGE when
 * the tensors would have more than a Mi values.
 */
int family_file_build_odd(const struct family_file *o, const char *words, struct gguf_writer *w,
                          struct err *err);
