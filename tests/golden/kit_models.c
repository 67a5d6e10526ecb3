/*
 * models/ and quant/: logits of whole models against the kit's, greedy
 * continuations, and batch against token by token, bit for bit; see kit.h and
 * the kit's README for the tolerances.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/golden/kit.h"
#include "tests/golden/kit_engine.h"
#include "tests/golden/kit_routers.h"

/* Scores of experts (probabilities, or what they compete by) that f16 keys may put in another order. */
#define TIE 1e-3

struct judge {
    bool quant;        /* 8-bit activations: relative errors count */
    double tolerance;  /* of a logit */
    double greedy_gap; /* below it a different choice is no fault */
    double worst;      /* largest difference seen */
    double rel_sum;    /* of squares of relative L2 */
    int n_rel;
    double rel_worst; /* relative L2 over what that position allows */
    /*
     * Rounded keys may let the other of two experts win that nearly tie.  What
     * is off behind that is counted, not faulted: only where the choices of the
     * run with f32 KV say that an expert changed, and only if the two were no
     * further apart than TIE.
     */
    const struct kit_choices *exact; /* of a prompt, by the run with f32 KV; NULL: this is it */
    struct kit_choices *chosen;      /* of that prompt, by this run */
    struct kit_flips flips;          /* of the prompt at hand */
    int n_flipped, n_behind; /* choices; positions and continuations that are off behind them */
    double apart;            /* the most of two experts of a tie */
    char fault[160];         /* "": none */
};

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

__attribute__((format(printf, 2, 3))) static void fault(struct judge *j, const char *fmt, ...)
{
    va_list ap;

    if (j->fault[0])
        return;
    va_start(ap, fmt);
    vsnprintf(j->fault, sizeof j->fault, fmt, ap);
    va_end(ap);
}

/* Of a large vocabulary the kit has the best logits and ln(sum of exp) of all. */
static void compare_top(struct judge *j, const json_t *position, const float *got, size_t n)
{
    const json_t *top = json_object_get(position, "top");
    double sum = 0, most;

    for (size_t i = 0; i < n; i++)
        sum += exp((double)got[i]);
    most = n ? fabs(log(sum) - number(position, "logsumexp")) : NAN;
    for (size_t i = 0; i < json_array_size(top); i++) {
        const json_t *pair = json_array_get(top, i);
        size_t id = (size_t)json_integer_value(json_array_get(pair, 0));
        double d = id < n ? fabs(got[id] - json_number_value(json_array_get(pair, 1))) : NAN;

        most = d > most || isnan(d) ? d : most;
    }
    j->worst = most > j->worst || isnan(most) ? most : j->worst;
    if (!json_array_size(top) || !(most <= j->tolerance))
        fault(j, "position %d is off by %.3g, %.3g allowed", (int)number(position, "pos"), most,
              j->tolerance);
}

/* Which experts have changed before the position end? */
static void compare_choices(struct judge *j, size_t end)
{
    if (!j->exact)
        return;
    j->n_flipped -= (int)j->flips.n; /* counted already, when the prompt alone was compared */
    j->flips = kit_routers_compare(j->exact, j->chosen, end);
    j->n_flipped += (int)j->flips.n;
    j->apart = fmax(j->apart, j->flips.apart);
    if (j->flips.apart > TIE)
        fault(j, "experts change places that are %.2g apart, %.2g allowed", j->flips.apart, TIE);
}

/* Is a position off, and behind a choice that another expert has won? */
static bool is_behind(struct judge *j, double most, size_t pos)
{
    if (!j->exact || !(most > j->tolerance) || pos < j->flips.first)
        return false;
    j->n_behind++;
    return true;
}

