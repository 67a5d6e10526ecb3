/*
 * clock - monotonic time for durations, wall time for people.
 */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t clock_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static inline int64_t clock_ms(void)
{
    return clock_us() / 1000;
}

static inline int64_t clock_wall_s(void)
{
    return (int64_t)time(NULL);
}
