/*
 * guard - steps back when more cache makes tokens slower.
 *
 * A cache that grows past what the machine really has pays for its hits with
 * page faults: memory that was swapped out, or code that was dropped to make
 * room, is read back by the kernel, and a token takes longer than with fewer
 * slots.  The guard looks at windows of decoded tokens: the best one of a
 * smaller cache is kept, and a later one of a larger cache whose tokens hit no
 * less, take a quarter longer and fault is a cliff.  What it says then is a cap
 * on slots, which lasts for a while, and twice as long every time.
 *
 * Slower tokens alone prove nothing (a longer context, another program on the
 * cores), nor do faults alone (a program that was started a moment ago): both
 * must come together with slots.
 *
 * Pure: plain numbers in, decision out.  Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUARD_WINDOW     32   /* tokens that are looked at together */
#define GUARD_SLOWER     1.25 /* times as long */
#define GUARD_FAULTS     2    /* a token, at least */
#define GUARD_REST       1024 /* tokens that the first cap lasts */
#define GUARD_STEP_LEAST 16 /* slots more (a 16th more, where that is larger): not the same cache */

/* One decoded token. */
struct guard_token {
    int64_t us;            /* from its first layer with experts to its last */
    uint64_t uses, hits;   /* of experts */
    uint64_t major_faults; /* of the process meanwhile */
    size_t slots;          /* that hold an expert; of the last one of a window alone */
};

struct guard_window {
    int64_t us;
    uint64_t uses, hits, faults;
    size_t slots; /* at its end */
    unsigned n;
};

/* {0} at start. */
struct guard {
    struct guard_window now, best; /* best.n 0: none yet */
    size_t cap;                    /* 0: none */
    uint64_t rest, waited;         /* tokens that the cap lasts, and has */
    unsigned n_steps;
};

/* Is the next token the last one of its window? */
bool guard_window_ends(const struct guard *s);

enum guard_verdict { GUARD_STAY, GUARD_STEP_BACK, GUARD_TRY_AGAIN };

/*
 * Takes one token into account.  STEP_BACK: s->cap slots from now on, and
 * ret_slower (may be NULL) says how many times as long a token took.  TRY_AGAIN:
 * the cap has ended.
 */
enum guard_verdict guard_note(struct guard *s, const struct guard_token *t, double *ret_slower);
