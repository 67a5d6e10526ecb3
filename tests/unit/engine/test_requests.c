/* Requests from submit to their last event. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "tests/support/tiny_model.h"
#include "tests/unit/engine/rig.h"

TCase *tcase_engine_requests(void);

static void add_stop(struct request *q, const char *text)
{
    q->stop[q->n_stops].text = xstrdup(text);
    q->stop[q->n_stops++].len = strlen(text);
}

START_TEST(events_come_in_order_and_the_numbers_add_up)
{
    struct rig r;
    struct told t = {0};

    rig_open(&r, 1, 0, NULL);
    rig_run(&r, rig_completion("m0", "hello", 10), &t);
    ck_assert_int_eq(t.kinds[t.n - 1], EVENT_DONE);
    ck_assert_int_eq(t.kinds[t.n - 2], EVENT_CHOICE_DONE);
    ck_assert(told_has(&t, EVENT_STARTED));
    ck_assert(told_has(&t, EVENT_TEXT));
    ck_assert(!told_has(&t, EVENT_FAILED));
    ck_assert_int_eq(t.finish[0], FINISH_LENGTH);
    ck_assert_uint_eq(t.usage.completion_tokens, 10);
    ck_assert_uint_ge(t.usage.prompt_tokens, 5);
    ck_assert_str_eq(t.model, "m0");
    ck_assert(t.timings.load_ms > 0 && t.timings.ttft_ms >= t.timings.load_ms);
    ck_assert_uint_gt(t.timings.bytes_read, 0);
    /* the first of ten comes out of the prompt */
    ck_assert_double_eq_tol(t.timings.tg_per_s * t.timings.decode_ms / 1000, 9, 1e-6);
    told_clear(&t);
    rig_run(&r, rig_completion("m0", "hello", 1), &t);
    ck_assert_uint_eq(t.usage.completion_tokens, 1);
    ck_assert_double_eq(t.timings.tg_per_s, 0);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(no_event_is_delivered_before_submit_has_returned)
{
    struct rig r;
    struct told t = {0};
    struct err err;

    rig_open(&r, 1, 0, NULL);
    ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "hello", 2), &t, &err), 0);
    ck_assert_uint_eq(t.n, 0);
    rig_wait(&r, &t);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(the_same_request_gives_the_same_text_whatever_ran_before)
{
    struct rig r;
    struct told a = {0}, b = {0}, c = {0};

    rig_open(&r, 1, 0, NULL);
    rig_run(&r, rig_completion("m0", "the same request", 24), &a);
    rig_run(&r, rig_completion("m0", "the other one", 8), &b);
    told_clear(&b);
    rig_run(&r, rig_completion("m0", "the same request", 24), &b);
    rig_run(&r, rig_completion("m0", "the same request", 24), &c);
    ck_assert_str_eq(str_text(&a.text[0]), str_text(&b.text[0]));
    ck_assert_str_eq(str_text(&a.text[0]), str_text(&c.text[0]));
    ck_assert_uint_eq(a.usage.cached_tokens, 0);
    ck_assert_uint_ge(b.usage.cached_tokens, 1); /* "the …" */
    ck_assert_uint_eq(c.usage.cached_tokens, c.usage.prompt_tokens - 1);
    told_clear(&a);
    told_clear(&b);
    told_clear(&c);
    rig_close(&r);
}
END_TEST

START_TEST(a_seed_fixes_a_sampled_answer_and_is_reported)
{
    struct rig r;
    struct told t[3] = {0};

    rig_open(&r, 1, 0, NULL);
    for (int i = 0; i < 3; i++) {
        struct request *q = rig_completion("m0", "roll", 24);

        q->sampling.temperature = 1.5f;
        q->sampling.top_k = 0;
        if (i < 2) {
            q->sampling.seed = 5;
            q->given |= 1u << SAMPLING_FIELD_seed;
        }
        rig_run(&r, q, &t[i]);
    }
    ck_assert_str_eq(str_text(&t[0].text[0]), str_text(&t[1].text[0]));
    ck_assert_str_ne(str_text(&t[0].text[0]), str_text(&t[2].text[0]));
    ck_assert_uint_eq(t[0].sampling.seed, 5);
    ck_assert_uint_ne(t[2].sampling.seed, 5);
    for (int i = 0; i < 3; i++)
        told_clear(&t[i]);
    rig_close(&r);
}
END_TEST

