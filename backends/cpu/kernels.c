/* The selection: kernels.def once as declarations, once as choices; see kernels.h. */
#include "backends/cpu/kernels.h"

#include <string.h>

#include "backends/cpu/cpuid.h"

#define ROW(op, fmt, tier) KERNEL(op, fmt, tier);
#include "gen/kernels.def"
#undef ROW

/* Kernels of activations are named by the layout, which is an act kind. */
enum {
    ACT_OF_q8_32 = ACT_Q8_32,
    ACT_OF_q8_256 = ACT_Q8_256,
};

/* The scalar twin of a row is named here, so a row without one does not compile. */
#define TWIN_OF_gemm(fmt)        matvec_##fmt##_scalar
#define TWIN_OF_pack(fmt)        quantize_##fmt##_scalar
#define TWIN_OF_quantize(fmt)    quantize_##fmt##_scalar
#define TWIN_OF_matvec(fmt)      matvec_##fmt##_scalar
#define TWIN_OF_attn(fmt)        attn_##fmt##_scalar
#define TWIN_OF_attn_merge(fmt)  attn_merge_##fmt##_scalar
#define TWIN_OF_encode(fmt)      encode_##fmt##_scalar
#define TWIN_OF_rmsnorm(fmt)     rmsnorm_##fmt##_scalar
#define TWIN_OF_add(fmt)         add_##fmt##_scalar
#define TWIN_OF_mul(fmt)         mul_##fmt##_scalar
#define TWIN_OF_scale(fmt)       scale_##fmt##_scalar
#define TWIN_OF_silu_mul(fmt)    silu_mul_##fmt##_scalar
#define TWIN_OF_gelu_mul(fmt)    gelu_mul_##fmt##_scalar
#define TWIN_OF_clamped_mul(fmt) clamped_mul_##fmt##_scalar
#define TWIN_OF_softcap(fmt)     softcap_##fmt##_scalar
#define TWIN_OF_layernorm(fmt)   layernorm_##fmt##_scalar
#define TWIN_OF_sigmoid_mul(fmt) sigmoid_mul_##fmt##_scalar
#define TWIN_OF_softplus(fmt)    softplus_##fmt##_scalar
#define TWIN_OF_exp_mul(fmt)     exp_mul_##fmt##_scalar
#define TWIN_OF_conv(fmt)        conv_##fmt##_scalar
#define TWIN_OF_delta(fmt)       delta_##fmt##_scalar
#define TWIN_OF_wkv(fmt)         wkv_##fmt##_scalar
#define TWIN_OF_ssm(fmt)         ssm_##fmt##_scalar
#define TWIN_OF_softmax(fmt)     softmax_##fmt##_scalar
#define TWIN_OF_rope(fmt)        rope_##fmt##_scalar
#define TWIN_OF_rope_neox(fmt)   rope_neox_##fmt##_scalar

#define ROW(op, fmt, tier) _Static_assert(sizeof(&TWIN_OF_##op(fmt)) > 0, #op "_" #fmt);
#include "gen/kernels.def"
#undef ROW

/* A tile holds what its rows held, in the order that the gemm of its tier walks. */
static size_t pack_bytes_q8_32(size_t n)
{
    return KERNELS_TILE_COLS * act_row_bytes(ACT_Q8_32, n);
}

static size_t pack_bytes_q8_256(size_t n)
{
    return KERNELS_TILE_COLS * act_row_bytes(ACT_Q8_256, n);
}

/* A pack kernel and a gemm understand each other only within one tier. */
struct choice {
    struct kernels *k;
    unsigned gemm_tier[FORMAT_COUNT];
    pack_fn *pack[8 * sizeof(unsigned)][ACT_COUNT]; /* [bit of the tier] */
};

#define BIT_OF(tier) __builtin_ctz(TIER_##tier)

