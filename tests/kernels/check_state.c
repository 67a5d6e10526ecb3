/* Checkers of the kernels of recurrent layers; see check.h. */
#include <stdlib.h>
#include <string.h>

#include "backends/op.h"
#include "tests/kernels/check.h"

#define MAX_ROWS 5

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = check_normal() * 0.5f;
}

/* n random floats that end at an unreadable page. */
static float *guarded(struct guard *g, size_t n)
{
    float *x;

    guard_init(g, n * sizeof(float));
    x = guard_end(g, n * sizeof(float));
    fill(x, n);
    return x;
}

static int compare(const struct row *r, const char *what, size_t n, const float *got,
                   const float *want, size_t len)
{
    size_t at = check_same(got, want, len);

    if (at < len)
        return check_fail(r, "n=%zu: %s[%zu] is %a, the twin says %a", n, what, at, (double)got[at],
                          (double)want[at]);
    return 0;
}

/* -- conv ------------------------------------------------------------------------------ */

static int try_conv(const struct row *r, size_t n, size_t taps, bool bias, bool silu)
{
    struct guard g[OP_CONV_TAPS + 3];
    const float *x[OP_CONV_TAPS];
    float *y = guarded(&g[0], n), *want = malloc(n * sizeof(float));
    struct conv c = {
        .x = x, .w = guarded(&g[1], n * taps), .w_stride = n, .taps = taps, .silu = silu, .n = n};
    int bad;

    c.bias = guarded(&g[2], n);
    c.bias = bias ? c.bias : NULL;
    for (size_t j = 0; j < taps; j++)
        x[j] = guarded(&g[3 + j], n);
    c.y = want;
    r->twin.conv(&c);
    c.y = y;
    r->kernel.conv(&c);
    bad = compare(r, "y", n, y, want, n);
    for (size_t j = 0; j < taps + 3; j++)
        guard_clear(&g[j]);
    free(want);
    return bad;
}

int check_conv(const struct row *r)
{
    static const size_t taps[] = {2, 3, 4, OP_CONV_TAPS};
    int bad = 0;

    for (size_t n = 1; n <= 69 && !bad; n++)
        for (size_t t = 0; t < sizeof(taps) / sizeof(taps[0]) && !bad; t++)
            bad = try_conv(r, n, taps[t], n % 2, n % 3 != 0);
    return bad;
}

/* -- states ------------------------------------------------------------------------------ */

/* A state and rows of outputs, for the kernel and for its twin. */
struct pair {
    struct guard g[2];
    float *state[2];
    float *out[2];
    size_t n_state, n_out;
};

static void pair_init(struct pair *p, size_t n_state, size_t n_out)
{
    p->n_state = n_state;
    p->n_out = n_out;
    for (int i = 0; i < 2; i++) {
        p->state[i] = guarded(&p->g[i], n_state);
        p->out[i] = calloc(n_out, sizeof(float));
    }
    memcpy(p->state[1], p->state[0], n_state * sizeof(float));
}

static int pair_end(const struct row *r, struct pair *p, size_t n)
{
    int bad = compare(r, "o", n, p->out[0], p->out[1], p->n_out) ||
              compare(r, "state", n, p->state[0], p->state[1], p->n_state);

    for (int i = 0; i < 2; i++) {
        guard_clear(&p->g[i]);
        free(p->out[i]);
    }
    return bad;
}

