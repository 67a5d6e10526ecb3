/* See cpu_backend.h. */
#include "tests/support/cpu_backend.h"

#include <stdio.h>
#include <stdlib.h>

struct cpu_backend cpu_backend_open(unsigned threads, const char *tier)
{
    struct backend_options options = {.threads = threads, .cpu = tier ? tier : "auto"};
    struct cpu_backend c = {.ops = backend_by_name("cpu")};
    struct device dev;
    struct err err = {0};

    if (!c.ops || c.ops->probe(&dev, 1, &err) < 1 || c.ops->open(&dev, &options, &c.be, &err) < 0) {
        fprintf(stderr, "cpu_backend: %s\n", err.text);
        exit(1);
    }
    return c;
}

void cpu_backend_close(struct cpu_backend *c)
{
    c->ops->close(c->be);
    c->be = NULL;
}
