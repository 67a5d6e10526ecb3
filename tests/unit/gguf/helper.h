/*
 * helper - opens what a gguf_writer holds, for the tests of this room.
 *
 * Both take the writer: it is empty after the call.
 */
#pragma once

#include "daemon/gguf/gguf.h"
#include "tests/support/gguf_writer.h"

/* Fails the test when the file is refused. */
struct gguf *open_written(struct gguf_writer *take_w);

/* Fails the test unless the file is refused with this kind and a sentence that contains part. */
void expect_refused(struct gguf_writer *take_w, enum err_kind kind, const char *part);

/* A sound file: an architecture and one tensor. */
void write_sound(struct gguf_writer *w);
