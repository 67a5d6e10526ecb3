/* Slots, their states and who leaves first; see catalog.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/engine/catalog.h"

void catalog_init(struct catalog *c)
{
    *c = (struct catalog){.first = NULL};
    pthread_mutex_init(&c->lock, NULL);
}

void catalog_clear(struct catalog *c)
{
    pthread_mutex_destroy(&c->lock);
}

static void copy_text(char *to, size_t cap, const char *from)
{
    snprintf(to, cap, "%s", from);
}

struct slot *slot_create(const struct engine_model_entry *entry, const struct slot_terms *terms)
{
    struct slot *s = XNEW(struct slot);

    s->name = xstrdup(entry->name);
    s->path = xstrdup(entry->path);
    s->aliases = XNEW_ARRAY(char *, entry->n_aliases + 1);
    for (size_t i = 0; i < entry->n_aliases; i++)
        s->aliases[s->n_aliases++] = xstrdup(entry->aliases[i]);
    s->asked = s->configured = s->terms = *terms;
    s->keep_alive_ms = INT64_MIN;
    s->status_used_at_ms = s->status_leaves_at_ms = -1;
    copy_text(s->status.name, sizeof s->status.name, s->name);
    copy_text(s->status.path, sizeof s->status.path, s->path);
    copy_text(s->status.kv, sizeof s->status.kv, terms->kv ? terms->kv->name : "f16");
    s->status.n_ctx = terms->n_ctx;
    s->status.pin = terms->pin;
    return s;
}

void slot_destroy(struct slot *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_aliases; i++)
        free(s->aliases[i]);
    free(s->aliases);
    slot_files_free(s->status_files);
    free(s->name);
    free(s->path);
    free(s);
}

bool slot_answers_to(const struct slot *s, const char *name)
{
    if (strcmp(s->name, name) == 0)
        return true;
    for (size_t i = 0; i < s->n_aliases; i++)
        if (strcmp(s->aliases[i], name) == 0)
            return true;
    return false;
}

void slot_read(struct catalog *c, const struct slot *s, struct model_status *ret)
{
    int64_t now = clock_ms(), used_at, leaves_at;

    pthread_mutex_lock(&c->lock);
    *ret = s->status;
    used_at = s->status_used_at_ms;
    leaves_at = s->status_leaves_at_ms;
    pthread_mutex_unlock(&c->lock);
    ret->idle_ms = used_at < 0 || ret->busy ? 0 : MAX(now - used_at, 0);
    ret->until_ms = leaves_at < 0 ? -1 : MAX(leaves_at - now, 0);
}

void slot_files_free(char **files)
{
    for (size_t i = 0; files && files[i]; i++)
        free(files[i]);
    free(files);
}

char **slot_files(struct catalog *c, const struct slot *s)
{
    char **copy = NULL;
    size_t n = 0;

    pthread_mutex_lock(&c->lock);
    while (s->status_files && s->status_files[n])
        n++;
    if (n)
        copy = XNEW_ARRAY(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = xstrdup(s->status_files[i]);
    pthread_mutex_unlock(&c->lock);
    return copy;
}

/* ENGINE: as the model stands. */
static char **files_of(const struct slot *s)
{
    const struct gguf *g = s->model ? model_gguf(s->model) : NULL;
    char **files = g ? XNEW_ARRAY(char *, gguf_parts(g) + 1) : NULL;

    for (unsigned i = 0; g && i < gguf_parts(g); i++)
        files[i] = xstrdup(gguf_path(g, i));
    return files;
}

struct slot_offer slot_read_offer(struct catalog *c, const struct slot *s)
{
    struct slot_offer offer;

    pthread_mutex_lock(&c->lock);
    offer = s->status_offer;
    pthread_mutex_unlock(&c->lock);
    return offer;
}

void slot_set_file(struct catalog *c, struct slot *s, size_t file_bytes, int64_t created_s)
{
    pthread_mutex_lock(&c->lock);
    s->status.file_bytes = file_bytes;
    s->status.created_s = created_s;
    pthread_mutex_unlock(&c->lock);
}

void catalog_add(struct catalog *c, struct slot *s)
{
    struct slot **p = &c->first;

    while (*p)
        p = &(*p)->next;
    s->next = NULL;
    *p = s;
}

void catalog_remove(struct catalog *c, struct slot *s)
{
    for (struct slot **p = &c->first; *p; p = &(*p)->next) {
        if (*p == s) {
            *p = s->next;
            return;
        }
    }
}

bool slot_ready(const struct slot *s)
{
    return s && s->model != NULL;
}

bool slot_idle(const struct slot *s)
{
    return s->model && s->users == 0;
}

size_t slot_held_bytes(const struct slot *s)
{
    return s->model ? model_held_bytes(s->model) + s->chat_bytes : 0;
}

size_t slot_spare_bytes(const struct slot *s)
{
    size_t held, floor;

    if (!s->model)
        return 0;
    held = model_held_bytes(s->model);
    floor = model_floor_bytes(s->model);
    return held > floor ? held - floor : 0;
}

/*
 * Half of its slots is what a model gives for another to be fast, or for a request:
 * most of what it wants is in the other half.  With fewer it would be as slow as
 * the drive for as long as the other stays; it does better to leave and to come back.
 */
size_t slot_cache_bytes(const struct slot *s)
{
    size_t keep = s->loaded_as.slots_bytes / 2;
    struct residency_stats now;

    if (!s->model)
        return 0;
    model_residency(s->model, &now);
    return MIN(slot_spare_bytes(s),
               now.placement.slots_bytes - MIN(now.placement.slots_bytes, keep));
}

