/*
 * exact - exp and log that give the same bits on every machine: additions,
 * multiplications and divisions of doubles in a fixed order, no libm.
 *
 * Errors stay below 4 units in the last place, far under what a choice can
 * see; what counts is that they are the same errors everywhere.
 */
#pragma once

/* e^x.  0 below −745, +INFINITY above 709.7; NaN gives 0 (a NaN logit has no share). */
double exact_exp(double x);
/* ln x for finite x > 0; −INFINITY for 0 and less. */
double exact_log(double x);
