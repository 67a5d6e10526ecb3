/* See recorder.h. */
#include "tests/unit/graph/recorder.h"

#include "common/alloc.h"

static int do_alloc(struct backend *be, size_t bytes, struct region *ret, struct err *err)
{
    void *p = alloc_pages(bytes, 0);

    (void)be;
    if (!p)
        return err_set(err, ERR_NOMEM, "no pages");
    *ret = (struct region){p, alloc_page_round(bytes)};
    return 0;
}

static void do_free(struct backend *be, struct region *r)
{
    (void)be;
    free_pages(r->data, r->bytes);
}

static size_t do_alloc_bytes(const struct backend *be, size_t bytes)
{
    (void)be;
    return alloc_page_round(bytes);
}

static bool do_can(const struct backend *be, const struct op *op)
{
    return op->kind != be->refuse;
}

static size_t do_scratch_bytes(const struct backend *be, const struct op *op, size_t rows)
{
    (void)op;
    return rows == be->scratch_rows ? 4242 : rows;
}

static int do_run(struct backend *be, const struct op *ops, size_t n, const struct op_run *run,
                  void *scratch, struct err *err)
{
    int i = be->n_runs++;

    (void)scratch;
    if (i == be->fail_run)
        return err_set(err, ERR_INTERNAL, "run %d fails as it was asked to", i);
    if (i < RECORDER_MAX) {
        be->rows[i] = run->rows;
        be->n_ops[i] = n;
        be->layer[i] = ops[0].layer;
    }
    if (be->n_runs == be->cancel_after)
        be->cancel = true;
    return 0;
}

const struct backend_ops recorder_ops = {.name = "recorder",
                                         .alloc = do_alloc,
                                         .free = do_free,
                                         .alloc_bytes = do_alloc_bytes,
                                         .can = do_can,
                                         .scratch_bytes = do_scratch_bytes,
                                         .run = do_run};