static int try_delta(const struct row *r, size_t n, size_t cols, size_t rows, bool each)
{
    struct guard g[5];
    struct pair p;
    struct delta d = {.q = guarded(&g[0], n * rows),
                      .k = guarded(&g[1], n * rows),
                      .v = guarded(&g[2], cols * rows),
                      .decay = guarded(&g[3], (each ? n : 1) * rows),
                      .rate = guarded(&g[4], rows),
                      .q_stride = n,
                      .k_stride = n,
                      .v_stride = cols,
                      .decay_stride = each ? n : 1,
                      .rate_stride = 1,
                      .decay_step = each,
                      .q_scale = 0.7f,
                      .k_scale = 0.3f,
                      .o_stride = cols,
                      .rows = rows,
                      .n = n,
                      .cols = cols};

    pair_init(&p, n * KERNELS_COLS, cols * rows);
    for (int i = 0; i < 2; i++) {
        d.state = p.state[i];
        d.o = p.out[i];
        (i ? r->twin : r->kernel).delta(&d);
    }
    for (int i = 0; i < 5; i++)
        guard_clear(&g[i]);
    return pair_end(r, &p, n);
}

int check_delta(const struct row *r)
{
    static const size_t sizes[] = {1, 3, 4, 7, 16, 33, 64, 128};
    int bad = 0;

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]) && !bad; s++)
        for (size_t cols = 1; cols <= KERNELS_COLS && !bad; cols++)
            bad = try_delta(r, sizes[s], cols, 1 + cols % MAX_ROWS, cols % 2);
    return bad;
}

static int try_wkv(const struct row *r, size_t n, size_t cols)
{
    struct guard g[6];
    struct pair p;
    struct wkv w = {.r = guarded(&g[0], n),
                    .k = guarded(&g[1], n),
                    .decay = guarded(&g[2], n),
                    .seen = guarded(&g[3], n),
                    .write = guarded(&g[4], n),
                    .v = guarded(&g[5], cols),
                    .n = n,
                    .cols = cols};

    pair_init(&p, n * KERNELS_COLS, cols);
    for (int i = 0; i < 2; i++) {
        w.state = p.state[i];
        w.o = p.out[i];
        (i ? r->twin : r->kernel).wkv(&w);
    }
    for (int i = 0; i < 6; i++)
        guard_clear(&g[i]);
    return pair_end(r, &p, n);
}

int check_wkv(const struct row *r)
{
    static const size_t sizes[] = {1, 3, 4, 7, 16, 33, 64, 128};
    int bad = 0;

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]) && !bad; s++)
        for (size_t cols = 1; cols <= KERNELS_COLS && !bad; cols++)
            bad = try_wkv(r, sizes[s], cols);
    return bad;
}

static int try_ssm(const struct row *r, size_t n, size_t cols, size_t rows, bool each)
{
    struct guard g[7];
    struct pair p;
    size_t steps = each ? cols : 1;
    struct ssm s = {.x = guarded(&g[0], cols * rows),
                    .b = guarded(&g[1], n * rows),
                    .c = guarded(&g[2], n * rows),
                    .dt = guarded(&g[3], steps * rows),
                    .decay = guarded(&g[4], rows),
                    .a = guarded(&g[5], n * KERNELS_COLS),
                    .d = guarded(&g[6], KERNELS_COLS),
                    .x_stride = cols,
                    .b_stride = n,
                    .c_stride = n,
                    .dt_stride = steps,
                    .decay_stride = 1,
                    .dt_each = each,
                    .y_stride = cols,
                    .rows = rows,
                    .n = n,
                    .cols = cols};

    s.a = each ? s.a : NULL;
    pair_init(&p, n * KERNELS_COLS, cols * rows);
    for (int i = 0; i < 2; i++) {
        s.state = p.state[i];
        s.y = p.out[i];
        (i ? r->twin : r->kernel).ssm(&s);
    }
    for (int i = 0; i < 7; i++)
        guard_clear(&g[i]);
    return pair_end(r, &p, n);
}

int check_ssm(const struct row *r)
{
    static const size_t sizes[] = {1, 3, 4, 7, 16, 33, 128};
    int bad = 0;

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]) && !bad; s++)
        for (size_t cols = 1; cols <= KERNELS_COLS && !bad; cols++)
            bad = try_ssm(r, sizes[s], cols, 1 + cols % MAX_ROWS, cols % 2);
    return bad;
}
