/* Small templates and collected answers, for the unit tests of this room. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/str.h"
#include "daemon/chat/chat.h"

/* Templates in the manner of model families: the least that has their marks. */
extern const char *const template_hermes,
    *const template_gemma,
        *const template_llama3,
            *const template_mistral,
                *const template_deepseek,
                    *const template_gptoss,
                        *const template_qwen3_coder,
                            *const template_glm,
                                *const template_think,
                                    *const template_kimi,
                                        *const template_nemotron,
                                            *const template_seed,
                                                *const template_gemma4,
                                                    *const template_granite,
                                                        *const template_functionary,
                                                            *const template_command_r,
                                                                *const template_lfm2,
                                                                    *const template_dsml;
extern const char *const template_hy3,
    *const template_kimi_k3, *const template_apertus, *const template_apriel,
                                                          *const template_functionary_all,
                                                              *const template_muse,
                                                                  *const template_minicpm;

/* The rendered text, or "error: ...", until the next call. */
const char *rendered(const char *template_text, const char *messages_json, const char *tools_json);

/*
 * An answer split and written down as one line: c(content) r(reasoning)
 * name[arguments]; fed in pieces of `step` bytes.  Static, until the next call.
 */
const char *split_in_pieces(const char *template_text, const char *answer, size_t step,
                            const char *prompt, bool with_tools);
/* As above, and checks that every size of pieces gives the same. */
const char *split(const char *template_text, const char *answer);
