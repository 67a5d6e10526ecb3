/*
 * Which context, chunk and placement a budget gets.  See model.h.
 *
 * Without a context of its own, a model has as much as lets all of it be
 * resident, if that is a useful length; else it streams, and caches of the
 * context take at most a share of the budget.
 */

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "daemon/model/model_priv.h"

#define CTX_USEFUL    ((size_t)4096)
#define CTX_STREAMING ((size_t)8192)
#define BATCH_LEAST   ((size_t)16)
/* Of the budget, for all but weights, when these do not fit. */
#define FIXED_SHARE 3
/* What streams is read once a chunk: a longer one, for so much of the budget at most. */
#define BATCH_STREAMING ((size_t)2048)
#define BATCH_SHARE     16
/*
 * Of a chunk in a dense layer, and of each thread: a cut of the budget waits for the
 * end of a layer, which is half a second then (0.16 T/s measured on a core with
 * AVX-512).  Of a mixture a chunk reads more experts than a row computes: long ones
 * are worth more there.
 */
#define PRODUCTS_MOST 8e10
#define BATCH_WHOLE   ((size_t)256) /* shorter ones would wait for what streams */

struct fit {
    const struct model *m;
    struct model_options o;
    bool any_ctx;   /* none was asked for */
    size_t n_batch; /* before it was cut for what there is */
    const struct backend_ops *ops;
    struct backend *be;
    size_t bytes;
};

static int sizes_at(const struct fit *f, size_t n_ctx, size_t bytes, struct sizes *ret,
                    struct err *err)
{
    struct model_options o = f->o;

    o.n_ctx = n_ctx;
    o.n_batch = MIN(o.n_batch, n_ctx);
    o.n_out = MIN(o.n_out, o.n_batch);
    return model_sizes(f->m, &o, bytes, f->ops, f->be, ret, NULL, err);
}

/* The largest context, a multiple of the step and at most `most`, whose floor (or all of it) fits; 0 when none does. */
static int largest_ctx(const struct fit *f, size_t most, bool all, size_t *ret, struct err *err)
{
    size_t lo = 0, hi = most / MODEL_CTX_STEP;

    while (lo < hi) {
        size_t mid = hi - (hi - lo) / 2;
        struct sizes s;
        int r = sizes_at(f, mid * MODEL_CTX_STEP, SIZE_MAX, &s, err);

        if (r < 0)
            return r;
        if ((all ? s.all : s.floor) <= f->bytes)
            lo = mid;
        else
            hi = mid - 1;
    }
    *ret = lo * MODEL_CTX_STEP;
    return 0;
}

/* The context of a model that must stream. */
static int streaming_ctx(const struct fit *f, size_t *ret, struct err *err)
{
    size_t n_ctx = MIN(CTX_STREAMING, f->m->hp.n_ctx_train);
    size_t least = MIN(MODEL_CTX_STEP, n_ctx);

    for (;; n_ctx = MAX(n_ctx / 2, least)) {
        struct sizes s;
        int r = sizes_at(f, n_ctx, f->bytes, &s, err);

        if (r < 0)
            return r;
        if ((s.floor <= f->bytes && s.fixed <= f->bytes / FIXED_SHARE) || n_ctx == least)
            break;
    }
    *ret = n_ctx;
    return 0;
}

/* The least context for which all of a model is made resident where nobody has asked for one. */
static size_t useful_ctx(const struct fit *f)
{
    size_t train = f->m->hp.n_ctx_train;

    return MAX(MIN(CTX_USEFUL, train / 8), MIN((size_t)MODEL_CTX_STEP, train));
}

static int choose_ctx(struct fit *f, bool *ret_capped, struct err *err)
{
    size_t train = f->m->hp.n_ctx_train, n_ctx = train, useful = useful_ctx(f);
    struct sizes s;
    int r = sizes_at(f, train, SIZE_MAX, &s, err);

    *ret_capped = false;
    if (r >= 0 && s.all > f->bytes) {
        r = largest_ctx(f, train, true, &n_ctx, err);
        if (r >= 0 && n_ctx < useful)
            r = streaming_ctx(f, &n_ctx, err);
        *ret_capped = n_ctx < train;
    }
    f->o.n_ctx = n_ctx;
    return r;
}

