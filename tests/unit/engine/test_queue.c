/* Order, fairness and deadlines of what waits. */
#include <check.h>

#include "common/alloc.h"
#include "daemon/engine/catalog.h"
#include "daemon/engine/queue.h"
#include "daemon/engine/schedule.h"

TCase *tcase_engine_queue(void);

START_TEST(works_of_models_in_memory_go_first_in_their_order)
{
    const struct schedule_item items[] = {{false, 0}, {true, 0}, {true, 3}};

    ck_assert_uint_eq(schedule_next(items, 3), 1);
    ck_assert_uint_eq(schedule_next(items, 1), 0);
}
END_TEST

START_TEST(nobody_is_passed_over_for_ever)
{
    const struct schedule_item items[] = {{false, SCHEDULE_MAX_PASSED}, {true, 0}};

    ck_assert_uint_eq(schedule_next(items, 2), 0);
}
END_TEST

START_TEST(without_a_model_in_memory_the_first_goes_first)
{
    const struct schedule_item items[] = {{false, 1}, {false, 0}};

    ck_assert_uint_eq(schedule_next(items, 2), 0);
}
END_TEST

static const struct slot *the_ready_one;

static bool ready(const struct slot *s)
{
    return s == the_ready_one;
}

static struct work *add(struct queue *q, uint64_t id, struct slot *s)
{
    struct task *t = task_create(request_create(REQUEST_COMPLETION), s, "m");

    t->work.id = id;
    queue_add(q, &t->work);
    return &t->work;
}

/* Takes the next and ends it. */
static uint64_t take(struct queue *q)
{
    struct work *w = queue_next(q, ready);
    uint64_t id = w ? w->id : 0;

    if (w)
        task_destroy(task_of(w));
    return id;
}

START_TEST(two_clients_of_two_models_take_turns_by_batches)
{
    struct slot a = {0}, b = {0};
    struct queue q;
    uint64_t id = 1;

    queue_init(&q);
    the_ready_one = &a;
    add(&q, id++, &b);
    for (int i = 0; i < 6; i++)
        add(&q, id++, &a);
    for (unsigned i = 0; i < SCHEDULE_MAX_PASSED; i++)
        ck_assert_uint_eq(take(&q), 2 + i);
    ck_assert_uint_eq(take(&q), 1);
    the_ready_one = &b;
    ck_assert_uint_eq(take(&q), 6);
    ck_assert_uint_eq(take(&q), 7);
    ck_assert_uint_eq(take(&q), 0);
}
END_TEST

START_TEST(a_work_can_be_found_and_taken_out_at_every_place)
{
    struct slot a = {0};

    for (uint64_t gone = 1; gone <= 3; gone++) {
        struct queue q;
        struct work *w;

        queue_init(&q);
        the_ready_one = NULL;
        for (uint64_t id = 1; id <= 3; id++)
            add(&q, id, &a);
        w = queue_find(&q, gone);
        ck_assert_ptr_nonnull(w);
        queue_remove(&q, w);
        task_destroy(task_of(w));
        ck_assert_ptr_null(queue_find(&q, gone));
        add(&q, 4, &a);
        for (uint64_t id = 1; id <= 4; id++)
            if (id != gone)
                ck_assert_uint_eq(take(&q), id);
        ck_assert(!queue_wants(&q, &a));
    }
}
END_TEST

START_TEST(places_in_the_queue_are_published)
{
    struct slot a = {0};
    struct queue q;
    struct work *first, *second;

    queue_init(&q);
    first = add(&q, 1, &a);
    second = add(&q, 2, &a);
    ck_assert_uint_eq(atomic_load(&task_of(second)->stat_order), 2);
    queue_remove(&q, first);
    ck_assert_uint_eq(atomic_load(&task_of(second)->stat_order), 1);
    task_destroy(task_of(first));
    task_destroy(task_of(second));
}
END_TEST

START_TEST(a_request_that_waits_too_long_is_overdue)
{
    struct slot a = {0};
    struct queue q;
    struct work *w;

    queue_init(&q);
    ck_assert_int_eq(queue_deadline(&q, 100), INT64_MAX);
    w = add(&q, 1, &a);
    w->arrived_ms = 1000;
    ck_assert_ptr_null(queue_overdue(&q, 100, 1099));
    ck_assert_ptr_eq(queue_overdue(&q, 100, 1100), w);
    ck_assert_ptr_null(queue_overdue(&q, 0, 99999));
    ck_assert_int_eq(queue_deadline(&q, 100), 1100);
    ck_assert_int_eq(queue_deadline(&q, 0), INT64_MAX);
    take(&q);
}
END_TEST

TCase *tcase_engine_queue(void)
{
    TCase *tc = tcase_create("queue");

    tcase_add_test(tc, works_of_models_in_memory_go_first_in_their_order);
    tcase_add_test(tc, nobody_is_passed_over_for_ever);
    tcase_add_test(tc, without_a_model_in_memory_the_first_goes_first);
    tcase_add_test(tc, two_clients_of_two_models_take_turns_by_batches);
    tcase_add_test(tc, a_work_can_be_found_and_taken_out_at_every_place);
    tcase_add_test(tc, places_in_the_queue_are_published);
    tcase_add_test(tc, a_request_that_waits_too_long_is_overdue);
    return tc;
}
