/* The list of models and one of it; see openai.h. */
#include <stdlib.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/openai/openai.h"

static json_t *model_object(const struct model_status *m)
{
    json_t *o = json_pack("{s:s, s:s, s:I, s:s, s:s}", "id", m->name, "object", "model", "created",
                          (json_int_t)m->created_s, "owned_by", "rnbd", "state",
                          model_state_name(m->state));

    if (m->n_ctx)
        json_object_set_new(o, "context_length", json_integer((json_int_t)m->n_ctx));
    if (m->n_ctx_train)
        json_object_set_new(o, "context_length_trained", json_integer((json_int_t)m->n_ctx_train));
    return o;
}

void openai_models(const struct engine *e, struct str *out)
{
    size_t n = engine_models(e, NULL, 0);
    struct model_status *list = XNEW_ARRAY(struct model_status, n);
    json_t *data = json_array();
    json_t *o;

    n = MIN(n, engine_models(e, list, n));
    for (size_t i = 0; i < n; i++)
        json_array_append_new(data, model_object(&list[i]));
    o = json_pack("{s:s, s:o}", "object", "list", "data", data);
    json_dump_to(o, out);
    json_decref(o);
    free(list);
}

int openai_model(const struct engine *e, const char *name, struct str *out, struct err *err)
{
    struct model_status m;
    json_t *o;
    int r = engine_model(e, name, &m, err);

    if (r < 0)
        return r;
    o = model_object(&m);
    json_dump_to(o, out);
    json_decref(o);
    return 0;
}
