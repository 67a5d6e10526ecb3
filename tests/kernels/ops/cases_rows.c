/* Beds of the ops that work row by row. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/formats/act.h"
#include "tests/kernels/ops/bed.h"

#define CHECK(b) ((*ret_run)++, bed_check(&(b)))

/* -- EMBED -------------------------------------------------------------------------- */

static double want_embed(const struct bed *b, int o, size_t r, size_t i)
{
    (void)o;
    return bed_weight(&b->op.src[0], 0, (size_t)b->run.tokens[r], i) * (double)b->op.p.embed.scale;
}

static double want_row(const struct bed *b, int o, size_t r, size_t i)
{
    (void)o;
    return bed_weight(&b->op.src[0], 0, b->op.p.embed.by == OP_EMBED_POSITION ? b->run.pos + r : 0,
                      i);
}

/* A table of positions, from the middle of it to its last row; or the first row of one. */
static int embed_by(enum op_embed by, int *ret_run)
{
    struct bed b = {.op = {.kind = OP_EMBED}, .want = want_row};

    snprintf(b.what, sizeof(b.what), by == OP_EMBED_FIRST ? "of the first" : "by position");
    b.op.p.embed.by = by;
    b.op.p.embed.scale = 1.0f;
    b.op.src[0] = bed_f32(&b, 48, by == OP_EMBED_FIRST ? 2 : 20);
    bed_out(&b, 0, 48, 13);
    b.run = (struct op_run){.rows = 13, .pos = 7};
    return CHECK(b);
}

int cases_EMBED(int *ret_run)
{
    int bad = 0;

    for (int f = 0; f < FORMAT_COUNT; f++) {
        const struct format *fmt = format_of((enum format_id)f);
        struct bed b = {.op = {.kind = OP_EMBED}, .nmse = 1e-13, .want = want_embed};
        int32_t *tokens;

        if (!fmt->from_f32)
            continue;
        snprintf(b.what, sizeof(b.what), "of %s", fmt->name);
        b.op.src[0] = bed_weights(&b, fmt, 512, 19, 1);
        bed_out(&b, 0, 512, 9);
        tokens = bed_alloc(&b, 9 * sizeof(*tokens));
        for (int r = 0; r < 9; r++)
            tokens[r] = (int32_t)(bed_random() % 19);
        b.run = (struct op_run){.rows = 9, .tokens = tokens};
        b.op.p.embed.scale = f % 2 ? 1.0f : 22.627417f;
        bad += CHECK(b);
    }
    return bad + embed_by(OP_EMBED_POSITION, ret_run) + embed_by(OP_EMBED_FIRST, ret_run);
}

/* -- ROPE_TABLE ----------------------------------------------------------------------- */

static double yarn_keep(const struct op_rope_params *p, size_t i)
{
    double low, high, y;

    low = floor(p->n_dims * log(p->n_ctx_orig / ((double)p->beta_fast * 2 * M_PI)) /
                (2 * log((double)p->base)));
    high = ceil(p->n_dims * log(p->n_ctx_orig / ((double)p->beta_slow * 2 * M_PI)) /
                (2 * log((double)p->base)));
    low = fmax(low, 0);
    high = fmin(high, p->n_dims - 1.0);
    y = ((double)i - low) / fmax(0.001, high - low);
    return (1 - fmin(1, fmax(0, y))) * (double)p->ext_factor;
}

static double want_rope_table(const struct bed *b, int o, size_t r, size_t i)
{
    const struct op_rope_params *p = &b->op.p.rope_table;
    double freq = pow((double)p->base, -2.0 * (double)(i / 2) / p->n_dims);
    double angle, magnitude = (double)p->attn_factor;

    (void)o;
    if (b->op.src[0].fmt)
        freq /= bed_vec(b, 0, i / 2);
    angle = freq * (double)p->freq_scale;
    if (p->ext_factor != 0.0f) {
        double keep = yarn_keep(p, i / 2);

        angle = angle * (1 - keep) + freq * keep;
        magnitude *= 1 + 0.1 * log(1 / (double)p->freq_scale);
    }
    angle *= (double)(b->run.pos + r);
    return (i % 2 ? sin(angle) : cos(angle)) * magnitude;
}