struct slot_offer slot_offer(const struct slot *s)
{
    return (struct slot_offer){.held = slot_held_bytes(s),
                               .spare = slot_spare_bytes(s),
                               .cache = slot_cache_bytes(s),
                               .leaves = slot_may_leave(s, NULL),
                               .used_at_us = s->used_at_us};
}

int64_t slot_leaves_at_ms(const struct slot *s)
{
    int64_t ttl = s->keep_alive_ms == INT64_MIN ? s->terms.ttl_ms : s->keep_alive_ms;
    bool stays = s->keep_alive_ms == INT64_MIN ? ttl == 0 : ttl < 0;

    if (!slot_idle(s))
        return INT64_MAX;
    if (s->retired)
        return s->used_at_us / 1000;
    if (s->terms.pin || stays)
        return INT64_MAX;
    return s->used_at_us / 1000 + ttl;
}

static struct model_reads reads_of(const struct residency_stats *s)
{
    return (struct model_reads){
        .wanted = s->wanted_bytes,
        .hit = s->hit_bytes,
        .read = s->bytes_read,
        .over_read = s->over_bytes,
        .read_ahead = s->ahead_bytes,
        .read_ahead_unused = s->ahead_unused_bytes,
        .uses = s->uses,
        .hits = s->hits,
        .wait_ms = (double)s->wait_us / 1000,
        .device_mb_per_s = s->busy_us ? (double)s->reader_bytes / (double)s->busy_us : 0,
    };
}

/* Tables that are looked up row by row are no loss to speak of, and no stage. */
static enum model_stage stage_of(const struct slot *s, const struct placement *now)
{
    if (s->state == MODEL_DRAINING && !s->users)
        return STAGE_CLOSING;
    if (now->n_dropped > s->loaded_as.n_dropped)
        return STAGE_WEIGHTS;
    return now->n_slots < s->loaded_as.n_slots ? STAGE_CACHES : STAGE_WHOLE;
}

/* What the model says of itself, once it is there. */
static void fill_from_model(const struct slot *s, struct model_status *st)
{
    struct model_info info;
    struct residency_stats residency;

    model_info(s->model, &info);
    model_residency(s->model, &residency);
    copy_text(st->arch, sizeof st->arch, info.arch);
    copy_text(st->type, sizeof st->type, info.type);
    st->n_params = info.n_params;
    st->file_bytes = info.file_bytes;
    st->n_ctx = model_n_ctx(s->model);
    st->n_ctx_train = info.n_ctx_train;
    st->resident_bytes = residency.resident_bytes;
    st->total_bytes = residency.bytes;
    st->reads = reads_of(&residency);
    st->stage = stage_of(s, &residency.placement);
}

void slot_publish(struct catalog *c, struct slot *s)
{
    int64_t leaves_at = slot_leaves_at_ms(s);
    struct slot_offer offer = slot_offer(s);
    struct model_status st;
    char **old = NULL, **files = !s->status_files != !s->model ? files_of(s) : NULL;

    /* ENGINE writes all of it but the file's size and time, which LOOP may set in between. */
    pthread_mutex_lock(&c->lock);
    st = s->status;
    pthread_mutex_unlock(&c->lock);
    st.state = s->state;
    st.loaded = s->model != NULL;
    st.busy = s->users > 0;
    st.pin = s->terms.pin;
    st.progress = s->progress;
    st.total = s->progress_total;
    st.charged_bytes = slot_held_bytes(s);
    st.pp_per_s = s->pp_per_s;
    st.tg_per_s = s->tg_per_s;
    copy_text(st.kv, sizeof st.kv, s->terms.kv ? s->terms.kv->name : "f16");
    copy_text(st.error, sizeof st.error, s->state == MODEL_FAILED ? s->error.text : "");
    if (s->model) {
        fill_from_model(s, &st);
    } else {
        st.n_ctx = s->terms.n_ctx;
        st.resident_bytes = 0;
        st.reads = (struct model_reads){0};
    }
    pthread_mutex_lock(&c->lock);
    st.created_s = s->status.created_s;
    if (!s->model)
        st.file_bytes = s->status.file_bytes;
    if (!s->status_files != !s->model) { /* it came or left */
        old = s->status_files;
        s->status_files = files;
    }
    s->status = st;
    s->status_used_at_ms = s->model ? s->used_at_us / 1000 : -1;
    s->status_leaves_at_ms = leaves_at == INT64_MAX ? -1 : leaves_at;
    s->status_offer = offer;
    pthread_mutex_unlock(&c->lock);
    slot_files_free(old);
}

void slot_set_state(struct catalog *c, struct slot *s, enum model_state state)
{
    s->state = state;
    slot_publish(c, s);
}

bool slot_may_leave(const struct slot *s, const struct slot *but)
{
    return s != but && slot_idle(s) && !s->terms.pin;
}

struct slot *catalog_victim(const struct catalog *c, const struct slot *but)
{
    struct slot *oldest = NULL;

    for (struct slot *s = c->first; s; s = s->next)
        if (slot_may_leave(s, but) && (!oldest || s->used_at_us < oldest->used_at_us))
            oldest = s;
    return oldest;
}

struct slot *catalog_expired(const struct catalog *c, int64_t now_ms, int64_t *ret_next_ms)
{
    *ret_next_ms = INT64_MAX;
    for (struct slot *s = c->first; s; s = s->next) {
        int64_t at = slot_leaves_at_ms(s);

        if (at <= now_ms)
            return s;
        *ret_next_ms = MIN(*ret_next_ms, at);
    }
    return NULL;
}
