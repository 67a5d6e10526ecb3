/*
 * rng - the sampler's random numbers: xoroshiro128++ (Blackman and Vigna,
 * "Scrambled linear pseudorandom number generators", 2021), seeded by
 * splitmix64 (Steele, Lea and Flood 2014).  Integers only, so that the same
 * seed gives the same numbers on every machine.
 *
 * One owner at a time.
 */
#pragma once

#include <stdint.h>

struct rng {
    uint64_t state[2];
};

void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
double rng_unit(struct rng *r); /* [0, 1), 53 bits */
