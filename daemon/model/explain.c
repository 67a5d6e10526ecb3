/* What a model is made of, for people: its layers by kind, and what of the file nobody reads.  See model.h. */

#include <stdio.h>
#include <string.h>

#include "daemon/model/model_priv.h"

/* Ops that give a layer its name, in the order in which they are told. */
static const struct {
    enum op_kind kind;
    const char *text;
} telling[] = {
    {OP_ATTENTION, "attention"}, {OP_NEAR_FAR, "attention to a window and to groups"},
    {OP_INDEXER, "indexer"},     {OP_SPARSE, "attention to chosen positions"},
    {OP_DELTA, "delta rule"},    {OP_SSM, "state space"},
    {OP_WKV, "time mix"},        {OP_MOE, "experts"},
};

static void kind_of(const struct model *m, const struct graph *g, int layer, struct str *out)
{
    for (size_t i = 0; i < ARRAY_LEN(telling); i++) {
        const struct op *op = graph_find_op(g, layer, telling[i].kind);

        if (!op)
            continue;
        str_addf(out, "%s%s", out->len ? ", " : "", telling[i].text);
        if (op->kind == OP_ATTENTION && op->p.attention.window)
            str_addf(out, " (window %u)", op->p.attention.window);
        if (op->kind == OP_NEAR_FAR)
            str_addf(out, " (%u; of %u)", op->p.attention.window, op->p.attention.group);
    }
    if (!out->len && graph_find_op(g, layer, OP_CONV))
        str_adds(out, "short convolution");
    /* Gated activations are elsewhere too: the weights say that there is a dense part. */
    if (model_weight(m, layer, TENSOR_FFN_DOWN, PART_WEIGHT)->t.fmt)
        str_addf(out, "%sdense", out->len ? ", " : "");
    if (!out->len)
        str_adds(out, "other");
}

void model_layer_kinds(const struct model *m,
                       void (*fn)(void *arg, int from, int to, const char *kind), void *arg)
{
    struct graph *g = model_graph(m, m->hp.n_ctx_train);
    struct str before = {0}, now = {0};
    int n = (int)m->hp.n_layers, from = 0;

    kind_of(m, g, 0, &before);
    for (int i = 1; i <= n; i++) {
        str_clear(&now);
        if (i < n)
            kind_of(m, g, i, &now);
        if (i < n && strcmp(str_text(&now), str_text(&before)) == 0)
            continue;
        fn(arg, from, i - 1, str_text(&before));
        str_clear(&before);
        before = now;
        now = (struct str){0};
        from = i;
    }
    str_clear(&before);
    graph_destroy(g);
}

void model_unused_keys(const struct model *m, void (*fn)(void *arg, struct view key), void *arg)
{
    size_t prefix = strlen(m->arch->name);

    for (size_t i = 0; i < gguf_n_values(m->g); i++) {
        struct view key = gguf_value_at(m->g, i)->key;

        if (key.len > prefix + 1 && memcmp(key.p, m->arch->name, prefix) == 0 &&
            key.p[prefix] == '.' &&
            !hparams_reads(m->arch, (struct view){key.p + prefix + 1, key.len - prefix - 1}))
            fn(arg, key);
    }
}
