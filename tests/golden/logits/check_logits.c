/*
 * check_logits - the tiny models against logits that reference.py computed in
 * double precision.
 *
 *     check_logits DIR            DIR/FAMILY.txt for every family
 *     check_logits --save DIR     writes the models themselves, for reference.py
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/str.h"
#include "daemon/model/model.h"
#include "tests/support/cpu_backend.h"
#include "tests/support/tiny_model.h"

#define N_PROMPT 40
#define STEP     5 /* every fifth id is stored */
/* f32 sums of 512 terms through two layers: a share of the largest logit */
#define TOLERANCE 2e-5

static struct tiny_model tiny(const char *family)
{
    return (struct tiny_model){.family = family, .fmt = format_of(FORMAT_f32), .seed = 2026};
}

static int save(const char *dir)
{
    for (size_t i = 0; tiny_families[i]; i++) {
        struct tiny_model o = tiny(tiny_families[i]);
        char *path = xasprintf("%s/%s.gguf", dir, tiny_families[i]);

        tiny_model_save(&o, path);
        free(path);
    }
    return 0;
}

/* Logits of the whole prompt, [N_PROMPT][TINY_N_VOCAB]; NULL and a line when something fails. */
static float *logits_of(const char *family)
{
    struct tiny_model o = tiny(family);
    struct model_options mo = {
        .n_ctx = 64, .n_batch = N_PROMPT, .n_out = N_PROMPT, .kv = format_of(FORMAT_f32)};
    struct cpu_backend cpu = cpu_backend_open(2, NULL);
    struct ledger *ledger = ledger_create();
    struct model *m = NULL;
    int32_t ids[N_PROMPT], rows[N_PROMPT];
    const float *logits;
    float *out = NULL;
    struct err err = {0};
    int fd = tiny_model_memfd(&o);
    char *path = gguf_writer_fd_path(fd);

    for (int i = 0; i < N_PROMPT; i++) {
        ids[i] = (i * 37 + 11) % TINY_N_VOCAB;
        rows[i] = i;
    }
    if (model_open(path, &m, &err) < 0 ||
        model_load(m, &mo, ledger, cpu.ops, cpu.be, NULL, NULL, NULL, &err) < 0 ||
        model_eval(m, ids, N_PROMPT, rows, N_PROMPT, NULL, &logits, &err) < 0)
        printf("FAIL logits/%s: %s\n", family, err.text);
    else
        out = xmemdup(logits, N_PROMPT * TINY_N_VOCAB * sizeof *out);
    model_close(m);
    cpu_backend_close(&cpu);
    ledger_destroy(ledger);
    free(path);
    close(fd);
    return out;
}

/* Compares with the stored lines; the number of values, or −1 when the file is not what it should be. */
static int compare(FILE *f, const float *got, double *ret_worst)
{
    double worst = 0, scale = 0, want;
    int n = 0, pos;

    while (fscanf(f, "%d", &pos) == 1) {
        if (pos < 0 || pos >= N_PROMPT)
            return -1;
        for (int id = 0; id < TINY_N_VOCAB; id += STEP, n++) {
            if (fscanf(f, "%lf", &want) != 1)
                return -1;
            worst = fmax(worst, fabs(got[pos * TINY_N_VOCAB + id] - want));
            scale = fmax(scale, fabs(want));
            if (isnan(got[pos * TINY_N_VOCAB + id]))
                return -1;
        }
    }
    *ret_worst = worst / scale;
    return n;
}

static bool check(const char *dir, const char *family)
{
    char *path = xasprintf("%s/%s.txt", dir, family);
    FILE *f = fopen(path, "r");
    float *got = logits_of(family);
    double worst = 0;
    int n = f && got ? compare(f, got, &worst) : -1;
    bool ok = n >= TINY_N_VOCAB / STEP && worst <= TOLERANCE;

    if (ok)
        printf("pass logits/%s: %d values, worst %.2g of the largest\n", family, n, worst);
    else if (n < 0)
        printf("FAIL logits/%s: no values to compare with in %s\n", family, path);
    else
        printf("FAIL logits/%s: off by %.3g of the largest logit, %.3g allowed\n", family, worst,
               TOLERANCE);
    if (f)
        fclose(f);
    free(got);
    free(path);
    return ok;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;

    if (argc == 3 && strcmp(argv[1], "--save") == 0)
        return save(argv[2]);
    if (argc != 2) {
        fputs("usage: check_logits DIR | --save DIR\n", stderr);
        return 2;
    }
    for (size_t i = 0; tiny_families[i]; i++)
        *(check(argv[1], tiny_families[i]) ? &passed : &failed) += 1;
    printf("logits: %d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
