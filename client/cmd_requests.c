/* requests, cancel: what is running and waiting. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/cmd.h"
#include "common/alloc.h"

static int run_requests(struct client *c, int argc, char **argv);
static int run_cancel(struct client *c, int argc, char **argv);

const struct verb verb_requests = {"requests", "", "running and waiting requests", "request.list",
                                   run_requests};
const struct verb verb_cancel = {"cancel", "ID", "end a request", "request.cancel", run_cancel};

void print_requests(const json_t *requests)
{
    static const char *const heads[] = {">ID",     "STEP",  "MODEL", "KIND",
                                        ">PROMPT", ">DONE", ">AGE",  "CLIENT"};
    struct table *t = table_create(heads, ARRAY_LEN(heads));
    json_t *q;
    size_t i;

    json_array_foreach(requests, i, q)
    {
        table_row(t, format_text(">%.0f", number_of(q, "id")), text_of(q, "step"),
                  text_of(q, "model"), text_of(q, "kind"),
                  format_text(">%.0f", number_of(q, "prompt_tokens")),
                  format_text(">%.0f", number_of(q, "done_tokens")),
                  format_text(">%s", time_text(number_of(q, "age_ms"))), text_of(q, "client"));
    }
    table_print_and_destroy(t);
}

static int run_requests(struct client *c, int argc, char **argv)
{
    json_t *result;
    int status, n = args_parse(&verb_requests, argc, argv, NULL, 0);

    if (n != 0)
        return wrong_usage(&verb_requests, n, "requests takes no argument");
    status = call_or_print(c, "request.list", NULL, NULL, NULL, &result);
    if (!result)
        return status;
    print_requests(json_object_get(result, "requests"));
    json_decref(result);
    return status;
}

static int run_cancel(struct client *c, int argc, char **argv)
{
    json_t *result;
    long long id;
    char *end;
    int status, n = args_parse(&verb_cancel, argc, argv, NULL, 0);

    if (n != 1)
        return wrong_usage(&verb_cancel, n, "cancel takes the id of a request");
    errno = 0;
    id = strtoll(argv[1], &end, 10);
    if (errno || *end || end == argv[1] || id < 1)
        return wrong_usage(&verb_cancel, 0,
                           format_text("'%s' is no id; rnbctl requests lists them", argv[1]));
    status = call_or_print(c, "request.cancel", json_pack("{s:I}", "id", (json_int_t)id), NULL,
                           NULL, &result);
    if (!result)
        return status;
    printf("cancelled %lld\n", id);
    json_decref(result);
    return status;
}