int cases_ROPE_TABLE(int *ret_run)
{
    static const struct op_rope_params params[] = {
        {.n_dims = 64, .base = 10000.0f, .freq_scale = 1.0f, .attn_factor = 1.0f},
        {.n_dims = 128, .base = 500000.0f, .freq_scale = 1.0f, .attn_factor = 1.0f},
        {.n_dims = 80, .base = 1e6f, .freq_scale = 0.25f, .attn_factor = 1.0f},
        {.n_dims = 64,
         .base = 150000.0f,
         .freq_scale = 1.0f / 32,
         .ext_factor = 1.0f,
         .attn_factor = 1.0f,
         .beta_fast = 32.0f,
         .beta_slow = 1.0f,
         .n_ctx_orig = 4096},
    };
    int bad = 0;

    for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++)
        for (int factors = 0; factors < 2; factors++)
            for (int far = 0; far < 2; far++) {
                struct bed b = {
                    .op = {.kind = OP_ROPE_TABLE}, .nmse = 1e-14, .want = want_rope_table};

                snprintf(b.what, sizeof(b.what), "parameters %zu%s%s", i,
                         factors ? ", factors" : "", far ? ", far" : "");
                b.op.p.rope_table = params[i];
                bed_out(&b, 0, params[i].n_dims, 11);
                if (factors) {
                    b.op.src[0] = bed_f32(&b, params[i].n_dims / 2, 1);
                    for (size_t k = 0; k < params[i].n_dims / 2; k++)
                        ((float *)b.op.src[0].data)[k] = 1.0f + (float)k;
                }
                b.run = (struct op_run){.rows = 11, .pos = far ? 131000 : 0};
                bad += CHECK(b);
            }
    return bad;
}

/* -- RMSNORM --------------------------------------------------------------------------- */

static double want_rmsnorm(const struct bed *b, int o, size_t r, size_t i)
{
    size_t group = b->op.p.rmsnorm.group, first = i / group * group;
    const struct tensor *w = &b->op.src[1], *bias = &b->op.src[2];
    double sum = 0;

    (void)o;
    for (size_t j = first; j < first + group; j++)
        sum += bed_src(b, 0, r, j) * bed_src(b, 0, r, j);
    sum = bed_src(b, 0, r, i) / sqrt(sum / (double)group + (double)b->op.p.rmsnorm.eps);
    if (w->fmt)
        sum *= bed_vec(b, 1, w->n[0] == group ? i - first : i);
    return bias->fmt ? sum + bed_vec(b, 2, bias->n[0] == group ? i - first : i) : sum;
}

int cases_RMSNORM(int *ret_run)
{
    static const struct {
        size_t width, group, weights, bias;
    } shapes[] = {{64, 64, 64, 0},     {576, 576, 576, 576}, {1000, 1000, 0, 0}, {512, 128, 128, 0},
                  {384, 96, 384, 384}, {256, 64, 64, 64},    {5, 5, 5, 5}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct bed b = {
            .op = {.kind = OP_RMSNORM}, .nmse = 1e-12, .want = want_rmsnorm, .row_src = 1};

        snprintf(b.what, sizeof(b.what), "%zu by %zu", shapes[i].width, shapes[i].group);
        b.op.p.rmsnorm.eps = 1e-5f;
        b.op.p.rmsnorm.group = shapes[i].group;
        b.op.src[0] = bed_f32(&b, shapes[i].width, 10);
        if (shapes[i].weights)
            b.op.src[1] = bed_f32(&b, shapes[i].weights, 1);
        if (shapes[i].bias)
            b.op.src[2] = bed_f32(&b, shapes[i].bias, 1);
        bed_out(&b, 0, shapes[i].width, 10);
        b.run.rows = 10;
        bad += CHECK(b);
    }
    return bad;
}

/* -- LAYERNORM ------------------------------------------------------------------------- */

