/* Pages that are there before they are touched, and none behind what is wanted. */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/memory/warm.h"

TCase *tcase_memory_warm(void);

#define REGION      ((size_t)24 << 20)
#define LARGE       ((size_t)192 << 20) /* many steps */
#define PATIENCE_MS 60000               /* only a failure waits so long */

static size_t pages(size_t bytes)
{
    return bytes / (size_t)sysconf(_SC_PAGESIZE);
}

/* Pages of the region, from that byte on, which have memory. */
static size_t present_of(void *region, size_t from, size_t to)
{
    unsigned char *in = XNEW_ARRAY(unsigned char, pages(to));
    size_t n = 0;

    ck_assert_int_eq(mincore(region, to, in), 0);
    for (size_t i = pages(from); i < pages(to); i++)
        n += in[i] & 1;
    free(in);
    return n;
}

static size_t present(void *region, size_t from)
{
    return present_of(region, from, REGION);
}

static void wait_for(void *region, size_t bytes)
{
    int64_t began = clock_ms();

    while (present(region, 0) < pages(bytes)) {
        ck_assert_msg(clock_ms() - began < PATIENCE_MS, "%zu of %zu pages are there",
                      present(region, 0), pages(bytes));
        usleep(1000);
    }
}

static bool kernel_knows(void)
{
    void *page = alloc_pages(1, 0);
    bool knows = populate_pages(page, alloc_page_round(1)) == 0;

    free_pages(page, 1);
    return knows;
}

START_TEST(pages_come_without_a_touch_and_hold_what_was_there)
{
    struct warm *w = warm_start();
    char *region = alloc_pages(REGION, 1), *other = alloc_pages(REGION, 1);

    region[5] = 'x';
    warm_want(w, 0, region, REGION);
    warm_want(w, 1, other, REGION / 2);
    if (kernel_knows()) {
        wait_for(region, REGION);
        wait_for(other, REGION / 2);
        ck_assert_uint_eq(present(other, REGION / 2), 0);
    }
    ck_assert_int_eq(region[5], 'x');
    warm_stop(w);
    free_pages(region, REGION);
    free_pages(other, REGION);
}
END_TEST

START_TEST(what_was_given_back_stays_away_until_it_is_wanted_again)
{
    struct warm *w = warm_start();
    char *region = alloc_pages(REGION, 1);

    for (int round = 0; round < 20; round++) {
        warm_want(w, 0, region, REGION);
        if (round % 2 && kernel_knows())
            wait_for(region, REGION);
        warm_want(w, 0, region, REGION / 4); /* in the midst of it, every other time */
        discard_pages(region + REGION / 4, REGION - REGION / 4);
        ck_assert_uint_eq(present(region, REGION / 4), 0);
        usleep(500);
        ck_assert_uint_eq(present(region, REGION / 4), 0);
    }
    warm_stop(w);
    free_pages(region, REGION);
}
END_TEST

/* A busy machine may touch all of it before this thread has had its turn, but not always. */
START_TEST(who_gives_back_does_not_wait_for_what_is_still_wanted)
{
    size_t least = pages(LARGE);

    for (int i = 0; i < 10 && least == pages(LARGE) && kernel_knows(); i++) {
        struct warm *w = warm_start();
        char *region = alloc_pages(LARGE, 1);

        warm_want(w, 0, region, LARGE);
        wait_for(region, REGION);
        warm_want(w, 0, region, 1);
        least = present_of(region, 0, LARGE);
        warm_stop(w);
        free_pages(region, LARGE);
    }
    ck_assert(least < pages(LARGE) || !kernel_knows());
}
END_TEST

START_TEST(no_thread_is_no_error)
{
    char byte[1];

    warm_want(NULL, 0, byte, sizeof byte);
    warm_stop(NULL);
}
END_TEST

TCase *tcase_memory_warm(void)
{
    TCase *tc = tcase_create("warm");

    tcase_add_test(tc, pages_come_without_a_touch_and_hold_what_was_there);
    tcase_add_test(tc, what_was_given_back_stays_away_until_it_is_wanted_again);
    tcase_add_test(tc, who_gives_back_does_not_wait_for_what_is_still_wanted);
    tcase_add_test(tc, no_thread_is_no_error);
    return tc;
}