START_TEST(choices_follow_one_another_and_share_the_prompt)
{
    struct rig r;
    struct told t = {0};
    struct request *q = rig_completion("m0", "choose", 6);

    rig_open(&r, 1, 0, NULL);
    q->n = 3;
    rig_run(&r, q, &t);
    ck_assert_uint_eq(t.usage.completion_tokens, 18);
    ck_assert_uint_eq(t.usage.cached_tokens, 0);
    ck_assert_str_eq(str_text(&t.text[0]), str_text(&t.text[2]));
    ck_assert_int_eq(t.finish[2], FINISH_LENGTH);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(a_stop_string_ends_the_text_before_it)
{
    struct rig r;
    struct told whole = {0}, t = {0};
    struct request *q;
    char stop[8];

    rig_open(&r, 1, 0, NULL);
    rig_run(&r, rig_completion("m0", "abc", 40), &whole);
    ck_assert_uint_gt(whole.text[0].len, 12);
    /* Three bytes from the middle of what it will say; where they stand first counts. */
    snprintf(stop, sizeof stop, "%.3s", whole.text[0].p + whole.text[0].len / 2);
    q = rig_completion("m0", "abc", 40);
    add_stop(q, "never to be seen");
    add_stop(q, stop);
    rig_run(&r, q, &t);
    ck_assert_int_eq(t.finish[0], FINISH_STOP);
    ck_assert_str_eq(t.stop_text, stop);
    ck_assert_uint_eq(t.text[0].len, (size_t)(strstr(whole.text[0].p, stop) - whole.text[0].p));
    ck_assert(strncmp(str_text(&t.text[0]), whole.text[0].p, t.text[0].len) == 0);
    told_clear(&whole);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(logprobs_cover_the_text_token_by_token)
{
    struct rig r;
    struct told t = {0};
    struct request *q = rig_completion("m0", "abc", 20);

    rig_open(&r, 1, 0, NULL);
    q->logprobs = true;
    q->n_top_logprobs = 3;
    rig_run(&r, q, &t);
    ck_assert_uint_eq(t.n_logprobs, 20);
    ck_assert(!t.offsets_wrong);
    ck_assert(t.worst_logprob < 0 && t.worst_logprob > -50);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(without_a_vocabulary_log_probabilities_tell_the_ids)
{
    static char name[] = "ids";
    struct tiny_model m = {.family = "llama", .no_vocab = true, .n_ctx = 512};
    struct engine_model_entry entry = {.name = name, .ttl_ms = -1, .n_ctx = 512};
    struct request *q = rig_completion("ids", "", 3);
    int fd = tiny_model_memfd(&m);
    struct told t = {0};
    struct err err;
    struct rig r;

    rig_open(&r, 0, 0, NULL);
    entry.path = gguf_writer_fd_path(fd);
    ck_assert_int_eq(engine_know(r.e, &entry, &err), 0);
    free(q->prompt);
    q->prompt = NULL;
    q->prompt_ids = xmemdup((const int32_t[]){1, 2, 3}, 3 * sizeof(int32_t));
    q->n_prompt_ids = 3;
    q->logprobs = true;
    rig_run(&r, q, &t);
    ck_assert_uint_eq(t.n_logprobs, 3);
    ck_assert(view_starts(view_of_str(&t.logprob_text), VIEW("token_id:")));
    told_clear(&t);
    rig_close(&r);
    free(entry.path);
    close(fd);
}
END_TEST

START_TEST(echo_puts_the_prompt_in_front_also_without_an_answer)
{
    struct rig r;
    struct told t = {0}, u = {0};
    struct request *q = rig_completion("m0", "say it again", 4);

    rig_open(&r, 1, 0, NULL);
    q->echo = true;
    rig_run(&r, q, &t);
    ck_assert(view_starts(view_of_str(&t.text[0]), view_of("say it again")));
    ck_assert_uint_gt(t.text[0].len, strlen("say it again"));
    q = rig_completion("m0", "say it again", 0);
    q->echo = true;
    rig_run(&r, q, &u);
    ck_assert_str_eq(str_text(&u.text[0]), "say it again");
    ck_assert_uint_eq(u.usage.completion_tokens, 0);
    told_clear(&t);
    told_clear(&u);
    rig_close(&r);
}
END_TEST

START_TEST(a_prompt_that_does_not_fit_is_refused_with_both_counts)
{
    struct rig r;
    struct told t = {0};
    char prompt[701];

    rig_open(&r, 1, 0, NULL);
    memset(prompt, 'x', 700);
    prompt[700] = '\0';
    rig_run(&r, rig_completion("m0", prompt, 4), &t);
    ck_assert_int_eq(t.error.kind, ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(t.error.text, "512"));
    ck_assert_ptr_nonnull(strstr(t.error.text, " tokens"));
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(generation_stops_with_length_where_the_context_ends)
{
    struct rig r;
    struct told t = {0};

    rig_open(&r, 1, 0, NULL);
    rig_run(&r, rig_completion("m0", "on and on", -1), &t);
    ck_assert_int_eq(t.finish[0], FINISH_LENGTH);
    /* The last token that is chosen need not fit. */
    ck_assert_uint_eq(t.usage.prompt_tokens + t.usage.completion_tokens, 512 + 1);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(an_empty_prompt_and_wrong_ids_are_refused)
{
    struct rig r;
    struct told t = {0};
    struct request *q = rig_completion("m0", "", 4);

    rig_open(&r, 1, 0, NULL);
    q->prompt_ids = XNEW_ARRAY(int32_t, 2);
    q->prompt_ids[1] = 100000;
    q->n_prompt_ids = 2;
    rig_run(&r, q, &t);
    ck_assert_int_eq(t.error.kind, ERR_INVALID);
    ck_assert_str_eq(t.error.param, "prompt");
    q = rig_completion("m0", "", 4);
    q->prompt_ids = XNEW_ARRAY(int32_t, 1);
    rig_run(&r, q, &t);
    ck_assert_int_eq(t.error.kind, ERR_INVALID);
    q = rig_completion("m0", "x", 4);
    q->sampling.top_p = 7;
    q->given |= 1u << SAMPLING_FIELD_top_p;
    rig_run(&r, q, &t);
    ck_assert_str_eq(t.error.param, "top_p");
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(ids_as_a_prompt_are_the_text_they_stand_for)
{
    struct rig r;
    struct told t = {0};
    struct request *q = rig_completion("m0", "", 4);

    rig_open(&r, 1, 0, NULL);
    q->prompt_ids = XNEW_ARRAY(int32_t, 3);
    for (int i = 0; i < 3; i++)
        q->prompt_ids[i] = 40 + i;
    q->n_prompt_ids = 3;
    rig_run(&r, q, &t);
    ck_assert_uint_eq(t.usage.prompt_tokens, 3);
    ck_assert_uint_eq(t.usage.completion_tokens, 4);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(a_conversation_is_rendered_and_answered)
{
    struct rig r;
    struct told t = {0};
    struct request *q = rig_chat("m0", "hi", 8);

    rig_open(&r, 1, 0, NULL);
    q->return_progress = true;
    q->split_reasoning = true;
    rig_run(&r, q, &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert(told_has(&t, EVENT_PROGRESS));
    ck_assert_uint_eq(t.usage.completion_tokens, 8);
    ck_assert_uint_gt(t.usage.prompt_tokens, 3);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

static void cancel_it(struct told *t)
{
    struct err err;

    ck_assert_int_eq(engine_cancel(t->rig->e, t->id, &err), 0);
}

START_TEST(a_cancelled_request_ends_with_one_failure)
{
    struct rig r;
    struct told t = {.at_text = cancel_it};
    struct err err;

    rig_open(&r, 1, 0, NULL);
    rig_run(&r, rig_completion("m0", "long", -1), &t);
    ck_assert_int_eq(t.kinds[t.n - 1], EVENT_FAILED);
    ck_assert_int_eq(t.error.kind, ERR_CANCELLED);
    ck_assert_uint_lt(t.usage.completion_tokens, 500);
    ck_assert_int_eq(engine_cancel(r.e, t.id, &err), -ERR_NOT_FOUND);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

static void abandon_it(struct told *t)
{
    engine_abandon(t->rig->e, t->id);
}

START_TEST(an_abandoned_request_is_silent_and_leaves_nothing)
{
    struct rig r;
    struct told t = {.at_text = abandon_it}, next = {0};
    struct err err;
    size_t n;

    rig_open(&r, 1, 0, NULL);
    ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "long", -1), &t, &err), 0);
    /* The next one can only end when the abandoned one has. */
    ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "next", 2), &next, &err), 0);
    rig_wait(&r, &next);
    n = t.n;
    ck_assert(t.meddled && !t.ended);
    ck_assert_int_eq(t.kinds[n - 1], EVENT_TEXT);
    ck_assert(engine_idle(r.e));
    told_clear(&t);
    told_clear(&next);
    rig_close(&r);
}
END_TEST

START_TEST(a_waiting_request_can_be_cancelled)
{
    struct rig r;
    struct told a = {0}, b = {0};
    struct err err;

    rig_open(&r, 1, 0, NULL);
    rig_hold(&r);
    ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "long", 300), &a, &err), 0);
    ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "waits", 4), &b, &err), 0);
    ck_assert_int_eq(engine_cancel(r.e, b.id, &err), 0);
    rig_wait(&r, &b);
    ck_assert_int_eq(b.error.kind, ERR_CANCELLED);
    ck_assert(!a.ended);
    rig_release(&r);
    rig_wait(&r, &a);
    ck_assert_int_eq(a.error.kind, ERR_NONE);
    told_clear(&a);
    told_clear(&b);
    rig_close(&r);
}
END_TEST

