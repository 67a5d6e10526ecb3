/*
 * check_kit - runs a folder in the kit's format through every section.
 *
 *     check_kit DIR [SECTION,SECTION...] [REGEX]
 *
 * Prints one line a file, "SECTION: N passed, N failed, N skipped", and exits
 * with 1 if one failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"
#include "tests/golden/kit.h"

typedef int section_fn(const char *kit_dir, const char *match, struct kit_result *r);

static const struct {
    const char *name;
    section_fn *run;
} sections[] = {
    {"models", kit_models},       {"tok", kit_tok},     {"chat", kit_chat},
    {"blocks", kit_blocks},       {"quant", kit_quant}, {"sampler", kit_sampler},
    {"malformed", kit_malformed}, {"text", kit_text},   {"dialects", kit_dialects},
};

static int is_wanted(const char *only, const char *name)
{
    size_t len = strlen(name);

    if (!only || !*only)
        return 1;
    for (const char *at = only; (at = strstr(at, name)); at += len)
        if ((at == only || at[-1] == ',') && (at[len] == '\0' || at[len] == ','))
            return 1;
    return 0;
}

/* A word of the list that is no section would otherwise test nothing in silence. */
static int check_names(const char *only)
{
    char *copy = xstrdup(only), *save = NULL;
    int bad = 0;

    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        size_t i = 0;

        while (i < ARRAY_LEN(sections) && strcmp(sections[i].name, word) != 0)
            i++;
        if (i == ARRAY_LEN(sections)) {
            fprintf(stderr, "check_kit: there is no section '%s'\n", word);
            bad = 1;
        }
    }
    free(copy);
    return bad;
}

int main(int argc, char **argv)
{
    struct kit_result sum = {0};
    const char *only = argc > 2 ? argv[2] : "";
    const char *match = argc > 3 ? argv[3] : NULL;
    char *readme;

    if (argc < 2 || argc > 4) {
        fputs("usage: check_kit DIR [SECTION,SECTION...] [REGEX]\n", stderr);
        return 2;
    }
    readme = file_join(argv[1], "models");
    if (!file_exists(readme) && !*only) {
        printf("kit: skipped, there is no kit at '%s'\n0 passed, 0 failed, 1 skipped\n", argv[1]);
        free(readme);
        return 0;
    }
    free(readme);
    if (check_names(only))
        return 2;
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        struct kit_result r = {0};

        if (!is_wanted(only, sections[i].name))
            continue;
        if (sections[i].run(argv[1], match, &r) < 0)
            r.failed++;
        printf("%s: %d passed, %d failed, %d skipped\n", sections[i].name, r.passed, r.failed,
               r.skipped);
        fflush(stdout);
        sum.passed += r.passed;
        sum.failed += r.failed;
        sum.skipped += r.skipped;
    }
    printf("kit: %d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped);
    return sum.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
