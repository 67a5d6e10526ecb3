/* Random numbers, guarded memory and comparison for the checkers; see check.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/kernels/check.h"

static uint64_t state;

void check_seed(uint64_t seed)
{
    state = seed;
}

uint64_t check_random(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Twelve uniform numbers: close enough to a normal one, and the same on every machine. */
float check_normal(void)
{
    float sum = -6.0f;

    for (int i = 0; i < 3; i++) {
        uint64_t x = check_random();

        for (int j = 0; j < 4; j++)
            sum += (float)(x >> 16 * j & 0xffff) * 0x1p-16f;
    }
    return sum;
}

void guard_init(struct guard *g, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    g->capacity = (bytes / page + 1) * page;
    g->map_bytes = g->capacity + 2 * page;
    g->map = mmap(NULL, g->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g->map == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    g->page = g->map + page;
    if (mprotect(g->page, g->capacity, PROT_READ | PROT_WRITE) != 0) {
        perror("mprotect");
        exit(2);
    }
}

void guard_clear(struct guard *g)
{
    munmap(g->map, g->map_bytes);
    memset(g, 0, sizeof(*g));
}

static void guard_need(const struct guard *g, size_t bytes)
{
    if (bytes > g->capacity) {
        fprintf(stderr, "a guarded buffer of %zu bytes is asked for %zu\n", g->capacity, bytes);
        exit(2);
    }
}

void *guard_end(const struct guard *g, size_t bytes)
{
    guard_need(g, bytes);
    return g->page + g->capacity - bytes;
}

void *guard_begin(const struct guard *g, size_t bytes)
{
    guard_need(g, bytes);
    return g->page;
}

size_t check_same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof(float)) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return i;
    return n;
}
