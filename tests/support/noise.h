/*
 * noise - random numbers that are the same on every machine, for the weights of
 * models made by tests.
 *
 * The state is one number of any value; it belongs to who draws.
 */
#pragma once

#include <stdint.h>

/* SplitMix64 (Steele et al. 2014): any seed will do. */
static inline uint64_t noise_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Sum of four uniforms in −½ … ½: near enough to a normal one of variance ⅓. */
static inline float noise_value(uint64_t *state)
{
    uint64_t z = noise_bits(state);
    float sum = 0;

    for (int i = 0; i < 4; i++)
        sum += (float)(z >> (16 * i) & 0xFFFF) / 65536.0f - 0.5f;
    return sum;
}
