/*
 * room - how a model will be in so many bytes, and who gives for it: one order,
 * for a load, which has them do it, and for a plan, which tells what a load would do.
 *
 * ENGINE or IO.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/engine/catalog.h"
#include "daemon/engine/engine.h"
#include "daemon/model/model.h"

/* Of that many bytes, what a model leaves for requests. */
size_t room_headroom(const struct model *m, size_t bytes);

/*
 * How a model will be in that many bytes: one whose context the budget decides, or
 * that is not all resident, leaves something for requests if it can.  o->bytes
 * becomes what it may have.
 */
int room_plan(const struct engine_options *opt, struct model *m, struct model_options *o,
              size_t bytes, struct model_plan *ret, struct err *err);

/* Those who could give: loaded models, or what was told of them.  All in bytes. */
struct givers {
    size_t (*free)(void *arg); /* nobody has to give that; with what the model holds already */
    size_t (*caches)(void *arg), (*spare)(void *arg); /* sums of their offers */
    size_t (*most)(void *arg);                        /* who leaves, and the spare of who stays */
    void (*shrink_caches)(void *arg, size_t bytes);
    void (*shrink)(void *arg, size_t bytes);
    bool (*leave)(void *arg); /* the idle one used least recently; false: none is left */
};

/*
 * Makes a model fit as a whole, if others can be asked for what is missing: first
 * caches shrink, of pinned models too, which have to stay but not with all of their
 * slots; if that is not enough, idle models leave, least recently used first, until
 * it is.  Dense weights that stay would be read again for every token, so they are
 * asked last, for a model that would not be there at all.  No one gives back or
 * leaves in vain.  *ret is the plan then; what does not fit with all that there is
 * to have is planned with that, and has what would help as its advice.
 */
int room_make(const struct engine_options *opt, struct model *m, struct model_options *o,
              const struct givers *from, void *arg, struct model_plan *ret, struct err *err);

/* What there is, as it was told: nobody gives anything. */
struct room_offers {
    size_t free;
    struct slot_offer *list;
    size_t n;
};

/* The same with those; offers->free becomes what the model would find, and list what is left. */
int room_foresee(const struct engine_options *opt, struct model *m, struct model_options *o,
                 struct room_offers *offers, struct model_plan *ret, struct err *err);
/* All of them: who leaves, and the spare of who stays. */
size_t room_offered_bytes(const struct room_offers *offers);