/* One listed position: all logits, against what the kit has. */
static void compare(struct judge *j, const json_t *position, const float *got, size_t n)
{
    const json_t *want = json_object_get(position, "logits");
    double diff2 = 0, want2 = 0, most = 0;

    if (!want) {
        compare_top(j, position, got, n);
        return;
    }
    for (size_t i = 0; i < json_array_size(want); i++) {
        double w = json_number_value(json_array_get(want, i));
        double d = fabs(got[i] - w);

        most = d > most || isnan(d) ? d : most;
        diff2 += d * d;
        want2 += w * w;
    }
    if (is_behind(j, most, (size_t)number(position, "pos")))
        return;
    j->worst = most > j->worst || isnan(most) ? most : j->worst;
    if (j->quant) {
        double rel = sqrt(diff2 / want2);
        double allowed = MAX(5e-2, 3 * number(position, "rel_l2_q8_act"));

        j->rel_sum += rel * rel;
        j->n_rel++;
        j->rel_worst = MAX(j->rel_worst, rel / allowed);
        if (!(rel <= allowed))
            fault(j, "position %d is off by %.4f of its length, %.4f allowed",
                  (int)number(position, "pos"), rel, allowed);
        return;
    }
    if (!(most <= j->tolerance))
        fault(j, "position %d is off by %.3g, %.3g allowed", (int)number(position, "pos"), most,
              j->tolerance);
}

static void check_greedy(struct judge *j, struct kit_engine *e, const json_t *prompt,
                         const int32_t *ids, size_t n)
{
    const json_t *want = json_object_get(prompt, "greedy");
    const json_t *gaps = json_object_get(prompt, "greedy_gap");
    size_t n_want = json_array_size(want);
    int32_t *got = xcalloc(n_want + 1, sizeof *got);
    struct err err = {0};
    int k = kit_engine_greedy(e, ids, n, n_want, false, got, &err);

    if (k < 0)
        fault(j, "greedy: %s", err.text);
    for (int i = 0; i < k; i++)
        if (i + 1 == k || got[i] != (int32_t)json_integer_value(json_array_get(want, (size_t)i))) {
            compare_choices(j, n + (size_t)i);
            break;
        }
    for (int i = 0; i < k; i++) {
        int32_t w = (int32_t)json_integer_value(json_array_get(want, (size_t)i));
        double gap = json_number_value(json_array_get(gaps, (size_t)i));

        if (j->quant && gap <= j->greedy_gap)
            break; /* only sure choices are compared */
        if (got[i] == w)
            continue;
        if (gap > j->greedy_gap && is_behind(j, HUGE_VAL, n + (size_t)i - 1))
            break;
        if (j->quant || gap > j->greedy_gap)
            fault(j, "greedy step %d of %zu tokens gives %d, not %d (gap %.3g)", i, n, got[i], w,
                  gap);
        break;
    }
    free(got);
}

/* The same prompt in pieces must give the same bits. */
static void check_pieces(struct judge *j, struct kit_engine *e, const int32_t *ids, size_t n,
                         const float *whole, float *pieces)
{
    const size_t steps[] = {1, n / 3 + 1, n - n / 3};
    struct err err = {0};

    for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
        if (kit_engine_all(e, ids, n, steps[s], pieces, &err) < 0)
            fault(j, "in pieces of %zu: %s", steps[s], err.text);
        else if (memcmp(whole, pieces, n * e->n_vocab * sizeof *whole) != 0)
            fault(j, "%zu tokens in pieces of %zu give other bits than at once", n, steps[s]);
    }
}

static void check_prompt(struct judge *j, struct kit_engine *e, const json_t *prompt)
{
    const json_t *positions = json_object_get(prompt, "positions");
    struct err err = {0};
    size_t n = 0;
    int32_t *ids = kit_ids(json_object_get(prompt, "tokens"), &n);
    float *whole = xcalloc(n * e->n_vocab + 1, sizeof *whole);
    float *pieces = xcalloc(n * e->n_vocab + 1, sizeof *pieces);

    if (!ids || kit_engine_all(e, ids, n, n, whole, &err) < 0) {
        fault(j, "%s", ids ? err.text : "a prompt without tokens");
    } else {
        compare_choices(j, n);
        kit_routers_to(NULL);
        for (size_t i = 0; i < json_array_size(positions); i++) {
            const json_t *p = json_array_get(positions, i);

            compare(j, p, whole + (size_t)number(p, "pos") * e->n_vocab, e->n_vocab);
        }
        check_pieces(j, e, ids, n, whole, pieces);
        kit_routers_to(j->chosen);
        check_greedy(j, e, prompt, ids, n);
    }
    free(pieces);
    free(whole);
    free(ids);
}

