/* Shapes and strides; see tensor.h. */
#include "backends/tensor.h"

struct tensor tensor_make(const struct format *fmt, void *data, size_t n0, size_t n1, size_t n2,
                          size_t n3)
{
    struct tensor t = {.fmt = fmt, .data = data, .n = {n0, n1, n2, n3}};

    t.stride[0] = fmt->block_bytes;
    t.stride[1] = format_row_bytes(fmt, n0);
    t.stride[2] = t.stride[1] * n1;
    t.stride[3] = t.stride[2] * n2;
    return t;
}

size_t tensor_rows(const struct tensor *t)
{
    return t->n[1] * t->n[2] * t->n[3];
}

size_t tensor_bytes(const struct tensor *t)
{
    if (!t->n[0] || !tensor_rows(t))
        return 0;
    return (t->n[3] - 1) * t->stride[3] + (t->n[2] - 1) * t->stride[2] +
           (t->n[1] - 1) * t->stride[1] + format_row_bytes(t->fmt, t->n[0]);
}
