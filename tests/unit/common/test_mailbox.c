/* Letters between threads. */
#include <check.h>
#include <poll.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/mailbox.h"
#include "common/thread.h"

#define N_SENDERS 3
#define N_EACH    5000
#define N_NOTES   (N_SENDERS * N_EACH)

struct note {
    struct letter letter;
    struct mailbox *to;
    int sender;
    int number;
};

static bool readable(struct mailbox *m)
{
    struct pollfd p = {.fd = mailbox_fd(m), .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

START_TEST(letters_come_out_in_the_order_they_went_in)
{
    struct mailbox *m = mailbox_create();
    struct note notes[3] = {{.number = 0}, {.number = 1}, {.number = 2}};

    for (int i = 0; i < 3; i++)
        mailbox_post(m, &notes[i].letter);
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_eq(mailbox_take(m), &notes[i].letter);
    ck_assert_ptr_null(mailbox_take(m));
    mailbox_destroy(m);
    mailbox_destroy(NULL);
}
END_TEST

START_TEST(the_descriptor_is_readable_while_there_are_letters)
{
    struct mailbox *m = mailbox_create();
    struct note a, b;

    for (int round = 0; round < 3; round++) {
        ck_assert(!readable(m));
        ck_assert(!mailbox_has(m));
        ck_assert(!mailbox_wait(m, 0));
        mailbox_post(m, &a.letter);
        mailbox_post(m, &b.letter);
        ck_assert(readable(m));
        ck_assert(mailbox_has(m));
        ck_assert(mailbox_wait(m, -1));
        mailbox_take(m);
        ck_assert(readable(m));
        mailbox_take(m);
    }
    ck_assert(!readable(m));
    mailbox_destroy(m);
}
END_TEST

START_TEST(a_wait_ends_by_its_time)
{
    struct mailbox *m = mailbox_create();
    int64_t start = clock_us();

    ck_assert(!mailbox_wait(m, 20));
    ck_assert_int_ge(clock_us() - start, 19000);
    mailbox_destroy(m);
}
END_TEST

static void *send_many(void *arg)
{
    struct note *first = arg;

    for (int i = 0; i < N_EACH; i++)
        mailbox_post(first->to, &first[i].letter);
    return NULL;
}

START_TEST(nothing_is_lost_between_threads)
{
    struct mailbox *m = mailbox_create();
    struct note *notes = XNEW_ARRAY(struct note, N_NOTES);
    int next[N_SENDERS] = {0}, left = N_NOTES;
    pthread_t threads[N_SENDERS];

    for (int i = 0; i < N_NOTES; i++)
        notes[i] = (struct note){.to = m, .sender = i / N_EACH, .number = i % N_EACH};
    for (int s = 0; s < N_SENDERS; s++)
        ck_assert_int_eq(thread_start(&threads[s], send_many, notes + (size_t)s * N_EACH), 0);
    while (left) {
        struct letter *letter;

        ck_assert(mailbox_wait(m, -1));
        while ((letter = mailbox_take(m))) {
            struct note *note = (struct note *)letter;

            ck_assert_int_eq(note->number, next[note->sender]);
            next[note->sender]++;
            left--;
        }
    }
    for (int s = 0; s < N_SENDERS; s++)
        pthread_join(threads[s], NULL);
    ck_assert(!mailbox_has(m));
    ck_assert(!readable(m));
    mailbox_destroy(m);
    free(notes);
}
END_TEST

struct players {
    struct mailbox *there;
    struct mailbox *back;
};

static void *throw_back(void *arg)
{
    struct players *p = arg;

    for (int i = 0; i < 1000; i++) {
        struct letter *letter = NULL;

        while (!letter) {
            mailbox_wait(p->there, -1);
            letter = mailbox_take(p->there);
        }
        mailbox_post(p->back, letter);
    }
    return NULL;
}

START_TEST(a_letter_can_go_to_and_fro_and_wakes_each_side)
{
    struct players p = {mailbox_create(), mailbox_create()};
    struct note note = {.number = 0};
    pthread_t thread;

    ck_assert_int_eq(thread_start(&thread, throw_back, &p), 0);
    for (int i = 0; i < 1000; i++) {
        mailbox_post(p.there, &note.letter);
        ck_assert(mailbox_wait(p.back, -1));
        ck_assert_ptr_eq(mailbox_take(p.back), &note.letter);
    }
    pthread_join(thread, NULL);
    mailbox_destroy(p.there);
    mailbox_destroy(p.back);
}
END_TEST

TCase *tcase_common_mailbox(void);
TCase *tcase_common_mailbox(void)
{
    TCase *tc = tcase_create("mailbox");

    tcase_add_test(tc, letters_come_out_in_the_order_they_went_in);
    tcase_add_test(tc, the_descriptor_is_readable_while_there_are_letters);
    tcase_add_test(tc, a_wait_ends_by_its_time);
    tcase_add_test(tc, nothing_is_lost_between_threads);
    tcase_add_test(tc, a_letter_can_go_to_and_fro_and_wakes_each_side);
    return tc;
}