#define TAKE_quantize(fmt, tier) c->k->quantize[ACT_OF_##fmt] = quantize_##fmt##_##tier
#define TAKE_matvec(fmt, tier)   c->k->matvec[FORMAT_##fmt] = matvec_##fmt##_##tier
#define TAKE_gemm(fmt, tier)                                                                       \
    (c->k->gemm[FORMAT_##fmt] = gemm_##fmt##_##tier, c->gemm_tier[FORMAT_##fmt] = BIT_OF(tier))
#define TAKE_pack(fmt, tier)        c->pack[BIT_OF(tier)][ACT_OF_##fmt] = pack_##fmt##_##tier
#define TAKE_attn(fmt, tier)        c->k->attn[FORMAT_##fmt] = attn_##fmt##_##tier
#define TAKE_attn_merge(fmt, tier)  c->k->attn_merge = attn_merge_##fmt##_##tier
#define TAKE_encode(fmt, tier)      c->k->encode[FORMAT_##fmt] = encode_##fmt##_##tier
#define TAKE_rmsnorm(fmt, tier)     c->k->rmsnorm = rmsnorm_##fmt##_##tier
#define TAKE_add(fmt, tier)         c->k->add = add_##fmt##_##tier
#define TAKE_mul(fmt, tier)         c->k->mul = mul_##fmt##_##tier
#define TAKE_scale(fmt, tier)       c->k->scale = scale_##fmt##_##tier
#define TAKE_silu_mul(fmt, tier)    c->k->silu_mul = silu_mul_##fmt##_##tier
#define TAKE_gelu_mul(fmt, tier)    c->k->gelu_mul = gelu_mul_##fmt##_##tier
#define TAKE_clamped_mul(fmt, tier) c->k->clamped_mul = clamped_mul_##fmt##_##tier
#define TAKE_softcap(fmt, tier)     c->k->softcap = softcap_##fmt##_##tier
#define TAKE_layernorm(fmt, tier)   c->k->layernorm = layernorm_##fmt##_##tier
#define TAKE_sigmoid_mul(fmt, tier) c->k->sigmoid_mul = sigmoid_mul_##fmt##_##tier
#define TAKE_softplus(fmt, tier)    c->k->softplus = softplus_##fmt##_##tier
#define TAKE_exp_mul(fmt, tier)     c->k->exp_mul = exp_mul_##fmt##_##tier
#define TAKE_conv(fmt, tier)        c->k->conv = conv_##fmt##_##tier
#define TAKE_delta(fmt, tier)       c->k->delta = delta_##fmt##_##tier
#define TAKE_wkv(fmt, tier)         c->k->wkv = wkv_##fmt##_##tier
#define TAKE_ssm(fmt, tier)         c->k->ssm = ssm_##fmt##_##tier
#define TAKE_softmax(fmt, tier)     c->k->softmax = softmax_##fmt##_##tier
#define TAKE_rope(fmt, tier)        c->k->rope = rope_##fmt##_##tier
#define TAKE_rope_neox(fmt, tier)   c->k->rope_neox = rope_neox_##fmt##_##tier

/* Rows come scalar first, widest last: the last one that the mask allows stays. */
static void take_rows(struct choice *c, unsigned tiers)
{
#define ROW(op, fmt, tier)                                                                         \
    if (tiers & TIER_##tier)                                                                       \
        TAKE_##op(fmt, tier);
#include "gen/kernels.def"
#undef ROW
}

void kernels_select(struct kernels *k, unsigned tiers)
{
    struct choice c = {.k = k};

    memset(k, 0, sizeof(*k));
    take_rows(&c, tiers);

    for (int f = 0; f < FORMAT_COUNT; f++) {
        enum act_kind act = format_table[f]->act;

        if (!k->gemm[f] || !c.pack[c.gemm_tier[f]][act])
            continue;
        k->pack[f] = c.pack[c.gemm_tier[f]][act];
        k->tile_cols[f] = KERNELS_TILE_COLS;
        k->pack_bytes[f] = act == ACT_Q8_256 ? pack_bytes_q8_256 : pack_bytes_q8_32;
    }
}