START_TEST(a_full_queue_refuses_and_shows_who_waits)
{
    struct engine_options o = {.queue_max = 2};
    struct request_info info[4];
    struct engine_stats stats;
    struct rig r;
    struct told t[4] = {0};
    struct err err;

    rig_open(&r, 1, 0, &o);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "long", 100), &t[i], &err), 0);
    ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "no", 4), &t[3], &err), -ERR_BUSY);
    ck_assert_uint_eq(engine_requests(r.e, info, 4), 3);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(info[i].id, t[i].id);
    ck_assert_str_eq(info[0].model, "m0");
    for (int i = 0; i < 3; i++)
        rig_wait(&r, &t[i]);
    engine_stats(r.e, &stats);
    ck_assert_uint_eq(stats.requests_done, 3);
    ck_assert_uint_eq(stats.requests_refused, 1);
    ck_assert_uint_eq(stats.completion_tokens, 300);
    ck_assert_uint_eq(stats.running + stats.waiting, 0);
    for (int i = 0; i < 4; i++)
        told_clear(&t[i]);
    rig_close(&r);
}
END_TEST

START_TEST(a_request_that_waits_too_long_fails)
{
    struct engine_options o = {.queue_max = 2, .queue_wait_ms = 1};
    struct bench_spec before_it = {8, 0, {0}, 1, 1}; /* a job may wait for as long as it takes */
    struct rig r;
    struct told t = {0};
    struct answer a;
    struct job_sink sink;
    struct err err;

    rig_open(&r, 1, 0, &o);
    rig_load(&r, "m0");
    rig_hold(&r);
    sink = rig_sink(&r, &a);
    ck_assert_int_gt(engine_bench(r.e, "m0", &before_it, &sink, &err), 0);
    ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "late", 4), &t, &err), 0);
    usleep(2000);
    rig_wait(&r, &t);
    ck_assert_int_eq(t.error.kind, ERR_TIMEOUT);
    rig_wait_job(&r, &a);
    ck_assert(!a.failed);
    answer_clear(&a);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(an_engine_that_drains_takes_no_more_and_ends_what_it_has)
{
    struct rig r;
    struct told a = {0}, b = {0};
    struct err err;

    rig_open(&r, 1, 0, NULL);
    ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "last", 10), &a, &err), 0);
    engine_drain(r.e);
    ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "no", 4), &b, &err), -ERR_SHUTDOWN);
    ck_assert(!engine_idle(r.e));
    rig_wait(&r, &a);
    ck_assert_int_eq(a.error.kind, ERR_NONE);
    ck_assert(engine_idle(r.e));
    told_clear(&a);
    rig_close(&r);
}
END_TEST

