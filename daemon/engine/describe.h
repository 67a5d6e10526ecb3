/*
 * describe - what `plan` and `show` answer: a file read, proven and put into
 * JSON, without loading it.
 *
 * Thread: IO (a model of one's own).
 */
#pragma once

#include <jansson.h>

#include "common/err.h"
#include "daemon/memory/ledger.h"

struct engine;
struct job;
struct model;

/* A model file that is looked at, with the bytes of its metadata and vocabulary in the ledger. */
struct look {
    struct model *model;
    struct ledger *ledger;
};

int look_open(const struct engine *e, const struct job *j, struct look *ret, struct err *err);
void look_close(struct look *l);

/* Accounts, sum, context and advice of a load within the job's offers, into its outlook. */
int describe_plan(struct engine *e, struct job *j, struct err *err);
/* Metadata, tensors, template, tensors that the architecture does not use. */
int describe_file(struct engine *e, struct job *j, json_t **ret, struct err *err);
