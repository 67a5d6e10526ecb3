/*
 * fuzz - what every fuzz program here has in common.
 *
 * To add one: tests/fuzz/fuzz_NAME.c with LLVMFuzzerTestOneInput() and, on a
 * line of its own near the top, "room:" with the room it tests within comment
 * marks (see fuzz_rpc.c); a few small inputs, each showing one thing, in
 * tests/fuzz/seeds/NAME/; words of the language in tests/fuzz/NAME.dict if it
 * has some.  An input that once broke it stays among the seeds.
 *
 * The program is linked with that room and the rooms it may include alone, and
 * with tests/support where it includes of that.  "runs: 1/N" on such a line
 * takes that share of the runs of `make fuzz-smoke`, where one takes milliseconds.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A promise of the code under test that an input must not be able to break. */
#define FUZZ_REQUIRE(promise)                                                                      \
    do {                                                                                           \
        if (!(promise)) {                                                                          \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #promise);                  \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