/* The floor, which has the shortest chunk. */
static int least(const struct fit *f, size_t *ret, struct err *err)
{
    struct fit shortest = *f;
    struct sizes s = {0};
    int r;

    if (!f->m->arch->encoder)
        shortest.o.n_batch = MIN(f->o.n_batch, BATCH_LEAST);
    r = sizes_at(&shortest, f->o.n_ctx, SIZE_MAX, &s, err);
    *ret = r < 0 ? 0 : s.floor;
    return r;
}

/* -- advice -------------------------------------------------------------------------------- */

void model_others_add(struct model_others *o, const char *name, size_t held, size_t gives)
{
    struct model_other x = {.held = held, .gives = gives};
    unsigned at = o->n;

    snprintf(x.name, sizeof x.name, "%s", name);
    while (at && o->list[at - 1].gives < gives)
        at--;
    if (at == MODEL_OTHERS_MAX)
        return;
    o->n = MIN(o->n + 1, (unsigned)MODEL_OTHERS_MAX);
    memmove(o->list + at + 1, o->list + at, (o->n - at - 1) * sizeof x);
    o->list[at] = x;
}

/* One more way out; left out where it would not be told whole. */
static void __attribute__((format(printf, 2, 3)))
add_way(struct model_plan *p, const char *fmt, ...)
{
    size_t at = strlen(p->advice), room = sizeof p->advice - at;
    int n = snprintf(p->advice + at, room, "%s", at ? "; " : "");
    va_list ap;

    va_start(ap, fmt);
    n += vsnprintf(p->advice + at + n, room - MIN(room, (size_t)n), fmt, ap);
    va_end(ap);
    if ((size_t)n >= room)
        p->advice[at] = '\0';
}

static int advise_ctx(const struct fit *f, struct model_plan *p, struct err *err)
{
    char need[24];
    struct sizes s;
    size_t n_ctx;
    int r = largest_ctx(f, MIN(p->n_ctx, f->m->hp.n_ctx_train), false, &n_ctx, err);

    if (r >= 0 && n_ctx && n_ctx < p->n_ctx) {
        r = sizes_at(f, n_ctx, f->bytes, &s, err);
        if (r >= 0)
            add_way(p, "--ctx %zu would need %s", n_ctx,
                    units_format_size_up(s.floor, need, sizeof need));
    }
    return r;
}

/* The widest cache of those that are narrower and do. */
static int advise_kv(const struct fit *f, struct model_plan *p, struct err *err)
{
    static const enum format_id narrower[] = {FORMAT_q8_0, FORMAT_q4_0};
    struct fit other = *f;
    char need[24];

    for (size_t i = 0; i < ARRAY_LEN(narrower); i++) {
        const struct format *kv = format_of(narrower[i]);
        size_t floor;
        int r;

        other.o.kv = kv;
        if (format_row_bytes(kv, 32) >= format_row_bytes(f->o.kv, 32) ||
            model_options_check(f->m, &other.o, &other.o, NULL) < 0)
            continue;
        r = least(&other, &floor, err);
        if (r < 0)
            return r;
        if (floor <= f->bytes) {
            add_way(p, "--kv %s would need %s", kv->name,
                    units_format_size_up(floor, need, sizeof need));
            break;
        }
    }
    return 0;
}

/* Of how much the headroom leaves a model so much. */
static size_t with_headroom(const struct fit *f, size_t bytes)
{
    return bytes + MIN(f->o.headroom, bytes / (MODEL_HEADROOM_SHARE - 1) + 1);
}

