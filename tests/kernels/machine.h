/*
 * machine - what this machine can do, measured in the process that compares
 * itself with it: the most integer and float operations of a thread, and a
 * loop that does nothing but read.
 *
 * Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The thread's own time: what other processes take from it does not count. */
double machine_now_s(void);

/*
 * Operations in Gop/s of one thread, a multiplication and an addition counted
 * as two: int8 by vpdpbusd (vpmaddubsw without AVX-512), f32 by fma.  0 where
 * there is no loop for the processor.
 */
void machine_peaks(double *ret_int8, double *ret_f32);
/* The same of one short run, for what is measured right beside it: a clock that moves moves both. */
void machine_burst(double *ret_int8, double *ret_f32);

/* Reads every byte once, in order; the result only keeps the loop alive. */
uint64_t machine_read(const void *at, size_t bytes);
