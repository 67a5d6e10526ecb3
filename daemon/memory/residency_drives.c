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

/*
 * Without room for the buffers, or with a drive that does not answer, the reader's
 * defaults must do: 0.  1: it is known.
 */
static int know_drive(struct residency *r, unsigned part, const struct calibrate_options *measure,
                      struct calibration *ret, struct err *err)
{
    int fd = gguf_fd(r->g, part), rc;

    if (!measure)
        return calibrate_known(fd, r->state_dir, ret);
    rc = calibrate_within(r->ledger, r->who, fd, measure, ret, err);
    if (rc == -ERR_CANCELLED)
        return rc;
    return rc >= 0 && ret->rate > 0;
}

int residency_know_drives(struct residency *r, const struct calibrate_options *measure,
                          struct err *err)
{
    unsigned n_parts = gguf_parts(r->g);
    struct err ignored;

    if (!r->state_dir || r->engine.pread)
        return 0;
    if (!r->drives)
        r->drives = XNEW_ARRAY(struct reader_drive, MAX(n_parts, 1));
    for (unsigned i = 0; i < n_parts; i++) {
        struct calibration c;
        unsigned same = 0;
        int known;

        while (same < i && drive_of(r, same) != drive_of(r, i))
            same++;
        if (same < i) {
            r->drives[i] = r->drives[same];
            continue;
        }
        known = know_drive(r, i, measure, &c, &ignored);
        if (known < 0)
            return err_set(err, ERR_CANCELLED, "loading %s was cancelled", r->who);
        if (!known)
            continue;
        r->drives[i] = calibrate_reader(&c);
        if (i == 0)
            r->drive = c;
    }
    return 0;
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
