/*
 * tiny_model - small random models of every family, in any format of weights,
 * with a byte-level vocabulary and a chat template: whole files for tests that
 * need no kit.
 *
 * The same options give the same file on every machine.  Ends the process when
 * something cannot be done: a test that asks for the impossible is wrong.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/formats/format.h"
#include "tests/support/gguf_writer.h"

struct tiny_model {
    const char *family;        /* "llama", "qwen2", "qwen3", "mixtral", "qwen2moe", "qwen3moe" */
    const struct format *fmt;  /* of matrices; NULL: f16 */
    const struct format *fmt2; /* of v and down projections, as mixtures have; NULL: fmt */
    uint64_t seed;
    unsigned n_layers; /* 0: 2 */
    unsigned n_ctx;    /* 0: 2048 */
    bool tied;         /* no output head of its own */
    bool no_vocab;
    const char *chat_template; /* NULL: ChatML; "": none */
    unsigned pooling;          /* of an embedding model, the file's number; 0: it writes text */
    size_t bos_bytes;          /* length up to which the text of its BOS is filled */
    size_t word_bytes;         /* and that of its last token that is text, TINY_LONG_WORD */
    const char *without; /* a key (without the prefix) or a tensor that is left out; NULL: none */
};

#define TINY_N_EMBD    256
#define TINY_N_VOCAB   320
#define TINY_N_EXPERT  6
#define TINY_LONG_WORD 263

/* Names of all families, NULL-terminated. */
extern const char *const tiny_families[];

/* Adds the whole model to w ({0}); tests may change it before it is written. */
void tiny_model_build(const struct tiny_model *o, struct gguf_writer *w);
/* The file itself, anonymous; gguf_writer_fd_path() names it. */
int tiny_model_memfd(const struct tiny_model *o);
void tiny_model_save(const struct tiny_model *o, const char *path);
