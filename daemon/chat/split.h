/*
 * split - the inside of a splitter, for the files of this room that are not
 * dialects (those use dialect.h).
 */
#pragma once

#include "daemon/chat/dialect.h"

enum split_mode { SPLIT_START, SPLIT_REASONING, SPLIT_TEXT, SPLIT_CALL };

/* Where a JSON value stands that is read byte by byte. */
struct json_scan {
    unsigned depth;
    bool in_string;
    bool escaped;
    bool scalar; /* a number or a word: ends before the first byte that is no part of it */
};

struct call_json {
    int state;
    struct json_scan value;
    struct str key;
    struct str text;   /* of the value that is read, when it is collected */
    bool is_arguments; /* the value that is read is arguments */
    bool collect;      /* it is kept until it ends, not given out as it comes */
    bool gave_arguments;
    bool comma; /* split_json_list: after an object */
};

struct chat_split {
    const struct chat_dialect *dialect;
    const struct chat_think *think; /* NULL: reasoning is not told apart */
    const json_t *tools;
    chat_event_fn *sink;
    void *arg;
    enum split_mode mode;
    struct str held; /* from `at`: not consumed yet */
    size_t at;
    struct str space;    /* white space that is content only if content follows */
    bool drop_space;     /* white space at a seam is no content */
    bool reasoning_some; /* reasoning has begun: white space counts from here on */
    struct str raw;      /* consumed since the marker, while it may turn out to be no call */
    size_t which;        /* marker that began the call */
    int phase;
    int part;
    bool bare;    /* the call that is read began without a marker */
    bool in_call; /* CHAT_CALL is out, CHAT_CALL_END is not */
    bool split_reasoning;
    unsigned n_calls;
    unsigned calls_before; /* the block that is read */
    struct str name;
    struct str key;
    bool has_arguments; /* call_tags: "{" is out */
    bool is_string;     /* call_tags: the tag itself says that the value is text */
    bool is_json;       /* ... or that it is not */
    struct call_json json;
};

/* The reasoning markers a template knows, or NULL. */
const struct chat_think *split_think_of(struct view template_text);
/* Whether text is one of the markers of a list, or part of one; list may be NULL. */
bool split_marks(const char *const *list, struct view text);
/* Feeds one byte; true when the value ends (with this byte, or before it: *ret_before). */
bool json_scan_byte(struct json_scan *scan, char c, bool *ret_before);
/* Whether an object has begun that is no call yet. */
bool call_json_is_open(const struct call_json *j);
void call_json_reset(struct call_json *j);
void call_json_clear(struct call_json *j);
