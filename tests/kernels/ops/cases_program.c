/*
 * A whole layer as one program, with buffers that share memory at different
 * row widths: what the barriers between ops are for.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/formats/act.h"
#include "tests/kernels/ops/bed.h"

enum {
    WIDTH = 256,
    HEADS = 4,
    KV = 2,
    DIM = 64,
    FF = 768,
    VOCAB = 130,
    MAX_OPS = 32,
    REPEATS = 12
};

struct layer {
    struct bed b; /* owns the memory */
    struct op ops[MAX_OPS];
    size_t n;
    size_t rows;
    float *arena; /* [5][rows][FF]: two rows of values share a place when their lives do not meet */
};

static struct tensor at(const struct layer *l, int place, size_t width)
{
    return tensor_make(format_of_name("f32"), l->arena + (size_t)place * l->rows * FF, width,
                       l->rows, 1, 1);
}

static struct tensor act_at(const struct layer *l, int place, size_t n)
{
    struct tensor t = at(l, place, n);

    t.stride[1] = act_row_bytes(ACT_Q8_256, n);
    return t;
}

static struct op *add(struct layer *l, enum op_kind kind, struct tensor dst, struct tensor a)
{
    struct op *op = &l->ops[l->n++];

    *op = (struct op){.kind = kind};
    op->dst[0] = dst;
    op->src[0] = a;
    return op;
}

static void add_norm(struct layer *l, int to, int from)
{
    struct op *op = add(l, OP_RMSNORM, at(l, to, WIDTH), at(l, from, WIDTH));

    op->src[1] = bed_f32(&l->b, WIDTH, 1);
    op->p.rmsnorm.eps = 1e-6f;
    op->p.rmsnorm.group = WIDTH;
}

static void add_quantize(struct layer *l, int to, int from, size_t n)
{
    add(l, OP_QUANTIZE, act_at(l, to, n), at(l, from, n))->p.quantize.act = ACT_Q8_256;
}

static struct op *add_matmul(struct layer *l, int to, int from, size_t n, size_t n_out)
{
    struct op *op = add(l, OP_MATMUL, at(l, to, n_out), act_at(l, from, n));

    op->src[1] = bed_weights(&l->b, format_of_name("q4_k"), n, n_out, 1);
    op->p.matmul.n_weights = 1;
    op->p.matmul.act = ACT_Q8_256;
    return op;
}

static void add_sum(struct layer *l, int to, int a, int b)
{
    add(l, OP_ADD, at(l, to, WIDTH), at(l, a, WIDTH))->src[1] = at(l, b, WIDTH);
}

static void add_attention(struct layer *l)
{
    const struct format *f16 = format_of_name("f16");
    struct tensor table = bed_f32(&l->b, DIM, l->rows);
    struct tensor k = bed_tensor(&l->b, f16, DIM, OP_KV_CHUNK, KV, 2);
    struct tensor v = bed_tensor(&l->b, f16, DIM, OP_KV_CHUNK, KV, 2);
    struct op *op = add_matmul(l, 2, 4, WIDTH, HEADS * DIM);

    op->p.matmul.n_weights = 3;
    for (int i = 1; i < 3; i++) {
        op->src[1 + i] = bed_weights(&l->b, format_of_name("q6_k"), WIDTH, KV * DIM, 1);
        op->dst[i] = at(l, i == 1 ? 3 : 1, KV * DIM);
    }
    for (int i = 2; i < 4; i++) {
        op = add(l, OP_ROPE, at(l, i, i == 2 ? HEADS * DIM : KV * DIM),
                 at(l, i, i == 2 ? HEADS * DIM : KV * DIM));
        op->src[1] = table;
        op->p.rope.type = OP_ROPE_NEOX;
        op->p.rope.n_dims = op->p.rope.head_dim = DIM;
    }
    op = add(l, OP_KV_STORE, (struct tensor){0}, at(l, 3, KV * DIM));
    op->src[1] = at(l, 1, KV * DIM);
    op->src[2] = k;
    op->src[3] = v;
    op->p.kv_store.n_kv_heads = KV;
    op->p.kv_store.head_dim = op->p.kv_store.v_dim = DIM;
    op = add(l, OP_ATTENTION, at(l, 4, HEADS * DIM), at(l, 2, HEADS * DIM));
    op->src[1] = k;
    op->src[2] = v;
    op->p.attention.n_heads = HEADS;
    op->p.attention.n_kv_heads = KV;
    op->p.attention.head_dim = op->p.attention.v_dim = DIM;
    op->p.attention.scale = 0.125f;
}

