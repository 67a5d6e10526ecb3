/*
 * make_tiny PATH [LAYERS [CONTEXT [SEED [POOLING [FAMILY]]]]]: writes a small random model,
 * a llama unless it is named, about 1.3 MiB a layer, for the tests of the whole daemon.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/tiny_model.h"

static unsigned number(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*end || end == text || n > 1000000) {
        fprintf(stderr, "make_tiny: '%s' is no number\n", text);
        exit(2);
    }
    return (unsigned)n;
}

int main(int argc, char **argv)
{
    struct tiny_model o = {.family = "llama", .seed = 1};

    if (argc < 2 || argc > 7) {
        fputs("usage: make_tiny PATH [LAYERS [CONTEXT [SEED [POOLING [FAMILY]]]]]\n", stderr);
        return 2;
    }
    if (argc > 2)
        o.n_layers = number(argv[2]);
    if (argc > 3)
        o.n_ctx = number(argv[3]);
    if (argc > 4)
        o.seed = number(argv[4]);
    if (argc > 5)
        o.pooling = number(argv[5]);
    if (argc > 6)
        o.family = argv[6];
    tiny_model_save(&o, argv[1]);
    return 0;
}