static void judge_init(struct judge *j, const json_t *golden, bool quant, bool f16_kv)
{
    double m = number(golden, "max_abs_logit");

    *j = (struct judge){.quant = quant};
    j->tolerance = f16_kv ? MAX(4 * number(golden, "dev_fa_f16kv"), 5e-3 * m)
                          : MAX(10 * number(golden, "ref_noise"), 1e-3 * m);
    j->greedy_gap = quant ? 4 * number(golden, "dev_q8_act") : 2 * j->tolerance;
}

static void judge_sum(struct judge *j, const json_t *golden)
{
    double rms = j->n_rel ? sqrt(j->rel_sum / j->n_rel) : 0;
    double allowed = MAX(2e-2, 2 * number(golden, "rel_l2_q8_act_rms"));

    if (j->quant && !(rms <= allowed))
        fault(j, "relative error is %.4f rms, %.4f allowed", rms, allowed);
}

#define MAX_PROMPTS 8 /* of a file; the kit's have four */

/* Runs one file with one kind of KV cache; KIT_SKIP and the reason when rnbd does not know its kind. */
static int run(const char *path, const json_t *golden, bool quant, const char *kv,
               const struct kit_choices *exact, struct kit_choices *chosen, struct judge *j)
{
    const json_t *prompts = json_object_get(golden, "prompts");
    struct kit_engine e;
    struct err err = {0};
    int r = kit_engine_open(&e, path, kv, &err);

    judge_init(j, golden, quant, strcmp(kv, "f16") == 0);
    if (r < 0)
        snprintf(j->fault, sizeof j->fault, "%.150s", err.text);
    for (size_t i = 0; r >= 0 && i < MIN(json_array_size(prompts), (size_t)MAX_PROMPTS); i++) {
        j->exact = exact ? &exact[i] : NULL;
        j->chosen = &chosen[i];
        j->flips = (struct kit_flips){.first = SIZE_MAX};
        kit_routers_to(j->chosen);
        check_prompt(j, &e, json_array_get(prompts, i));
        kit_routers_to(NULL);
    }
    if (r >= 0)
        judge_sum(j, golden);
    kit_engine_close(&e);
    if (r == -ERR_UNSUPPORTED)
        return KIT_SKIP;
    return j->fault[0] ? KIT_FAIL : KIT_PASS;
}

/* -- embeddings -------------------------------------------------------------------------- */

/* Least cosine of a vector with the kit's. */
#define EMBEDDING_COSINE 0.9999

static void compare_vector(struct judge *j, const json_t *want, const float *got)
{
    double dot = 0, want2 = 0, got2 = 0;

    for (size_t i = 0; i < json_array_size(want); i++) {
        double w = json_number_value(json_array_get(want, i));
        double d = fabs(got[i] - w);

        j->worst = d > j->worst || isnan(d) ? d : j->worst;
        dot += w * got[i];
        want2 += w * w;
        got2 += (double)got[i] * got[i];
    }
    if (!(j->worst <= j->tolerance))
        fault(j, "off by %.3g, %.3g allowed", j->worst, j->tolerance);
    if (!(dot / sqrt(want2 * got2) >= EMBEDDING_COSINE))
        fault(j, "cosine %.6f", dot / sqrt(want2 * got2));
}

