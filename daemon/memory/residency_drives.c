/* What is known of the drives below a model's parts.  See residency.h. */

#include <stdlib.h>
#include <sys/stat.h>

#include "common/alloc.h"
#include "daemon/memory/residency_priv.h"

void residency_set_state_dir(struct residency *r, const char *dir)
{
    free(r->state_dir);
    r->state_dir = dir && *dir ? xstrdup(dir) : NULL;
}

static dev_t drive_of(const struct residency *r, unsigned part)
{
    struct stat st;

    return fstat(gguf_fd(r->g, part), &st) == 0 ? st.st_dev : 0;
}

/* Without room for the buffers, or with a drive that does not answer, the reader's defaults must do. */
static bool measure(struct residency *r, unsigned part, struct calibration *ret)
{
    return calibrate_within(r->ledger, r->who, gguf_fd(r->g, part), r->state_dir, ret, NULL) >= 0 &&
           ret->rate > 0;
}

void residency_know_drives(struct residency *r, bool measured)
{
    unsigned n_parts = gguf_parts(r->g);

    if (!r->state_dir || r->engine.pread)
        return;
    if (!r->drives)
        r->drives = XNEW_ARRAY(struct reader_drive, MAX(n_parts, 1));
    for (unsigned i = 0; i < n_parts; i++) {
        struct calibration c;
        unsigned same = 0;

        while (same < i && drive_of(r, same) != drive_of(r, i))
            same++;
        if (same < i) {
            r->drives[i] = r->drives[same];
        } else if (measured ? measure(r, i, &c)
                            : calibrate_known(gguf_fd(r->g, i), r->state_dir, &c)) {
            r->drives[i] = calibrate_reader(&c);
            if (i == 0)
                r->drive = c;
        }
    }
}

int residency_open_reader(const struct residency *r, struct reader **ret, struct err *err)
{
    bool faults = r->engine.pread || r->engine.no_direct;
    struct reader_options o = {.faults = faults ? &r->engine : NULL, .drives = r->drives};
    unsigned n_parts = gguf_parts(r->g);
    int *fds = xreallocarray(NULL, MAX(n_parts, 1), sizeof *fds);
    int rc;

    for (unsigned i = 0; i < n_parts; i++)
        fds[i] = gguf_fd(r->g, i);
    rc = reader_create(fds, n_parts, &o, ret, err);
    free(fds);
    return rc;
}
