/* See cpu_backend.h. */
#include "tests/support/cpu_backend.h"

#include <stdlib.h>

#include "tests/support/die.h"

struct cpu_backend cpu_backend_open(unsigned threads, const char *tier)
{
    /* `make check-tiers` runs the tests that name no tier on each; set before there are threads. */
    const char *cap = getenv("RNBD_TEST_CPU"); /* NOLINT(concurrency-mt-unsafe) */
    const char *any = cap && *cap ? cap : "auto";
    struct backend_options options = {.threads = threads, .cpu = tier ? tier : any};
    struct cpu_backend c = {.ops = backend_by_name("cpu")};
    struct device dev;
    struct err err = {0};

    if (!c.ops || c.ops->probe(&dev, 1, &err) < 1 || c.ops->open(&dev, &options, &c.be, &err) < 0)
        die("no CPU backend: %s", err.text);
    return c;
}

void cpu_backend_close(struct cpu_backend *c)
{
    c->ops->close(c->be);
    c->be = NULL;
}
