/* Tokens a second from bytes and rates.  See forecast.h. */

#include "daemon/engine/forecast.h"

#include <math.h>

#include "common/alloc.h"

/* Of its rate, what a drive gives that is asked by layers which also compute. */
#define STEADY 0.97
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

struct gauge_wants forecast_wants(const struct model_work *w, struct gauge_mixture *mixtures)
{
    struct gauge_wants want = {.formats = (uint64_t)1 << w->head,
                               .cache = format_id_of(w->kv),
                               .mixtures = mixtures,
                               .n_mixtures = w->n_mixtures};

    for (int f = 0; f < FORMAT_COUNT; f++)
        if (w->dense[f] + w->wanted[f] > 0)
            want.formats |= (uint64_t)1 << f;
    for (size_t i = 0; i < w->n_mixtures; i++)
        mixtures[i] = w->mixtures[i].kind;
    return want;
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

/* Of a cache, what a row sees that has that many positions before it. */
static double span_bytes(const struct model_span *s, double depth)
{
    return s->bytes * (s->reach ? fmin(depth, (double)s->reach) : depth);
}

/* Keys and values that rows of a batch see, whose middle one has that many positions before it. */
static double kv_bytes(const struct model_work *w, double depth)
{
    double sum = 0;

    for (int i = 0; i < SPAN_COUNT; i++)
        sum += span_bytes(&w->spans[i], depth);
    return sum;
}

static double attention_s(const struct forecast_input *in, double depth, double rows)
{
    const struct model_work *w = in->work;
    double ram = gauge_ram_rate(in->gauge), s = ram > 0 ? 2 * rows * w->state_bytes / ram : 0;

    for (int i = 0; i < SPAN_COUNT; i++)
        if (w->spans[i].bytes > 0)
            s += gauge_attention_seconds(in->gauge, format_id_of(w->kv),
                                         span_bytes(&w->spans[i], depth),
                                         rows * (double)w->spans[i].rows);
    return s;
}

/* How likely a row chooses expert e of a layer, the most wanted first. */
static double chosen(const struct forecast_input *in, size_t e)
{
    return in->chosen ? fmin(fmax(in->chosen[e], 0), 1)
                      : (double)in->work->n_used / (double)in->work->n_experts;
}

/* Different experts of a layer that rows choose, from the most wanted but n on. */
static double touched(const struct forecast_input *in, double rows, size_t from)
{
    double n = 0;

    for (size_t e = from; e < in->work->n_experts; e++)
        n += 1 - pow(1 - chosen(in, e), rows);
    return n;
}

/* A layer's experts, all there. */
static double layer_s(const struct forecast_input *in, const struct gauge_mixture *kind,
                      double rows)
{
    double s = 0;

    if (rows <= 1)
        return rows * kind->n_used * gauge_expert_seconds(in->gauge, kind, 1);
    for (size_t e = 0; e < in->work->n_experts; e++) {
        double p = chosen(in, e), share = 1 - pow(1 - p, rows);

        if (share > 0)
            s += share * gauge_expert_seconds(in->gauge, kind, fmax(rows * p / share, 1));
    }
    return s;
}

/* wanted: rows whose logits are. */
static double experts_s(const struct forecast_input *in, double rows, double wanted)
{
    const struct model_work *w = in->work;
    double s = 0;

    for (size_t i = 0; i < w->n_mixtures; i++) {
        const struct model_work_mixture *m = &w->mixtures[i];

        s += (double)(m->n_layers - m->n_wanted) * layer_s(in, &m->kind, rows) +
             (double)m->n_wanted * layer_s(in, &m->kind, wanted);
    }
    return s;
}

static size_t units_wanted(const struct model_work *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n_mixtures; i++)
        n += w->mixtures[i].n_wanted;
    return n;
}

/* -- what is read --------------------------------------------------------------------------- */

static double at_rate(double rate, double bytes)
{
    return rate > 0 ? bytes / rate : 0;
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
        .resident = sum(w->dense) + sum(w->wanted) + w->head_bytes - stream,
        .streamed = stream,
        .expert_hits = chosen * hit,
        .expert_misses = chosen * (1 - hit),
        .kv = kv_bytes(w, depth),
    };
}

/* -- decode --------------------------------------------------------------------------------- */

/*
 * The experts of a layer: those that miss fly while the others compute, and each
 * computes as it lands, behind what landed before it.  How many miss, when each
 * does as likely as another.
 */
static double layer_decode_s(const struct forecast_input *in, const struct gauge_mixture *kind,
                             double miss_s, double *ret_wait_s)
{
    double each = gauge_expert_seconds(in->gauge, kind, 1), sum = 0;
    double hit = fmin(fmax(in->hit_rate, 1e-4), 1);
    double p = pow(hit, kind->n_used); /* that k of them miss */

    for (unsigned k = 0; k <= kind->n_used; k++) {
        double first = in->drive_wait_s + miss_s, last = in->drive_wait_s + k * miss_s;
        double hits = (kind->n_used - k) * each;

        sum += p * (k ? fmax(fmax(hits, first) + k * each, last + each) : hits);
        *ret_wait_s += k ? p * in->drive_wait_s : 0;
        p *= (kind->n_used - k) / (k + 1.0) * (1 - hit) / hit;
    }
    return sum;
}

