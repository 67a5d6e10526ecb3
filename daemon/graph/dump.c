/* A program as text.  See graph.h. */

#include "daemon/graph/graph_priv.h"

static void dump_tensor(const struct program *p, const struct ref *ref, const struct tensor *t,
                        struct str *out)
{
    switch (ref->kind) {
    case REF_VALUE:
        str_addf(out, " v%u[%zu]@%zu%s", ref->index, p->values[ref->index].width,
                 p->places[ref->index].at, p->values[ref->index].out ? "o" : "");
        break;
    case REF_WEIGHT:
        str_addf(out, " w%u[%zux%zu %s]", ref->index, t->n[0], t->n[1], t->fmt->name);
        break;
    case REF_K: str_addf(out, " k%u", ref->index); break;
    case REF_V: str_addf(out, " v-cache%u", ref->index); break;
    case REF_GROUPS: str_addf(out, " groups%u", ref->index); break;
    case REF_INDEX: str_addf(out, " index%u", ref->index); break;
    case REF_CONV: str_addf(out, " kept%u", ref->index); break;
    case REF_STATE: str_addf(out, " state%u", ref->index); break;
    case REF_NONE: break;
    }
}

void program_dump(const struct program *p, struct str *out)
{
    for (size_t i = 0; i < p->n_nodes; i++) {
        const struct node *n = &p->nodes[i];

        str_addf(out, "%zu L%d %s:", i, n->op.layer, op_name(n->op.kind));
        for (int s = 0; s < OP_MAX_SRC; s++)
            dump_tensor(p, &n->src[s], &n->op.src[s], out);
        str_adds(out, " ->");
        for (int d = 0; d < OP_MAX_DST; d++)
            dump_tensor(p, &n->dst[d], &n->op.dst[d], out);
        str_addc(out, '\n');
    }
    str_addf(out, "arena %zu/row + %zu/out row, scratch %zu\n", p->batch_row_bytes,
             p->out_row_bytes, p->scratch_bytes);
}
