/*
 * policy - which experts of a mixture stay in memory.  Pure: plain structs in,
 * decisions out; no clock but the token number, no I/O, no locks.
 *
 * What the last token of a layer used comes first; the rest is ordered by a
 * count of uses that halves every POLICY_HALF_LIFE tokens.  (Frequency alone
 * loses to LRU by 4 to 29 points where routing is local; both classes together
 * beat it: streaming-trial, section 3.)  Each layer has a quota of slots of its
 * own: one list over all layers that is smaller than a token's demand hits
 * nothing.
 *
 * Tokens count up from 1 by model, decode and prefill together; a token of
 * prefill is a chunk.  The clock of a layer is the number of the token whose
 * choice it saw last.
 *
 * Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_HALF_LIFE                                                                           \
    64.0 /* tokens; 256 is 1 point better on a steady trace, 2 worse on one that drifts */

/* One expert of one layer, resident or not.  {0}: never used. */
struct policy_expert {
    double score; /* log2 of the decayed uses + token / POLICY_HALF_LIFE: all fade alike, so it
                            stays as it is between uses; only where uses > 0 */
    uint64_t last_token; /* decode used it last; 0: never */
    uint32_t uses;       /* by decode and chunks of prefill, ever */
    uint32_t pins;       /* a victim only at 0 */
    bool resident;
};

/* Decode chose it for this token. */
void policy_use(struct policy_expert *e, uint64_t token);
/* Prefill did, for share (0 to 1) of a chunk's tokens: ranks it below what decode used, never above. */
void policy_use_prefill(struct policy_expert *e, uint64_t token, double share);
/* Decayed uses. */
double policy_heat(const struct policy_expert *e, uint64_t token);

/* Is a worth less than b, at this token?  A total order: equal heat by last use, then by id (address). */
bool policy_less(const struct policy_expert *a, const struct policy_expert *b, uint64_t token);

/*
 * Which to evict: the n_wanted residents of a layer that are worth least and have
 * no pin, worst first.  Returns how many there are (≤ n_wanted).
 */
unsigned policy_victims(const struct policy_expert *layer, unsigned n_experts, uint64_t token,
                        unsigned n_wanted, unsigned *ret_ids);

/* May what prefill has read take the victim's slot?  Never from what decode used lately. */
bool policy_prefill_may_evict(const struct policy_expert *candidate,
                              const struct policy_expert *victim, uint64_t token);

/* One layer with experts, as the quotas see it. */
struct policy_layer {
    unsigned n_experts;
    unsigned n_used;   /* by one token */
    size_t slot_bytes; /* of one expert, in true size */
};

/*
 * Divides bytes into slots: the same share of each layer's experts, what is left
 * by one to the first layers.  Returns the sum of slots.
 */
size_t policy_quotas(const struct policy_layer *layers, unsigned n_layers, size_t bytes,
                     unsigned *ret_quotas);
