/*
 * dialect - how a family of models writes reasoning and tool calls.
 *
 * To add one: a file dialect/NAME.c that exports
 *
 *     const struct chat_dialect chat_dialect_NAME = {.name = "NAME", ...};
 *
 * The list is made from the file names.  The dialect of a model is the one of
 * the lowest rank whose detect() knows its template; plain, of the highest
 * rank, knows every one.
 *
 * The splitter (split.c) looks for reasoning at the start of an answer and for
 * call markers after it, holds back what may become a marker, and hands a
 * dialect the bytes of a call.  A dialect that is more than text with calls in
 * it takes the whole stream by step().
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/str.h"
#include "daemon/chat/chat.h"

struct chat_split;

enum call_step {
    CALL_MORE, /* not enough bytes */
    CALL_DONE, /* back to text */
    CALL_BAD,  /* no call after all: what was consumed becomes content */
};

struct chat_think {
    const char *open;
    const char *close;
    bool special; /* the two are control tokens */
    const char
        *mark; /* a template that makes the two of parts has this; NULL: it has one of them */
};

struct chat_dialect {
    const char *name;
    int rank;
    bool (*detect)(struct view template_text);
    const char *const *opens; /* markers that begin a call or a block of calls; NULL-terminated */
    const char *const *drops; /* markers that are no content wherever they stand; NULL-terminated */
    const char *const *marks; /* the other markers, inside of calls; NULL-terminated */
    bool bare;                /* an answer that begins with "{" may be a call, too */
    bool special;             /* other control tokens than the markers matter, too */
    /* Consumes bytes after opens[which]; which is the number of opens for a bare call. */
    enum call_step (*call)(struct chat_split *s, size_t which, bool at_end);
    /* Instead of all of the above: consumes what it can; false when it needs more. */
    bool (*step)(struct chat_split *s, bool at_end);
};

/* True when text contains part. */
static inline bool view_has(struct view text, const char *part)
{
    return view_find(text, view_of(part), 0) >= 0;
}

/* -- for call() and step() ----------------------------------------------- */

struct view split_held(const struct chat_split *s); /* bytes not consumed yet */
void split_consume(struct chat_split *s, size_t n);
int split_phase(const struct chat_split *s); /* the dialect's own; 0 when a call begins */
void split_set_phase(struct chat_split *s, int phase);
/* A second one, of a dialect that takes the whole stream and leaves calls to split_tag_call(). */
int split_part(const struct chat_split *s);
void split_set_part(struct chat_split *s, int part);

/* The dialect's own notes of one call; cleared when a call begins. */
struct str *split_name(struct chat_split *s);
const json_t *split_tools(const struct chat_split *s);

void split_begin_call(struct chat_split *s, struct view name);
void split_arguments(struct chat_split *s, struct view text);
void split_end_call(struct chat_split *s);
void split_again(struct chat_split *s); /* another call of the same block: phase 0 */
void split_content(struct chat_split *s, struct view text);
void split_reasoning(struct chat_split *s, struct view text);
void split_end_reasoning(struct chat_split *s);

/* Consumes white space. */
void split_skip_space(struct chat_split *s);
/*
 * 1: held begins with marker (consumed).  0: it may still.  -1: it does not.
 * At the end, what only may does not.
 */
int split_accept(struct chat_split *s, const char *marker, bool at_end);
/*
 * Consumes white space and the marker that ends calls.  Without the marker they stand all the same:
 * they are whole.
 */
enum call_step split_close(struct chat_split *s, const char *marker, bool at_end);
/*
 * Offset of the first of the NULL-terminated markers in held, and which one;
 * or -1, and *ret_safe is how many bytes surely stand before one.
 */
ptrdiff_t split_find(const struct chat_split *s, const char *const *markers, size_t *ret_which,
                     size_t *ret_safe);

/* -- answers that are a row of messages, each behind a header -------------- */

/* 1: held begins with one of the NULL-terminated markers.  0: it may still.  -1: it does not. */
int split_begins(const struct chat_split *s, const char *const *markers, bool at_end);
/*
 * 1: *ret_header stood before marker; both are consumed.  0: more is needed; at the end a header
 * that was cut off is dropped.  -1: it is too long for one, and its first byte was given as content.
 */
int split_header(struct chat_split *s, const char *marker, bool at_end, struct view *ret_header);

/* -- calls written as JSON (call_json.c) --------------------------------- */

/*
 * Consumes one object {"name": ..., "arguments": {...}} ("parameters",
 * "tool_name" and "function" are read as well); arguments come out as they are generated once
 * the name is known.  CALL_DONE after its last "}".  CALL_BAD: it is none.
 */
enum call_step split_json_call(struct chat_split *s, bool at_end);
/* Consumes objects with "," between them, after a "[" and up to its "]"; ends each call. */
enum call_step split_json_list(struct chat_split *s, bool at_end);
/* All of a call that is "[", such objects, and what split_close() says of close; NULL: nothing.  The phases are its own. */
enum call_step split_json_block(struct chat_split *s, const char *close, bool at_end);
/* Consumes one JSON value and gives it out as arguments of the call that has begun. */
enum call_step split_json_arguments(struct chat_split *s, bool at_end);

/* -- calls written as tags (call_tags.c) --------------------------------- */

/* <function=NAME> <parameter=KEY> VALUE </parameter> ... </function> and its kin. */
struct tag_syntax {
    const char *call_open; /* "<function="; NULL: the name comes at once */
    const char *
        name_close; /* ">"; NULL: where the first key or call_close stands; NAME" index="1 is NAME */
    const char *key_open;    /* "<parameter=" */
    const char *key_close;   /* ">"; a key may carry: KEY" string="true, KEY" type="number */
    const char *value_open;  /* "<arg_value>"; NULL: the value comes at once */
    const char *value_close; /* "</parameter>"; around it may stand <![CDATA[ and ]]> */
    const char *call_close;  /* "</function>" */
    const char *block_close; /* "</tool_call>"; NULL: call_close ends it */
};

enum call_step split_tag_call(struct chat_split *s, const struct tag_syntax *t, bool at_end);