static int run_embedding(const char *path, const json_t *golden, struct judge *j)
{
    const json_t *prompts = json_object_get(golden, "prompts");
    struct kit_engine e;
    struct model_info info;
    struct err err = {0};
    int r = kit_engine_open(&e, path, "f32", &err);

    *j = (struct judge){.tolerance = 2e-3 * number(golden, "max_abs")};
    if (r >= 0)
        model_info(e.m, &info);
    for (size_t i = 0; r >= 0 && i < json_array_size(prompts); i++) {
        const json_t *prompt = json_array_get(prompts, i);
        size_t n = 0;
        int32_t *ids = kit_ids(json_object_get(prompt, "tokens"), &n);
        float *got = xcalloc(info.n_embd, sizeof *got);

        r = model_embed(e.m, ids, n, NULL, got, &err);
        if (r >= 0 && json_array_size(json_object_get(prompt, "embedding")) != info.n_embd)
            fault(j, "the kit's vectors have another width than %zu", info.n_embd);
        else if (r >= 0)
            compare_vector(j, json_object_get(prompt, "embedding"), got);
        free(got);
        free(ids);
    }
    if (r < 0)
        fault(j, "%.150s", err.text);
    kit_engine_close(&e);
    if (r == -ERR_UNSUPPORTED)
        return KIT_SKIP;
    return j->fault[0] ? KIT_FAIL : KIT_PASS;
}

/* What there is to say of ties, to buf. */
static const char *ties_of(const struct judge *j, char buf[160])
{
    buf[0] = '\0';
    if (j->n_flipped)
        snprintf(
            buf, 160,
            "; %d choices of experts that were up to %.2g apart changed, %d places off behind them",
            j->n_flipped, j->apart, j->n_behind);
    return buf;
}

static void run_file(const char *kit_dir, const char *section, const char *name, bool quant,
                     struct kit_result *r)
{
    json_t *golden = kit_json(kit_dir, section, name);
    const char *file = json_string_value(json_object_get(golden, "file"));
    const char *kind = json_string_value(json_object_get(golden, "kind"));
    char *path = xasprintf("%s/%s/%s", kit_dir, section, file ? file : "");
    struct kit_choices exact[MAX_PROMPTS] = {0}, rounded[MAX_PROMPTS] = {0};
    struct judge f32, f16 = {0};
    char ties[160];
    int status;

    if (!file || !kind) {
        kit_line(r, section, name, KIT_FAIL, "not a file of the kit");
    } else if (strcmp(kind, "embedding") == 0) {
        status = run_embedding(path, golden, &f32);
        if (status != KIT_PASS)
            kit_line(r, section, file, status, "%s", f32.fault);
        else
            kit_line(r, section, file, status, "worst %.2g of %.2g", f32.worst, f32.tolerance);
    } else if (strcmp(kind, "logits") != 0) {
        kit_line(r, section, file, KIT_SKIP, "kind '%s' is not supported", kind);
    } else {
        status = run(path, golden, quant, "f32", NULL, exact, &f32);
        if (status == KIT_PASS && !quant)
            status = run(path, golden, quant, "f16", exact, rounded, &f16);
        if (status != KIT_PASS)
            kit_line(r, section, file, status, "%s%s", f16.fault[0] ? "with f16 KV: " : "",
                     f16.fault[0] ? f16.fault : f32.fault);
        else if (quant)
            kit_line(r, section, file, status, "relative error %.4f rms, worst %.2f of its bound",
                     sqrt(f32.rel_sum / f32.n_rel), f32.rel_worst);
        else
            kit_line(r, section, file, status, "worst %.2g of %.2g; f16 KV %.2g of %.2g%s",
                     f32.worst, f32.tolerance, f16.worst, f16.tolerance, ties_of(&f16, ties));
        for (int i = 0; i < MAX_PROMPTS; i++) {
            kit_choices_clear(&exact[i]);
            kit_choices_clear(&rounded[i]);
        }
    }
    free(path);
    json_decref(golden);
}

static int run_section(const char *kit_dir, const char *section, const char *match, bool quant,
                       struct kit_result *r)
{
    char **names = NULL;
    int n = kit_list(kit_dir, section, ".json", match, &names);

    if (n < 0)
        return -ERR_NOT_FOUND;
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], "index.json") != 0)
            run_file(kit_dir, section, names[i], quant, r);
    kit_list_free(names, n);
    return 0;
}

int kit_models(const char *kit_dir, const char *match, struct kit_result *r)
{
    return run_section(kit_dir, "models", match, false, r);
}

int kit_quant(const char *kit_dir, const char *match, struct kit_result *r)
{
    return run_section(kit_dir, "quant", match, true, r);
}
