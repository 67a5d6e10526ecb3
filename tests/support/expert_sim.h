/*
 * expert_sim - invented traces of expert choices, and a cache of experts with no
 * bytes in it that runs the daemon's own policy over a trace.
 */
#pragma once

#include "daemon/memory/curve.h"
#include "daemon/memory/policy.h"
#include "daemon/memory/trace.h"

/*
 * kind: 'u' uniform; 'l' local: 0.6 of the choices repeat the token before, the
 * others are Zipf(0.8); 'd' as 'l', and the order of popularity changes every 256
 * tokens; 'n' nearly uniform: 0.05 repeats, the others Zipf(0.1).
 */
void expert_sim_invent(char kind, unsigned n_layers, unsigned n_experts, unsigned n_used,
                       size_t n_tokens, uint64_t seed, struct trace *ret);

enum expert_sim_order { EXPERT_SIM_POLICY, EXPERT_SIM_LRU };

/*
 * Share of the uses by decode, after the first n_warm tokens, that were resident with
 * these slots in all layers together, beside those of staging.  curve: notes all of them; or NULL.
 */
double expert_sim_run(const struct trace *t, size_t n_slots, size_t n_warm,
                      enum expert_sim_order order, struct curve *curve);