static double want_layernorm(const struct bed *b, int o, size_t r, size_t i)
{
    size_t group = b->op.p.layernorm.group, first = i / group * group;
    const struct tensor *w = &b->op.src[1], *bias = &b->op.src[2];
    double mean = 0, sum = 0, y;

    (void)o;
    for (size_t j = first; j < first + group; j++)
        mean += bed_src(b, 0, r, j) / (double)group;
    for (size_t j = first; j < first + group; j++)
        sum += pow(bed_src(b, 0, r, j) - mean, 2);
    y = (bed_src(b, 0, r, i) - mean) / sqrt(sum / (double)group + (double)b->op.p.layernorm.eps);
    if (w->fmt)
        y *= bed_vec(b, 1, w->n[0] == group ? i - first : i);
    return bias->fmt ? y + bed_vec(b, 2, bias->n[0] == group ? i - first : i) : y;
}

int cases_LAYERNORM(int *ret_run)
{
    static const struct {
        size_t width, group, weights, bias;
    } shapes[] = {{64, 64, 64, 64},     {576, 576, 576, 0},  {1000, 1000, 0, 0},
                  {512, 128, 128, 128}, {384, 96, 384, 384}, {5, 5, 5, 5}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct bed b = {
            .op = {.kind = OP_LAYERNORM}, .nmse = 1e-12, .want = want_layernorm, .row_src = 1};

        snprintf(b.what, sizeof(b.what), "%zu by %zu", shapes[i].width, shapes[i].group);
        b.op.p.layernorm.eps = 1e-5f;
        b.op.p.layernorm.group = shapes[i].group;
        b.op.src[0] = bed_f32(&b, shapes[i].width, 10);
        if (shapes[i].weights)
            b.op.src[1] = bed_f32(&b, shapes[i].weights, 1);
        if (shapes[i].bias)
            b.op.src[2] = bed_f32(&b, shapes[i].bias, 1);
        bed_out(&b, 0, shapes[i].width, 10);
        b.run.rows = 10;
        bad += CHECK(b);
    }
    return bad;
}

/* -- QUANTIZE --------------------------------------------------------------------------- */

int cases_QUANTIZE(int *ret_run)
{
    static const size_t widths[] = {32, 256, 288, 576, 1024, 4096};
    int bad = 0;

    for (int act = 0; act < ACT_COUNT; act++)
        for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
            struct bed b = {.op = {.kind = OP_QUANTIZE}, .row_src = 1};
            size_t n = widths[i], bytes = act_row_bytes((enum act_kind)act, n), rows = 9;
            double error = 0, power = 0;

            snprintf(b.what, sizeof(b.what), "kind %d, %zu", act, n);
            b.op.p.quantize.act = (enum act_kind)act;
            b.op.src[0] = bed_f32(&b, n, rows);
            bed_out(&b, 0, bytes / sizeof(float), rows);
            b.run.rows = rows;
            bad += CHECK(b);
            /* A second run, kept, for the distance to the input. */
            b = (struct bed){.op = {.kind = OP_QUANTIZE, .p.quantize.act = (enum act_kind)act}};
            b.op.src[0] = bed_f32(&b, n, rows);
            b.op.dst[0] = bed_f32(&b, bytes / sizeof(float), rows);
            b.run.rows = rows;
            {
                const char *name;
                struct err err;

                if (backend_by_name("cpu")->run(bed_backend(0, &name), &b.op, 1, &b.run, NULL,
                                                &err) < 0)
                    bad++;
            }
            for (size_t r = 0; r < rows; r++)
                for (size_t k = 0; k < n; k++) {
                    double x = bed_src(&b, 0, r, k);
                    double e = x - bed_activation((enum act_kind)act, &b.op.dst[0], r, k);

                    error += e * e;
                    power += x * x;
                }
            if (!(error <= (act == ACT_F32 ? 0 : 1e-4) * power)) {
                printf("  FAIL QUANTIZE kind %d, %zu: error %g\n", act, n, error / power);
                bad++;
            }
            bed_clear(&b);
        }
    return bad;
}

/* -- ROPE ------------------------------------------------------------------------------- */

