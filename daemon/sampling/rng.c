/* The two words of the generator; see rng.h. */
#include "daemon/sampling/rng.h"

static uint64_t rotate_left(uint64_t x, unsigned k)
{
    return x << k | x >> (64 - k);
}

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = *x += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void rng_seed(struct rng *r, uint64_t seed)
{
    r->state[0] = splitmix(&seed);
    r->state[1] = splitmix(&seed);
    /* All zero is the one state that never leaves itself; splitmix cannot give it twice in a row. */
}

uint64_t rng_next(struct rng *r)
{
    uint64_t a = r->state[0], b = r->state[1];
    uint64_t out = rotate_left(a + b, 17) + a;

    b ^= a;
    r->state[0] = rotate_left(a, 49) ^ b ^ b << 21;
    r->state[1] = rotate_left(b, 28);
    return out;
}

double rng_unit(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}