/* Of all layers, of which that many bytes miss. */
static double experts_decode_s(const struct forecast_input *in, double missed, double *ret_wait_s)
{
    const struct model_work *w = in->work;
    double misses = (double)(w->n_units * w->n_used) * (1 - in->hit_rate), s = 0;

    *ret_wait_s = 0;
    for (size_t i = 0; i < w->n_mixtures; i++) {
        double n = (double)w->mixtures[i].n_layers, wait_s = 0;

        s += n * layer_decode_s(in, &w->mixtures[i].kind, at_rate(in->slice_rate, missed / misses),
                                &wait_s);
        *ret_wait_s += n * wait_s;
    }
    return s;
}

static double decode_at(const struct forecast_input *in, double depth,
                        const struct forecast_tiers *t, struct forecast_side *s)
{
    const struct model_work *w = in->work;
    double ram = gauge_ram_rate(in->gauge), missed = t->expert_misses;
    double dense_s, experts, rest_s, wait_s = 0, io, stream;

    dense_s = seconds(in->gauge, w->dense, 1) + seconds(in->gauge, w->wanted, 1) +
              gauge_seconds(in->gauge, w->head, w->head_bytes, 1) + attention_s(in, depth, 1);
    experts = experts_s(in, 1, 1);
    s->matrix_s = dense_s + experts;
    s->ram_s = (sum(w->dense) + sum(w->wanted) + w->head_bytes + chosen_bytes(w) + t->kv) / ram;
    s->read_bytes = missed + t->streamed;
    if (missed > 0)
        experts = experts_decode_s(in, missed, &wait_s);
    s->wait_s = (double)w->n_ops * in->gauge->op_s;
    rest_s = cpu_s(in, s->read_bytes) + s->wait_s;
    s->wait_s += wait_s;
    /* what streams is read all the while; what misses, while its layer's hits are computed */
    stream = at_rate(in->drive_rate, t->streamed);
    io = at_rate(in->slice_rate, missed);
    s->read_s = stream + io;
    return fmax(stream / STEADY + io + wait_s, dense_s + rest_s + experts);
}

/* -- prefill -------------------------------------------------------------------------------- */

/* Of experts, what a chunk reads: those that it chooses and that are not there. */
static double chunk_misses(const struct forecast_input *in, double rows, double wanted)
{
    const struct model_work *w = in->work;
    double quota, each, n;
    size_t n_wanted = units_wanted(w);

    if (!w->n_units || placement_is_whole(in->placement))
        return 0;
    quota = fmin((double)in->placement->n_slots / (double)w->n_units, (double)w->n_experts);
    each = sum(w->experts) / (double)(w->n_units * w->n_experts);
    n = (double)(w->n_units - n_wanted) * touched(in, rows, (size_t)quota) +
        (double)n_wanted * (wanted > 0 ? touched(in, wanted, (size_t)quota) : 0);
    return n * each;
}

static double chunk(const struct forecast_input *in, double rows, double depth, double wanted,
                    struct forecast_side *s)
{
    const struct model_work *w = in->work;
    double ram = gauge_ram_rate(in->gauge), stream = 0, missed = chunk_misses(in, rows, wanted);
    double dense_s, experts, wait, io, stream_s;

    dense_s = seconds(in->gauge, w->dense, rows) + attention_s(in, depth, rows);
    if (wanted > 0)
        dense_s += seconds(in->gauge, w->wanted, wanted) +
                   gauge_seconds(in->gauge, w->head, w->head_bytes, wanted);
    experts = experts_s(in, rows, wanted);
    dense_s += rows * w->row_bytes * in->gauge->row_byte_s;
    wait = (double)w->n_ops * in->gauge->op_s;
    if (missed > 0)
        wait += (double)w->n_units * in->drive_wait_s;
    if (!placement_is_whole(in->placement))
        stream = (double)in->placement->stream_bytes;
    s->matrix_s += dense_s + experts;
    s->ram_s += sum(w->dense) / ram;
    if (w->n_experts)
        s->ram_s += sum(w->experts) * touched(in, rows, 0) / (double)w->n_experts / ram;
    s->read_bytes += stream + missed;
    stream_s = at_rate(in->drive_rate, stream);
    io = at_rate(in->slice_rate, missed);
    s->read_s += stream_s + io;
    s->wait_s += wait;
    return fmax(stream_s / STEADY + io,
                dense_s + wait + cpu_s(in, stream + missed) + fmax(io, experts));
}

/* Logits are wanted of its last row. */
static double prompt(const struct forecast_input *in, double tokens, struct forecast_side *s)
{
    double done = 0, all = 0;

    while (done < tokens) {
        double rows = fmin((double)in->n_batch, tokens - done);

        all += chunk(in, rows, done + rows / 2, done + rows < tokens ? 0 : 1, s);
        done += rows;
    }
    return all;
}

void forecast(const struct forecast_input *in, struct forecast *ret)
{
    struct forecast f = {.depth = MIN((size_t)FORECAST_DEPTH, in->n_ctx / 2)};
    bool streams = !placement_is_whole(in->placement), known = true;
    double s;

    for (size_t i = 0; i < in->work->n_mixtures; i++)
        known = known && gauge_expert_seconds(in->gauge, &in->work->mixtures[i].kind, 1) > 0;
    f.tiers = tiers_at(in, (double)f.depth);
    if (!f.depth || !in->n_batch || !known || gauge_ram_rate(in->gauge) <= 0 ||
        (streams && (in->drive_rate <= 0 || in->slice_rate <= 0))) {
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