static double want_rope(const struct bed *b, int o, size_t r, size_t i)
{
    size_t dim = b->op.p.rope.head_dim, n = b->op.p.rope.n_dims, offset = b->op.p.rope.offset;
    size_t at = i % dim - offset, first = i - at; /* below the offset at is huge */
    bool neox = b->op.p.rope.type == OP_ROPE_NEOX;
    size_t pair = neox ? at % (n / 2) : at / 2;
    bool second = neox ? at >= n / 2 : at % 2;
    double a, c, x, y;

    (void)o;
    if (at >= n)
        return bed_src(b, 0, r, i);
    x = bed_src(b, 0, r, first + (neox ? pair : 2 * pair));
    y = bed_src(b, 0, r, first + (neox ? pair + n / 2 : 2 * pair + 1));
    c = bed_src(b, 1, r, 2 * pair);
    a = bed_src(b, 1, r, 2 * pair + 1);
    return second ? x * a + y * c : x * c - y * a;
}

int cases_ROPE(int *ret_run)
{
    static const struct {
        unsigned dim, n_dims, offset, heads;
    } shapes[] = {{64, 64, 0, 9}, {128, 128, 0, 4},  {80, 32, 0, 5}, {96, 96, 0, 2},
                  {16, 6, 0, 3},  {192, 64, 128, 3}, {48, 8, 20, 2}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int type = 0; type < 2; type++) {
            struct bed b = {
                .op = {.kind = OP_ROPE}, .nmse = 1e-13, .want = want_rope, .row_src = 3};

            snprintf(b.what, sizeof(b.what), "%u from %u of %u, type %d", shapes[i].n_dims,
                     shapes[i].offset, shapes[i].dim, type);
            b.op.p.rope.offset = shapes[i].offset;
            b.op.p.rope.type = (enum op_rope)type;
            b.op.p.rope.n_dims = shapes[i].n_dims;
            b.op.p.rope.head_dim = shapes[i].dim;
            b.op.src[0] = bed_f32(&b, (size_t)shapes[i].dim * shapes[i].heads, 9);
            b.op.src[1] = bed_f32(&b, shapes[i].n_dims, 9);
            bed_out(&b, 0, (size_t)shapes[i].dim * shapes[i].heads, 9);
            b.run.rows = 9;
            bad += CHECK(b);
        }
    return bad;
}

/* -- GLU, ADD, SCALE --------------------------------------------------------------------- */

static double want_glu(const struct bed *b, int o, size_t r, size_t i)
{
    double x = bed_src(b, 0, r, i);
    double up = b->op.src[1].fmt ? bed_src(b, 1, r, i) : 1.0;

    (void)o;
    switch (b->op.p.glu.act) {
    case OP_ACT_SILU: return x / (1 + exp(-x)) * up;
    case OP_ACT_GELU: return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) * up;
    case OP_ACT_RELU2: return x > 0 ? x * x * up : 0;
    case OP_ACT_CLAMPED:
        x = fmin(x, 7.0);
        return x / (1 + exp(-1.702 * x)) * (fmax(-7.0, fmin(7.0, up)) + 1);
    case OP_ACT_SIGMOID: return up / (1 + exp(-x));
    case OP_ACT_NONE: return x * up;
    }
    return NAN;
}

int cases_GLU(int *ret_run)
{
    static const size_t widths[] = {1, 17, 96, 1536};
    int bad = 0;

    for (int act = 0; act <= OP_ACT_NONE; act++)
        for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
            for (int up = act == OP_ACT_RELU2 || act == OP_ACT_GELU ? 0 : 1; up < 2; up++) {
                struct bed b = {
                    .op = {.kind = OP_GLU}, .nmse = 1e-12, .want = want_glu, .row_src = 3};

                snprintf(b.what, sizeof(b.what), "act %d, %zu%s", act, widths[i],
                         up ? "" : ", alone");
                b.op.p.glu.act = (enum op_act)act;
                b.op.src[0] = bed_f32(&b, widths[i], 8);
                if (up)
                    b.op.src[1] = bed_f32(&b, widths[i], 8);
                else
                    b.row_src = 1;
                bed_out(&b, 0, widths[i], 8);
                b.run.rows = 8;
                bad += CHECK(b);
            }
    return bad;
}

static double want_add(const struct bed *b, int o, size_t r, size_t i)
{
    (void)o;
    return bed_src(b, 0, r, i) + bed_src(b, 1, r, i);
}