/* The model whose unloading does and takes no more away than that, or as few of them as it takes. */
static void advise_unload(const struct fit *f, struct model_plan *p)
{
    const struct model_others *o = f->o.others;
    size_t missing = p->needs - MIN(p->needs, with_headroom(f, f->bytes)), gives = 0, held = 0;
    char names[2 * sizeof o->list[0].name + 16], size[24];
    unsigned n = 0;

    if (!o || !o->n)
        return;
    for (unsigned i = o->n; i-- > 0;)
        if (o->list[i].gives >= missing) {
            add_way(p, "unloading '%s', which holds %s, would do", o->list[i].name,
                    units_format_size(o->list[i].held, size, sizeof size));
            return;
        }
    for (; n < o->n && gives < missing; n++) {
        gives += o->list[n].gives;
        held += o->list[n].held;
    }
    if (gives < missing)
        return;
    if (n == 2)
        snprintf(names, sizeof names, "'%s' and '%s'", o->list[0].name, o->list[1].name);
    else
        snprintf(names, sizeof names, "'%s' and %u others", o->list[0].name, n - 1);
    add_way(p, "unloading %s, which hold %s, would do", names,
            units_format_size(held, size, sizeof size));
}

/* What all of it takes, with the context and the chunk that it would have then. */
static int whole_bytes(const struct fit *f, size_t *ret, struct err *err)
{
    size_t n_ctx = (useful_ctx(f) + MODEL_CTX_STEP - 1) / MODEL_CTX_STEP * MODEL_CTX_STEP;
    struct fit whole = *f;
    struct sizes s = {0};
    int r;

    whole.o.n_batch = f->n_batch;
    n_ctx = f->any_ctx ? MIN(MAX(n_ctx, f->o.n_ctx), f->m->hp.n_ctx_train) : f->o.n_ctx;
    r = sizes_at(&whole, n_ctx, SIZE_MAX, &s, err);
    *ret = s.all;
    return r;
}

/* What would help: less of a context, a narrower cache of it, another model's place, a budget. */
static int give_advice(const struct fit *f, struct model_plan *p, struct err *err)
{
    char need[24], all[24];
    size_t others = f->o.others ? f->o.others->bytes : 0;
    int r = advise_ctx(f, p, err);

    if (r >= 0)
        r = advise_kv(f, p, err);
    if (r < 0)
        return r;
    advise_unload(f, p);
    units_format_size_up(p->needs + others, need, sizeof need);
    units_format_size_up(with_headroom(f, p->all) + others, all, sizeof all);
    if (*p->advice)
        add_way(p, "a budget of %s would do as it is", need);
    else
        add_way(p,
                "a budget of %s would do, with weights read again for every token; with %s all of "
                "it would be resident",
                need, all);
    return 0;
}

/* -- the plan ------------------------------------------------------------------------------ */

static bool is_experts(const struct model *m, size_t i)
{
    return m->bound[i]->n_dims == 3 && m->hp.n_expert;
}

/* Of a weight, what a token uses: of the token table a row, of experts those that it chooses. */
static double used_share(const struct model *m, size_t i)
{
    const struct graph_weight *table = model_weight(m, -1, TENSOR_TOKEN_EMBD, PART_WEIGHT);
    bool tied = !model_weight(m, -1, TENSOR_OUTPUT, PART_WEIGHT)->t.fmt;

    if (i == table->id && !tied)
        return 1.0 / m->hp.n_vocab;
    return is_experts(m, i) ? (double)m->hp.n_expert_used / m->hp.n_expert : 1.0;
}

static double bytes_per_token(const struct model *m, const struct model_options *opt,
                              double *ret_experts)
{
    double sum = 0;

    for (size_t i = 0; i < m->n_bound; i++) {
        double bytes = used_share(m, i) * (double)m->bound[i]->bytes;

        sum += bytes;
        *ret_experts += is_experts(m, i) ? bytes : 0;
    }
    return sum + (double)model_kv_bytes_per_token(m, opt->kv) * (double)opt->n_ctx / 2;
}

/* Products of a row in a layer, on the average; attention's are not counted. */
static double layer_products(const struct model *m)
{
    const struct graph_weight *table = model_weight(m, -1, TENSOR_TOKEN_EMBD, PART_WEIGHT);
    const struct graph_weight *output = model_weight(m, -1, TENSOR_OUTPUT, PART_WEIGHT);
    double sum = 0;

    for (size_t i = 0; i < m->n_bound; i++) {
        const uint64_t *n = m->bound[i]->dims;

        if (i != table->id && (!output->t.fmt || i != output->id))
            sum += used_share(m, i) * (double)n[0] * (double)n[1] * (double)n[2];
    }
    return sum / m->hp.n_layers;
}

