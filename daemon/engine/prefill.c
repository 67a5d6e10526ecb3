/* The prompt into the caches, chunk by chunk; see run.h. */
#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/engine/run.h"

static void tell_progress(struct run *r, size_t done)
{
    struct event ev = {.kind = EVENT_PROGRESS,
                       .step = STEP_PREFILLING,
                       .progress = done,
                       .total = r->prompt.n,
                       .choice = r->choice};

    atomic_store_explicit(&r->task->stat_done, done, memory_order_relaxed);
    if (r->req->return_progress)
        events_post(r->e, r->task, &ev);
}

/*
 * Rows of the chunk at `at`.  A recurrent sequence keeps a checkpoint before the
 * last token: the same prompt, or a longer one, then need not begin anew.
 */
static size_t rows_of(const struct sequence *seq, size_t at, size_t n, size_t chunk)
{
    size_t end = sequence_recurrent(seq) && at + 1 < n ? n - 1 : n;

    return MIN(chunk, end - at);
}

int prefill_prompt(struct run *r, struct err *err)
{
    struct sequence *seq = model_sequence(r->model);
    size_t n = r->prompt.n, chunk = model_n_batch(r->model);
    size_t at = sequence_common(seq, r->prompt.ids, n);
    int64_t began_us = clock_us();
    int rc = 0;

    /* The last token is always computed: its logits are what is wanted. */
    at = MIN(at, n - 1);
    at = sequence_truncate(seq, at);
    if (r->choice == 0)
        r->usage.cached_tokens = at;
    tell_progress(r, at);
    while (at < n && rc >= 0) {
        size_t rows = rows_of(seq, at, n, chunk);
        int32_t last = (int32_t)rows - 1;
        bool wanted = at + rows == n;

        rc = model_eval(r->model, r->prompt.ids + at, rows, &last, wanted, &r->task->work.cancel,
                        &r->logits, err);
        if (rc < 0)
            break;
        at += rows;
        if (at + 1 == n)
            sequence_checkpoint(seq);
        r->computed_tokens += rows;
        tell_progress(r, at);
        worker_alive(r->e);
        worker_read_mail(r->e);
        rc = run_cancelled(r, err);
    }
    r->prefill_us += clock_us() - began_us;
    return rc < 0 ? rc : 0;
}
