/*
 * warm - pages of a region that are there before something is put into them.
 *
 * Fresh memory costs a fault for each page and the kernel's zeroing of it, a
 * third of a millisecond for a huge page: paid inside a read, that is a token
 * which waits for more than its drive.  A thread of its own (role IO) walks
 * ahead over what a model is charged for, so that slots and homes mostly have
 * their pages when the first read comes.  It is a matter of speed alone: where
 * the kernel knows no MADV_POPULATE_WRITE (before 5.14) or has no memory, pages
 * come when they are touched.
 *
 * Thread: all calls belong to one, in the daemon ENGINE.
 */
#pragma once

#include <stddef.h>

#define WARM_REGIONS 2

struct warm;

/* NULL when there is no thread to be had; the other calls take that. */
struct warm *warm_start(void);
/* Ends, at the latest after the step that it is in (4 MiB). */
void warm_stop(struct warm *w);

/*
 * The first bytes of region i, which begins at data (page-aligned), are wanted from
 * now on, and nothing behind them: when it returns, nothing there is touched any more.
 */
void warm_want(struct warm *w, unsigned i, void *data, size_t bytes);
