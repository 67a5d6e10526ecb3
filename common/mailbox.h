/*
 * mailbox - the only way between threads: a queue of letters and an eventfd.
 *
 * A letter is embedded at the start of whatever is sent; the mailbox never
 * copies and never frees.  The receiver either watches mailbox_fd() in its
 * event loop and then drains with mailbox_take(), or blocks in mailbox_wait().
 *
 * post: any thread, never blocks longer than a list splice.
 * take, wait: the one receiving thread.
 */
#pragma once

#include <stdbool.h>

struct letter {
    struct letter *next;
    void (*deliver)(struct letter *letter,
                    void *receiver); /* runs in the receiving thread; owns the letter */
};

struct mailbox;

struct mailbox *mailbox_create(void);
/* Letters still inside are not delivered: drain first. */
void mailbox_destroy(struct mailbox *m);

void mailbox_post(struct mailbox *m, struct letter *take_letter);
struct letter *mailbox_take(struct mailbox *m); /* NULL when empty */
/* Blocks until a letter is there or timeout_ms has passed (-1: no limit). */
bool mailbox_wait(struct mailbox *m, int timeout_ms);
bool mailbox_has(const struct mailbox *m); /* a cheap look, for "is there anything to stop for" */
int mailbox_fd(const struct mailbox *m);