/* Of a chunk, for its layers to end soon enough. */
static double layer_rows(const struct fit *f)
{
    struct device d = {0};

    f->ops->describe(f->be, &d);
    return PRODUCTS_MOST * MAX(d.threads, 1) / fmax(layer_products(f->m), 1);
}

/* Nobody has said how long a chunk is, and the layers are large. */
static void shorten(struct fit *f)
{
    double most_rows = layer_rows(f);

    while (!f->m->hp.n_expert && f->o.n_batch / 2 >= BATCH_WHOLE &&
           (double)f->o.n_batch > most_rows)
        f->o.n_batch /= 2;
}

/*
 * Where weights stream and nobody has said how long a chunk is: longer ones, as
 * far as their scratch takes a small share of the budget and no dense weight's
 * place.
 */
static int lengthen(struct fit *f, struct sizes *s, struct err *err)
{
    const struct placement first = s->placement;
    size_t most = s->fixed + f->bytes / BATCH_SHARE;
    int r = 0;

    if (placement_is_whole(&first))
        return 0;
    while (2 * f->o.n_batch <= MIN(BATCH_STREAMING, f->o.n_ctx)) {
        struct fit longer = *f;
        struct sizes more;

        longer.o.n_batch *= 2;
        r = sizes_at(&longer, f->o.n_ctx, f->bytes, &more, err);
        if (r < 0 || more.fixed > most || more.floor > f->bytes ||
            more.placement.n_dropped > first.n_dropped)
            break;
        f->o.n_batch = longer.o.n_batch;
        *s = more;
    }
    return r;
}

int model_plan(struct model *m, const struct model_options *opt, const struct backend_ops *ops,
               struct backend *be, size_t free_bytes, struct model_plan *ret, struct err *err)
{
    struct model_plan p = {.free_bytes = free_bytes};
    struct fit f = {.m = m, .any_ctx = !opt->n_ctx, .ops = ops, .be = be, .bytes = free_bytes};
    struct sizes s = {0};
    int r = model_options_check(m, opt, &f.o, err);

    if (r >= 0 && !opt->n_batch && !m->arch->encoder)
        shorten(&f);
    f.n_batch = f.o.n_batch;
    if (r >= 0 && !opt->n_ctx)
        r = choose_ctx(&f, &p.ctx_capped, err);
    if (r >= 0)
        r = sizes_at(&f, f.o.n_ctx, free_bytes, &s, err);
    if (r >= 0)
        r = least(&f, &p.floor, err);
    p.needs = with_headroom(&f, p.floor);
    /* Near the floor a shorter chunk is what is left to give. */
    while (r >= 0 && s.floor > free_bytes && f.o.n_batch > BATCH_LEAST && !m->arch->encoder) {
        f.o.n_batch = MAX(f.o.n_batch / 2, BATCH_LEAST);
        r = sizes_at(&f, f.o.n_ctx, free_bytes, &s, err);
    }
    if (r >= 0 && !opt->n_batch && !m->arch->encoder && s.floor <= free_bytes)
        r = lengthen(&f, &s, err);
    if (r < 0)
        return r;
    p.n_ctx = f.o.n_ctx;
    p.n_batch = MIN(f.o.n_batch, f.o.n_ctx);
    memcpy(p.account, s.account, sizeof p.account);
    p.placement = s.placement;
    p.total = s.total;
    p.peak = s.peak;
    p.all = s.all;
    p.fits = s.peak <= free_bytes;
    p.bytes_per_token = bytes_per_token(m, &f.o, &p.expert_bytes_per_token);
    if (!p.fits) /* its chunk may be shorter than that of all of it */
        r = whole_bytes(&f, &p.all, err);
    if (r >= 0 && !p.fits)
        r = give_advice(&f, &p, err);
    if (r >= 0)
        *ret = p;
    return r;
}