int cases_ADD(int *ret_run)
{
    struct bed b = {.op = {.kind = OP_ADD}, .nmse = 1e-13, .want = want_add, .row_src = 3};

    b.op.src[0] = bed_f32(&b, 577, 13);
    b.op.src[1] = bed_f32(&b, 577, 13);
    bed_out(&b, 0, 577, 13);
    b.run.rows = 13;
    return CHECK(b);
}

static double want_scale(const struct bed *b, int o, size_t r, size_t i)
{
    const struct tensor *w = &b->op.src[1];
    double factor = w->fmt ? bed_vec(b, 1, w->n[0] == 1 ? 0 : i) : 1.0;

    (void)o;
    return bed_src(b, 0, r, i) * (double)b->op.p.scale.s * factor;
}

static double want_temperature(const struct bed *b, int o, size_t r, size_t i)
{
    double steps = floor((double)(b->run.pos + r + b->op.p.scale.offset) / b->op.p.scale.step);

    return want_scale(b, o, r, i) * (1 + (double)b->op.p.scale.temperature * log(1 + steps));
}

int cases_SCALE(int *ret_run)
{
    int bad = 0;

    for (int temperature = 0; temperature < 4; temperature++) {
        struct bed b = {.op = {.kind = OP_SCALE}, .nmse = 1e-13, .want = want_scale, .row_src = 1};

        b.op.p.scale.s = 0.22f;
        b.op.src[0] = bed_f32(&b, 333, 13);
        bed_out(&b, 0, 333, 13);
        b.run.rows = 13;
        if (temperature == 3) {
            snprintf(b.what, sizeof(b.what), "by column");
            b.op.src[1] = bed_f32(&b, 333, 1);
        } else if (temperature) {
            snprintf(b.what, sizeof(b.what), "by position");
            b.want = want_temperature;
            b.op.p.scale.temperature = 0.3f;
            b.op.p.scale.step = 4;
            b.op.p.scale.offset = (unsigned)temperature - 1;
            b.run.pos = 30;
            b.op.src[1] = bed_f32(&b, 1, 1);
        }
        bad += CHECK(b);
    }
    return bad;
}

static double want_softcap(const struct bed *b, int o, size_t r, size_t i)
{
    double cap = (double)b->op.p.softcap.cap;

    (void)o;
    return cap * tanh(bed_src(b, 0, r, i) / cap);
}

int cases_SOFTCAP(int *ret_run)
{
    struct bed b = {.op = {.kind = OP_SOFTCAP}, .nmse = 1e-12, .want = want_softcap, .row_src = 1};

    b.op.p.softcap.cap = 1.5f;
    b.op.src[0] = bed_f32(&b, 333, 13);
    bed_out(&b, 0, 333, 13);
    b.run.rows = 13;
    return CHECK(b);
}

/* -- ROWS --------------------------------------------------------------------------------- */

static double want_rows(const struct bed *b, int o, size_t r, size_t i)
{
    (void)o;
    return bed_src(b, 0, (size_t)b->run.rows_out[r], i);
}

int cases_ROWS(int *ret_run)
{
    static const int32_t wanted[] = {0, 3, 4, 11};
    int bad = 0;

    for (size_t n = 1; n <= 4; n++) {
        struct bed b = {.op = {.kind = OP_ROWS}, .nmse = 0, .want = want_rows, .whole = true};

        snprintf(b.what, sizeof(b.what), "%zu of 12", n);
        b.op.src[0] = bed_f32(&b, 100, 12);
        bed_out(&b, 0, 100, n);
        b.run = (struct op_run){.rows = 12, .rows_out = wanted, .n_out = n};
        bad += CHECK(b);
    }
    return bad;
}

/* -- ROUTER -------------------------------------------------------------------------------- */

static bool by_logits(const struct bed *b)
{
    return b->op.p.router.gating == OP_GATING_SOFTMAX_CHOSEN ||
           b->op.p.router.gating == OP_GATING_SIGMOID_CHOSEN;
}