static void make(struct layer *l, size_t rows)
{
    l->rows = rows;
    l->arena = bed_alloc(&l->b, 5 * rows * FF * sizeof(float));
    add(l, OP_EMBED, at(l, 0, WIDTH), bed_weights(&l->b, format_of_name("q8_0"), WIDTH, VOCAB, 1))
        ->p.embed.scale = 1.0f;
    add_norm(l, 1, 0);
    add_quantize(l, 4, 1, WIDTH);
    add_attention(l);
    add_quantize(l, 2, 4, WIDTH);
    add_matmul(l, 3, 2, WIDTH, WIDTH);
    add_sum(l, 0, 0, 3);
    add_norm(l, 3, 0);
    add_quantize(l, 1, 3, WIDTH);
    add_matmul(l, 2, 1, WIDTH, FF);
    add_matmul(l, 3, 1, WIDTH, FF);
    add(l, OP_GLU, at(l, 4, FF), at(l, 2, FF))->src[1] = at(l, 3, FF);
    /* Rows of another width over rows that GLU reads: only a barrier keeps threads apart. */
    add_quantize(l, 2, 4, FF);
    add_matmul(l, 1, 2, FF, WIDTH);
    add_sum(l, 0, 0, 1);
    add(l, OP_ROWS, at(l, 4, WIDTH), at(l, 0, WIDTH));
    add_norm(l, 1, 4);
    add_quantize(l, 2, 1, WIDTH);
    add_matmul(l, 3, 2, WIDTH, VOCAB);
}

/* The logits of the last row after a program of rows, into out. */
static int run(const struct layer *l, struct backend *be, const int32_t *tokens, float *out)
{
    const struct backend_ops *cpu = backend_by_name("cpu");
    int32_t last = (int32_t)l->rows - 1;
    struct op_run r = {
        .tokens = tokens, .rows = l->rows, .pos = 200, .rows_out = &last, .n_out = 1};
    struct err err;
    size_t bytes = 0;
    void *scratch;
    int rc = 0;

    for (size_t i = 0; i < l->n && rc >= 0; i++) {
        size_t more = cpu->scratch_bytes(be, &l->ops[i], l->rows);

        rc = op_check(&l->ops[i], &err);
        bytes = more > bytes ? more : bytes;
    }
    scratch = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (rc >= 0)
        rc = cpu->run(be, l->ops, l->n, &r, scratch, &err);
    free(scratch);
    if (rc < 0)
        printf("  FAIL program: %s\n", err.text);
    memcpy(out, l->arena + (size_t)3 * l->rows * FF, VOCAB * sizeof(float));
    return rc;
}

static int check(size_t rows)
{
    struct layer *l = calloc(1, sizeof(*l));
    float first[VOCAB] = {0}, got[VOCAB] = {0};
    int32_t tokens[64];
    const char *name;
    struct backend *be;
    int bad = 0;

    for (size_t i = 0; i < 64; i++)
        tokens[i] = (int32_t)(bed_random() % VOCAB);
    make(l, rows);
    for (int i = 0; (be = bed_backend(i, &name)) && !bad; i++)
        for (int n = 0; n < REPEATS && !bad; n++) {
            bad = run(l, be, tokens, i || n ? got : first) < 0;
            if (!bad && (i || n) && memcmp(first, got, sizeof(first)) != 0) {
                printf("  FAIL program of %zu rows: %s gives other logits\n", rows, name);
                bad = 1;
            }
        }
    bed_clear(&l->b);
    free(l);
    return bad;
}

int cases_program(int *ret_run)
{
    static const size_t rows[] = {1, 2, 5, 37};
    int bad = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (*ret_run)++;
        bad += check(rows[i]);
    }
    return bad;
}
