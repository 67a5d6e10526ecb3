/*
 * catalog - the known models and what became of them: listed, loading, ready,
 * draining, failed.
 *
 * A slot is shared: its name, path and aliases never change; its run state
 * belongs to ENGINE; what LOOP may see of it is the copy under the catalog's
 * lock, which ENGINE writes with slot_publish.  The list of slots is LOOP's
 * (names resolve there, at once); ENGINE keeps its own list, told by letters.
 * A slot whose name was given to another file, or forgotten, is retired: it
 * has left LOOP's list, leaves memory when nothing needs it, and comes back to
 * LOOP to be freed.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/engine/engine.h"
#include "daemon/model/model.h"

struct chat_template;
struct job;

/* How a model is loaded and kept; the configured one, and the one in force. */
struct slot_terms {
    size_t n_ctx;            /* 0: by file and budget */
    const struct format *kv; /* NULL: f16 */
    int64_t ttl_ms;          /* 0: stays; the engine's default is filled in already */
    bool pin;
};

/* What of a model another one can have; all 0 when it is not in memory. */
struct slot_offer {
    size_t held;  /* what the ledger holds for it: weights, caches, text, scratch */
    size_t spare; /* of that, above its floor */
    size_t cache; /* of that, slots of experts beyond half of those that it was loaded with */
    bool leaves;  /* idle and not pinned: all of it */
    int64_t used_at_us;
};

struct slot {
    /* Fixed. */
    char *name;
    char *path;
    char **aliases;
    size_t n_aliases;

    /* LOOP. */
    bool transient;          /* came by load FILE: the configuration does not know it */
    bool proven;             /* a load of it has succeeded: it stays known whatever comes */
    struct slot_terms asked; /* as configured, for plans */

    /* ENGINE. */
    struct slot_terms configured, terms;
    struct model *model;        /* NULL: not in memory */
    struct chat_template *chat; /* of model, made when a conversation first asks for it */
    size_t chat_bytes;          /* of it, as text */
    enum model_state state;
    bool has_error;
    struct err error;           /* of FAILED */
    struct placement loaded_as; /* of model, before any change of a budget */
    size_t marked_bytes;        /* what the model held when another's load began */
    int64_t used_at_us; /* end of the last use; a request can be shorter than a millisecond */
    int64_t
        keep_alive_ms; /* of the last request: 0 leaves at once, −1 stays, INT64_MIN as terms say */
    unsigned users;    /* works that run on it: it may not leave */
    struct job *leaving; /* an unload that waits for the users to end */
    bool retired;
    double pp_per_s, tg_per_s;
    size_t progress, progress_total;
    _Atomic bool cancel_load;

    /* Under the catalog's lock. */
    struct model_status status;                     /* but for the times, which go on */
    int64_t status_used_at_ms, status_leaves_at_ms; /* −1: does not apply */
    struct slot_offer status_offer;
    char **status_files; /* NULL-terminated, while it is loaded: all parts */

    struct slot *next; /* in ENGINE's list */
};

struct catalog {
    pthread_mutex_t lock; /* a leaf; held for the copy of one status */
    struct slot *first;   /* ENGINE */
};

void catalog_init(struct catalog *c);
void catalog_clear(struct catalog *c);

/* -- LOOP ------------------------------------------------------------------------ */

struct slot *slot_create(const struct engine_model_entry *entry, const struct slot_terms *terms);
void slot_destroy(struct slot *s);
bool slot_answers_to(const struct slot *s, const char *name);
void slot_read(struct catalog *c, const struct slot *s, struct model_status *ret);
/* Paths of the files below a loaded model, a copy, NULL-terminated; NULL when it is not loaded. */
char **slot_files(struct catalog *c, const struct slot *s);
void slot_files_free(char **files); /* NULL is fine */
/* As it was last told. */
struct slot_offer slot_read_offer(struct catalog *c, const struct slot *s);
/* Size and time of the file, as soon as somebody has looked. */
void slot_set_file(struct catalog *c, struct slot *s, size_t file_bytes, int64_t created_s);

/* -- ENGINE ---------------------------------------------------------------------- */

void catalog_add(struct catalog *c, struct slot *s);
void catalog_remove(struct catalog *c, struct slot *s);
void slot_set_state(struct catalog *c, struct slot *s, enum model_state state);
void slot_publish(struct catalog *c, struct slot *s);
bool slot_ready(const struct slot *s);
/* Idle: in memory and nothing runs on it. */
bool slot_idle(const struct slot *s);
/* What the ledger holds for it: weights, caches, text, scratch; 0 when it is not in memory. */
size_t slot_held_bytes(const struct slot *s);
/* … and of that, above its floor. */
size_t slot_spare_bytes(const struct slot *s);
/* … and of that, slots that go before anybody leaves. */
size_t slot_cache_bytes(const struct slot *s);
struct slot_offer slot_offer(const struct slot *s);
/* When it will leave by itself; INT64_MAX when it stays. */
int64_t slot_leaves_at_ms(const struct slot *s);
/* Is it idle, not pinned and not `but`? */
bool slot_may_leave(const struct slot *s, const struct slot *but);
/* The idle, unpinned model that was used least recently; NULL when none. */
struct slot *catalog_victim(const struct catalog *c, const struct slot *but);
/* The one whose time has come at now_ms; NULL when none.  *ret_next_ms: when to look again. */
struct slot *catalog_expired(const struct catalog *c, int64_t now_ms, int64_t *ret_next_ms);
