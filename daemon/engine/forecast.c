/* Tokens a second from bytes and rates.  See forecast.h. */

#include "daemon/engine/forecast.h"

#include <math.h>

#include "common/alloc.h"

/* A layer that waits for experts: submission, wake-up, the last one, which computes alone. */
#define LAYER_WAIT_S 0.25e-3
/* Of its rate, what a drive gives that is asked by layers which also compute. */
#define STEADY 0.87
/* Experts of the last token that are chosen again beyond chance: little, since nothing is known. */
#define REUSE 0.1
/* Of the rate of memory: a kernel that reaches this is held up by memory. */
#define NEARLY 0.7

const char *forecast_limit_name(enum forecast_limit l)
{
    static const char *const names[] = {"memory bandwidth", "compute", "drive", "per-token wait"};

    return names[l];
}

double forecast_even_hits(size_t n_slots, size_t n_units, size_t n_experts, size_t n_used)
{
    double quota, even;

    if (!n_units || !n_experts || !n_used)
        return 1;
    quota = (double)n_slots / (double)n_units;
    even = fmin(1, quota / (double)n_experts);
    /* what the last token used is kept first, where there is room for it, and is chosen again
     * more often than by chance */
    return even + (1 - even) * REUSE * fmin(1, quota / (double)n_used);
}

uint64_t forecast_formats(const struct model_work *w)
{
    uint64_t bits = (uint64_t)1 << w->head;

    for (int f = 0; f < FORMAT_COUNT; f++)
        if (w->dense[f] > 0 || w->experts[f] > 0)
            bits |= (uint64_t)1 << f;
    return bits;
}

/* -- what is computed --------------------------------------------------------------------- */

static double sum(const double bytes[FORMAT_COUNT])
{
    double n = 0;

    for (int f = 0; f < FORMAT_COUNT; f++)
        n += bytes[f];
    return n;
}

static double seconds(const struct gauge *g, const double bytes[FORMAT_COUNT], double rows)
{
    double s = 0;

    for (int f = 0; f < FORMAT_COUNT; f++)
        if (bytes[f] > 0)
            s += gauge_seconds(g, (enum format_id)f, bytes[f], rows);
    return s;
}

/* Keys and values that rows of a batch see, whose middle one has that many positions before it. */
static double kv_bytes(const struct model_work *w, double depth)
{
    return w->kv_bytes * depth + w->kv_window_bytes * fmin(depth, (double)w->window);
}

static double attention_s(const struct forecast_input *in, double depth, double rows)
{
    const struct model_work *w = in->work;
    double ram = gauge_ram_rate(in->gauge);

    return gauge_attention_seconds(in->gauge, format_id_of(w->kv), kv_bytes(w, depth),
                                   rows * (double)w->kv_rows) +
           (ram > 0 ? 2 * rows * w->state_bytes / ram : 0);
}

/* Different experts that rows choose in a layer, as a share of all, where the choice is even. */
static double touched(const struct model_work *w, double rows)
{
    return 1 - pow(1 - (double)w->n_used / (double)w->n_experts, rows);
}

static double experts_s(const struct forecast_input *in, double rows)
{
    const struct model_work *w = in->work;
    double share, each;

    if (!w->n_experts)
        return 0;
    share = touched(w, rows);
    each = rows * (double)w->n_used / ((double)w->n_experts * share);
    return share * seconds(in->gauge, w->experts, fmax(each, 1));
}

/* -- what is read --------------------------------------------------------------------------- */

static double read_s(const struct forecast_input *in, double bytes)
{
    return in->drive_rate > 0 ? bytes / in->drive_rate : 0;
}

static double cpu_s(const struct forecast_input *in, double bytes)
{
    return bytes / (double)((size_t)1 << 30) * in->cpu_s_per_gib;
}

/* The largest share names it. */
static void find_limit(struct forecast_side *s)
{
    double most = fmax(fmax(s->matrix_s, s->read_s), s->wait_s);

    if (most == s->read_s)
        s->limit = LIMIT_DRIVE;
    else if (most == s->wait_s)
        s->limit = LIMIT_WAIT;
    else
        s->limit = s->ram_s >= NEARLY * s->matrix_s ? LIMIT_MEMORY : LIMIT_COMPUTE;
}

/* -- bytes of a token ----------------------------------------------------------------------- */

/* Of the experts that a token chooses. */
static double chosen_bytes(const struct model_work *w)
{
    return w->n_experts ? sum(w->experts) * (double)w->n_used / (double)w->n_experts : 0;
}

