/* The error object; see openai.h. */
#include <ctype.h>
#include <string.h>

#include "common/json.h"
#include "daemon/openai/openai.h"

/* "NOT_FOUND" → "not_found": stable words for programs. */
static json_t *code_of(const struct err *error)
{
    char word[40];
    size_t i;

    for (i = 0; err_name(error->kind)[i] && i + 1 < sizeof word; i++)
        word[i] = (char)tolower((unsigned char)err_name(error->kind)[i]);
    word[i] = '\0';
    return json_string(word);
}

void openai_error(const struct err *error, struct str *out)
{
    json_t *e = json_object();
    json_t *o = json_object();
    json_t *data = *error->data ? json_loads(error->data, 0, NULL) : NULL;

    json_object_set_new(e, "message", json_text(error->text, strlen(error->text)));
    json_object_set_new(e, "type", json_string(err_openai_type(error->kind)));
    json_object_set_new(
        e, "param", *error->param ? json_text(error->param, strlen(error->param)) : json_null());
    json_object_set_new(e, "code", code_of(error));
    if (data)
        json_object_set_new(e, "data", data);
    json_object_set_new(o, "error", e);
    json_dump_to(o, out);
    json_decref(o);
}
