/*
 * What the head of a request says of its body, before evhttp has read it; see
 * http_priv.h.
 *
 * evhttp reads a body that is too large to its end before it says so, and would
 * wait for one that nobody sends.
 */
#include <ctype.h>
#include <event2/buffer.h>
#include <string.h>
#include <strings.h>

#include "common/alloc.h"
#include "daemon/http/http_priv.h"

void announce_begin(struct announce *a)
{
    *a = (struct announce){.state = ANNOUNCE_FIRST};
}

/* Bytes that are no request line are not the begin of a head: the rest of them says nothing. */
static bool is_request_line(const char *line)
{
    size_t n = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return n && line[n] == ' ';
}

/* A number that nothing holds is as large as can be. */
static uint64_t length_of(const char *digits)
{
    uint64_t n = 0;

    for (; isdigit((unsigned char)*digits); digits++)
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*digits - '0'), &n))
            return UINT64_MAX;
    return n;
}

static void end_line(struct announce *a)
{
    static const char name[] = "content-length:";

    a->line[a->len] = '\0';
    if (a->state == ANNOUNCE_FIRST)
        a->state = is_request_line(a->line) ? ANNOUNCE_HEADERS : ANNOUNCE_OVER;
    else if (!a->len)
        a->state = ANNOUNCE_OVER;
    else if (strncasecmp(a->line, name, strlen(name)) == 0)
        a->body =
            MAX(a->body, length_of(a->line + strlen(name) + strspn(a->line + strlen(name), " \t")));
    a->len = 0;
}

static void feed(struct announce *a, const char *p, size_t n)
{
    for (size_t i = 0; i < n && a->state != ANNOUNCE_OVER; i++) {
        if (p[i] == '\n')
            end_line(a);
        else if (p[i] != '\r' && a->len + 1 < sizeof a->line)
            a->line[a->len++] = p[i];
    }
}

void announce_feed(struct announce *a, struct evbuffer *b, size_t n)
{
    struct evbuffer_iovec part[4];
    struct evbuffer_ptr at;

    if (a->state == ANNOUNCE_OVER)
        return;
    evbuffer_ptr_set(b, &at, evbuffer_get_length(b) - n, EVBUFFER_PTR_SET);
    while (n) {
        int n_parts = evbuffer_peek(b, (ev_ssize_t)n, &at, part, (int)ARRAY_LEN(part));

        for (int i = 0; i < MIN(n_parts, (int)ARRAY_LEN(part)); i++) {
            size_t len = MIN(n, part[i].iov_len);

            feed(a, part[i].iov_base, len);
            evbuffer_ptr_set(b, &at, len, EVBUFFER_PTR_ADD);
            n -= len;
        }
        if (n_parts <= 0)
            break;
    }
}
