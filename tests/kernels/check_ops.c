/*
 * Every op of ops.def against double precision, and against itself: all tiers,
 * one to three threads, whole batches and cut ones give the same bits.
 *
 *     check_ops [--only OP] [--tier NAME] [--threads N] [--seed N]
 *
 * With --threads the scalar tier runs on one and the others on N: what an emulator has time for.
 * RNBD_TEST_CPU names a tier too (make check-tiers); the scalar one always runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/kernels/ops/bed.h"

struct group {
    const char *name;
    int (*cases)(int *ret_run);
};

static const struct group groups[] = {
#define OP(name, n_src, help) {#name, cases_##name},
#include "backends/ops.def"
#undef OP
    {"program", cases_program},
};

int main(int argc, char **argv)
{
    const char *only = NULL, *tier = getenv("RNBD_TEST_CPU");
    unsigned long long seed = 1;
    unsigned threads = 0;
    int run = 0, failed = 0;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--only") == 0)
            only = argv[i + 1];
        else if (strcmp(argv[i], "--tier") == 0)
            tier = argv[i + 1];
        else if (strcmp(argv[i], "--threads") == 0)
            threads = (unsigned)strtoul(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
    }
    if (!bed_open(tier, threads)) {
        printf("no backend\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        if (!only || strcasecmp(only, groups[i].name) == 0) {
            bed_seed(seed);
            failed += groups[i].cases(&run);
        }
    bed_close();
    printf("seed %llu\n%d passed, %d failed\n", seed, run - failed, failed);
    return failed || !run;
}