START_TEST(an_engine_can_be_destroyed_while_it_works)
{
    struct rig r;
    struct told t[3] = {0};
    struct err err;

    rig_open(&r, 2, 0, NULL);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            rig_submit(&r, rig_completion(i % 2 ? "m1" : "m0", "long", -1), &t[i], &err), 0);
    rig_close(&r);
    for (int i = 0; i < 3; i++)
        told_clear(&t[i]);
}
END_TEST

TCase *tcase_engine_requests(void)
{
    TCase *tc = tcase_create("requests");

    tcase_add_test(tc, events_come_in_order_and_the_numbers_add_up);
    tcase_add_test(tc, no_event_is_delivered_before_submit_has_returned);
    tcase_add_test(tc, the_same_request_gives_the_same_text_whatever_ran_before);
    tcase_add_test(tc, a_seed_fixes_a_sampled_answer_and_is_reported);
    tcase_add_test(tc, choices_follow_one_another_and_share_the_prompt);
    tcase_add_test(tc, a_stop_string_ends_the_text_before_it);
    tcase_add_test(tc, logprobs_cover_the_text_token_by_token);
    tcase_add_test(tc, without_a_vocabulary_log_probabilities_tell_the_ids);
    tcase_add_test(tc, echo_puts_the_prompt_in_front_also_without_an_answer);
    tcase_add_test(tc, a_prompt_that_does_not_fit_is_refused_with_both_counts);
    tcase_add_test(tc, generation_stops_with_length_where_the_context_ends);
    tcase_add_test(tc, an_empty_prompt_and_wrong_ids_are_refused);
    tcase_add_test(tc, ids_as_a_prompt_are_the_text_they_stand_for);
    tcase_add_test(tc, a_conversation_is_rendered_and_answered);
    tcase_add_test(tc, a_cancelled_request_ends_with_one_failure);
    tcase_add_test(tc, an_abandoned_request_is_silent_and_leaves_nothing);
    tcase_add_test(tc, a_waiting_request_can_be_cancelled);
    tcase_add_test(tc, a_full_queue_refuses_and_shows_who_waits);
    tcase_add_test(tc, a_request_that_waits_too_long_fails);
    tcase_add_test(tc, an_engine_that_drains_takes_no_more_and_ends_what_it_has);
    tcase_add_test(tc, an_engine_can_be_destroyed_while_it_works);
    return tc;
}