static struct forecast_tiers tiers_at(const struct forecast_input *in, double depth)
{
    const struct model_work *w = in->work;
    bool whole = placement_is_whole(in->placement);
    double stream = whole ? 0 : (double)in->placement->stream_bytes;
    double hit = whole ? 1 : in->hit_rate, chosen = chosen_bytes(w);

    return (struct forecast_tiers){
        .resident = sum(w->dense) + w->head_bytes - stream,
        .streamed = stream,
        .expert_hits = chosen * hit,
        .expert_misses = chosen * (1 - hit),
        .kv = kv_bytes(w, depth),
    };
}

/* -- decode --------------------------------------------------------------------------------- */

static double decode_at(const struct forecast_input *in, double depth,
                        const struct forecast_tiers *t, struct forecast_side *s)
{
    const struct model_work *w = in->work;
    double ram = gauge_ram_rate(in->gauge), missed = t->expert_misses;
    double dense_s, hits_s, rest_s, io, stream;

    dense_s = seconds(in->gauge, w->dense, 1) +
              gauge_seconds(in->gauge, w->head, w->head_bytes, 1) + attention_s(in, depth, 1);
    hits_s = experts_s(in, 1);
    s->matrix_s = dense_s + hits_s;
    s->ram_s = (sum(w->dense) + w->head_bytes + chosen_bytes(w) + t->kv) / ram;
    s->read_bytes = missed + t->streamed;
    s->read_s = read_s(in, s->read_bytes);
    s->wait_s = (double)w->n_ops * in->gauge->op_s;
    if (missed > 0)
        s->wait_s += (double)w->n_units * LAYER_WAIT_S;
    stream = read_s(in, t->streamed) / STEADY;
    /* what streams is read all the while; what misses, while its layer's hits are computed */
    io = read_s(in, missed);
    rest_s = cpu_s(in, s->read_bytes) + s->wait_s;
    return fmax(stream + io, dense_s + rest_s + (missed > 0 ? fmax(io, hits_s) : hits_s));
}

/* -- prefill -------------------------------------------------------------------------------- */

static double chunk(const struct forecast_input *in, double rows, double depth,
                    struct forecast_side *s)
{
    const struct model_work *w = in->work;
    double ram = gauge_ram_rate(in->gauge), bytes = 0, dense_s, experts, wait;

    dense_s = seconds(in->gauge, w->dense, rows) + attention_s(in, depth, rows);
    experts = experts_s(in, rows);
    dense_s += rows * w->row_bytes * in->gauge->row_byte_s;
    wait = (double)w->n_ops * in->gauge->op_s;
    if (!placement_is_whole(in->placement)) {
        double there =
            w->n_units ? (double)in->placement->n_slots / (double)(w->n_units * w->n_experts) : 1;

        bytes = (double)in->placement->stream_bytes;
        if (w->n_experts)
            bytes += sum(w->experts) * touched(w, rows) * (1 - fmin(there, 1));
    }
    s->matrix_s += dense_s + experts;
    s->ram_s += (sum(w->dense) + (w->n_experts ? sum(w->experts) * touched(w, rows) : 0)) / ram;
    s->read_bytes += bytes;
    s->read_s += read_s(in, bytes);
    s->wait_s += wait;
    return fmax(read_s(in, bytes) / STEADY, dense_s + experts + wait + cpu_s(in, bytes));
}

static double prompt(const struct forecast_input *in, double tokens, struct forecast_side *s)
{
    const struct model_work *w = in->work;
    double done = 0, head_s = gauge_seconds(in->gauge, w->head, w->head_bytes, 1), all = head_s;

    while (done < tokens) {
        double rows = fmin((double)in->n_batch, tokens - done);

        all += chunk(in, rows, done + rows / 2, s);
        done += rows;
    }
    s->matrix_s += head_s;
    return all;
}

void forecast(const struct forecast_input *in, struct forecast *ret)
{
    struct forecast f = {.depth = MIN((size_t)FORECAST_DEPTH, in->n_ctx / 2)};
    bool streams = !placement_is_whole(in->placement);
    double s;

    f.tiers = tiers_at(in, (double)f.depth);
    if (!f.depth || !in->n_batch || gauge_ram_rate(in->gauge) <= 0 ||
        (streams && in->drive_rate <= 0)) {
        *ret = f;
        return;
    }
    s = decode_at(in, (double)f.depth, &f.tiers, &f.decode);
    f.decode.per_s = s > 0 ? 1 / s : 0;
    s = prompt(in, (double)f.depth, &f.prefill);
    f.prefill.per_s = s > 0 ? (double)f.depth / s : 0;
    find_limit(&f.decode);
    find_limit(&f.prefill);
    *ret = f;
}