static double softmax_over(const struct bed *b, size_t r, const size_t *ids, size_t n, size_t e)
{
    double max = -INFINITY, sum = 0;

    for (size_t i = 0; i < n; i++)
        max = fmax(max, bed_src(b, 0, r, ids ? ids[i] : i));
    for (size_t i = 0; i < n; i++)
        sum += exp(bed_src(b, 0, r, ids ? ids[i] : i) - max);
    return exp(bed_src(b, 0, r, e) - max) / sum;
}

/* What an expert competes with. */
static double expert_score(const struct bed *b, size_t r, size_t e)
{
    double x = bed_src(b, 0, r, e), bias = b->op.src[1].fmt ? bed_vec(b, 1, e) : 0.0;

    if (b->op.p.router.gating == OP_GATING_SIGMOID)
        x = bed_sigmoid(x);
    else if (b->op.p.router.gating == OP_GATING_SQRT_SOFTPLUS)
        x = sqrt(log1p(exp(x)));
    else if (!by_logits(b))
        x = softmax_over(b, r, NULL, b->op.p.router.n_expert, e);
    return x + bias;
}

static double group_worth(const struct bed *b, size_t r, size_t g)
{
    size_t size = b->op.p.router.n_expert / b->op.p.router.n_group;
    double first = -INFINITY, second = -INFINITY;

    for (size_t e = g * size; e < (g + 1) * size; e++) {
        double score = expert_score(b, r, e);

        second = fmax(second, fmin(first, score));
        first = fmax(first, score);
    }
    return size < 2 ? first : first + second;
}

static bool in_best_groups(const struct bed *b, size_t r, size_t e)
{
    size_t n_group = b->op.p.router.n_group, better = 0, g;

    if (n_group < 2)
        return true;
    g = e / (b->op.p.router.n_expert / n_group);
    for (size_t i = 0; i < n_group; i++) {
        double d = group_worth(b, r, i) - group_worth(b, r, g);

        better += d > 0 || (d == 0 && i < g);
    }
    return better < b->op.p.router.n_group_used;
}

static void choose(const struct bed *b, size_t r, size_t *ids)
{
    bool taken[OP_MAX_EXPERTS] = {false};

    for (size_t i = 0; i < b->op.p.router.n_used; i++) {
        double most = -INFINITY;

        ids[i] = 0;
        for (size_t e = 0; e < b->op.p.router.n_expert; e++) {
            double score = expert_score(b, r, e);

            if (!taken[e] && score > most && in_best_groups(b, r, e)) {
                most = score;
                ids[i] = e;
            }
        }
        taken[ids[i]] = true;
    }
}

static double expert_weight(const struct bed *b, size_t r, const size_t *ids, size_t i)
{
    double x = bed_src(b, 0, r, ids[i]);

    switch (b->op.p.router.gating) {
    case OP_GATING_SOFTMAX: return softmax_over(b, r, NULL, b->op.p.router.n_expert, ids[i]);
    case OP_GATING_SOFTMAX_CHOSEN: return softmax_over(b, r, ids, b->op.p.router.n_used, ids[i]);
    case OP_GATING_SQRT_SOFTPLUS: return sqrt(log1p(exp(x)));
    case OP_GATING_SIGMOID:
    case OP_GATING_SIGMOID_CHOSEN: break;
    }
    return bed_sigmoid(x);
}

/* The ids are compared as the bits that they are: a wrong one is far off. */
static double want_router(const struct bed *b, int o, size_t r, size_t i)
{
    size_t ids[OP_MAX_EXPERTS];
    double sum = 0;

    if (b->op.src[3].fmt)
        for (size_t k = 0; k < b->op.p.router.n_used; k++)
            ids[k] = (size_t)((int32_t *)tensor_row(&b->op.src[3], (size_t)b->run.tokens[r]))[k];
    else
        choose(b, r, ids);
    if (o == 0) {
        int32_t id = (int32_t)ids[i];
        float bits;

        memcpy(&bits, &id, sizeof(bits));
        return (double)bits;
    }
    for (size_t k = 0; k < b->op.p.router.n_used; k++)
        sum += expert_weight(b, r, ids, k);
    return expert_weight(b, r, ids, i) / (b->op.p.router.normalise ? sum : 1.0) *
           (double)b->op.p.router.scale * (b->op.src[2].fmt ? bed_vec(b, 2, ids[i]) : 1.0);
}

/* Experts that the tokens say, whatever the logits. */
static int router_by_token(int *ret_run)
{
    struct bed b = {.op = {.kind = OP_ROUTER}, .nmse = 1e-11, .want = want_router, .row_src = 1};
    int32_t *ids, *tokens;

    snprintf(b.what, sizeof(b.what), "by token");
    b.op.p.router.n_expert = 12;
    b.op.p.router.n_used = 3;
    b.op.p.router.gating = OP_GATING_SQRT_SOFTPLUS;
    b.op.p.router.normalise = true;
    b.op.p.router.scale = 1.5f;
    b.op.src[0] = bed_f32(&b, 12, 9);
    b.op.src[3] = bed_tensor(&b, format_of(FORMAT_i32), 3, 20, 1, 1);
    ids = b.op.src[3].data;
    for (int i = 0; i < 60; i++)
        ids[i] = (i / 3 * 5 + i % 3) % 12;
    tokens = bed_alloc(&b, 9 * sizeof(*tokens));
    for (int r = 0; r < 9; r++)
        tokens[r] = (int32_t)(bed_random() % 20);
    bed_out(&b, 0, 3, 9);
    bed_out(&b, 1, 3, 9);
    b.run = (struct op_run){.rows = 9, .tokens = tokens};
    return CHECK(b);
}

int cases_ROUTER(int *ret_run)
{
    int bad = router_by_token(ret_run);

    for (int variant = 0; variant < 64; variant++) {
        unsigned n = variant & 8 ? 40 : 8, used = variant & 8 ? 6 : 2;
        struct bed b = {
            .op = {.kind = OP_ROUTER}, .nmse = 1e-11, .want = want_router, .row_src = 1};

        snprintf(b.what, sizeof(b.what), "variant %d", variant);
        b.op.p.router.n_expert = n;
        b.op.p.router.n_used = used;
        if (variant & 16) {
            b.op.p.router.n_group = variant & 8 ? 5 : 8; /* of eight and of one */
            b.op.p.router.n_group_used = 2;
        }
        b.op.p.router.gating = (enum op_gating)((variant & 1) + (variant & 32 ? 2 : 0));
        if (variant % 5 == 4)
            b.op.p.router.gating = OP_GATING_SQRT_SOFTPLUS;
        b.op.p.router.normalise = variant & 2;
        b.op.p.router.scale = variant & 4 ? 2.5f : 1.0f;
        b.op.src[0] = bed_f32(&b, n, 11);
        /* Equal logits: the lowest id wins. */
        for (unsigned e = 0; e < n; e++)
            tensor_f32(&b.op.src[0], 3)[e] = 1.0f;
        if (variant & 4)
            b.op.src[1] = bed_f32(&b, n, 1);
        if (variant % 3 == 1)
            b.op.src[2] = bed_f32(&b, n, 1);
        bed_out(&b, 0, used, 11);
        bed_out(&b, 1, used, 11);
        b.run.rows = 11;
        bad += CHECK(b);
    }
    return bad;
}

/* -- LERP ------------------------------------------------------------------------------ */

static double want_lerp(const struct bed *b, int o, size_t r, size_t i)
{
    double x = bed_src(b, 0, r, i), share = bed_src(b, 2, b->op.src[2].n[1] == 1 ? 0 : r, i);

    (void)o;
    return x + (bed_src(b, 1, r, i) - x) * share;
}

int cases_LERP(int *ret_run)
{
    int bad = 0;

    for (int each = 0; each < 2; each++) {
        struct bed b = {.op = {.kind = OP_LERP}, .nmse = 1e-13, .want = want_lerp, .row_src = 3};

        snprintf(b.what, sizeof(b.what), each ? "by rows" : "by one row");
        b.row_src |= each ? 4 : 0;
        for (int i = 0; i < 3; i++)
            b.op.src[i] = bed_f32(&b, 77, i < 2 || each ? 11 : 1);
        bed_out(&b, 0, 77, 11);
        b.run.rows = 11;
        bad += CHECK(b);
    }
    return bad;
}
