/*
 * The steps that narrow the list of candidates; see sampler.h for their order.
 * Sums are taken in double and in the order of the list, which depends on the
 * logits alone: the same bits on every machine.
 */
#include <float.h>
#include <math.h>

#include "common/alloc.h"
#include "daemon/sampling/exact.h"
#include "daemon/sampling/sampler_priv.h"

static void swap(struct candidate *a, struct candidate *b)
{
    struct candidate t = *a;

    *a = *b;
    *b = t;
}

/* Heap whose root is the worst: children are before their parent. */
static void sift_down(struct candidate *c, size_t n, size_t i)
{
    struct candidate moving = c[i];

    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= n)
            break;
        if (child + 1 < n && candidate_before(&c[child], &c[child + 1]))
            child++;
        if (!candidate_before(&moving, &c[child]))
            break;
        c[i] = c[child];
        i = child;
    }
    c[i] = moving;
}

static void heap_make(struct candidate *c, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(c, n, i);
}

static void heap_sort(struct candidate *c, size_t n)
{
    heap_make(c, n);
    while (n > 1) {
        swap(&c[0], &c[--n]);
        sift_down(c, n, 0);
    }
}

void filter_gather(struct pool_list *l, const float *logits, size_t n_vocab, size_t k, float least)
{
    size_t n = 0, i = 0;

    if (k == 0 || k > n_vocab)
        k = n_vocab;
    for (; i < n_vocab && n < k; i++)
        /* False for a NaN. */
        if (logits[i] >= least && logits[i] > -INFINITY)
            l->c[n++] = (struct candidate){.id = (int32_t)i, .logit = MIN(logits[i], FLT_MAX)};
    if (i < n_vocab) {
        /* A later id must be strictly better than the worst, so equals keep the lower id. */
        heap_make(l->c, n);
        for (float worst = l->c[0].logit; i < n_vocab; i++) {
            if (!(logits[i] > worst && logits[i] >= least) || worst == FLT_MAX)
                continue;
            l->c[0] = (struct candidate){.id = (int32_t)i, .logit = MIN(logits[i], FLT_MAX)};
            sift_down(l->c, n, 0);
            worst = l->c[0].logit;
        }
    }
    l->n = n;
    l->n_sorted = 0;
    if (n < n_vocab && n == k)
        filter_sort(l, n);
}

float filter_sigma_least(const float *logits, size_t n_vocab, float n)
{
    double max = -INFINITY, sum = 0, squares = 0, mean;
    size_t count = 0;

    for (size_t i = 0; i < n_vocab; i++) {
        if (!isfinite(logits[i]))
            continue;
        max = MAX(max, (double)logits[i]);
        sum += logits[i];
        count++;
    }
    if (count == 0)
        return -INFINITY;
    mean = sum / (double)count;
    for (size_t i = 0; i < n_vocab; i++)
        if (isfinite(logits[i]))
            squares += (logits[i] - mean) * (logits[i] - mean);
    return (float)(max - n * sqrt(squares / (double)count));
}

/* Puts the n_best best of c[n] in front, in any order (Hoare's select, median of three). */
static void select_best(struct candidate *c, size_t n, size_t n_best)
{
    size_t lo = 0, hi = n;

    while (hi - lo > 2) {
        size_t mid = lo + (hi - lo) / 2, i = lo, j = hi - 1;
        struct candidate pivot;

        if (candidate_before(&c[mid], &c[lo]))
            swap(&c[mid], &c[lo]);
        if (candidate_before(&c[hi - 1], &c[lo]))
            swap(&c[hi - 1], &c[lo]);
        if (candidate_before(&c[hi - 1], &c[mid]))
            swap(&c[hi - 1], &c[mid]);
        pivot = c[mid];
        while (i <= j) {
            while (candidate_before(&c[i], &pivot))
                i++;
            while (candidate_before(&pivot, &c[j]))
                j--;
            if (i <= j)
                swap(&c[i++], &c[j--]);
        }
        if (n_best <= j + 1)
            hi = j + 1;
        else if (n_best > i)
            lo = i;
        else
            return;
    }
    if (hi - lo == 2 && candidate_before(&c[lo + 1], &c[lo]))
        swap(&c[lo], &c[lo + 1]);
}

void filter_sort(struct pool_list *l, size_t n_best)
{
    struct candidate *rest = l->c + l->n_sorted;
    size_t n_rest = l->n - l->n_sorted;

    if (n_best > l->n)
        n_best = l->n;
    if (n_best <= l->n_sorted)
        return;
    if (n_best < l->n)
        select_best(rest, n_rest, n_best - l->n_sorted);
    heap_sort(rest, n_best - l->n_sorted);
    l->n_sorted = n_best;
}

static double best_logit(const struct pool_list *l)
{
    double max = -INFINITY;

    if (l->n_sorted)
        return l->c[0].logit;
    for (size_t i = 0; i < l->n; i++)
        max = MAX(max, (double)l->c[i].logit);
    return max;
}

/* Sum of e^(logit − max). */
static double total_weight(const struct pool_list *l, double max)
{
    double total = 0;

    for (size_t i = 0; i < l->n; i++)
        total += exact_exp(l->c[i].logit - max);
    return total;
}

/* −Σ p ln p, with p = e^(x) / total and x = logit − max: ln total − Σ x e^x / total. */
static double entropy(const struct pool_list *l, double max, double total)
{
    double sum = 0;

    for (size_t i = 0; i < l->n; i++) {
        double x = l->c[i].logit - max, w = exact_exp(x);

        if (w > 0)
            sum += x * w;
    }
    return exact_log(total) - sum / total;
}

/* Sorts scores and candidates together, least score first; equal scores by the candidates' own order. */
static bool score_before(const double *score, const struct candidate *c, size_t a, size_t b)
{
    return score[a] != score[b] ? score[a] < score[b] : candidate_before(&c[a], &c[b]);
}

static void sift_down_scored(double *score, struct candidate *c, size_t n, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1;
        double t;

        if (child >= n)
            return;
        if (child + 1 < n && score_before(score, c, child, child + 1))
            child++;
        if (!score_before(score, c, i, child))
            return;
        t = score[i];
        score[i] = score[child];
        score[child] = t;
        swap(&c[i], &c[child]);
        i = child;
    }
}

void filter_typical(struct pool_list *l, float p, double *score)
{
    double max = best_logit(l), total = total_weight(l, max);
    double h = entropy(l, max, total), ln_total = exact_log(total), sum = 0;
    size_t n = l->n;

    /* Meister et al., "Locally typical sampling" (2023): nearest to the entropy first. */
    for (size_t i = 0; i < n; i++)
        score[i] = fabs(ln_total - (l->c[i].logit - max) - h);
    for (size_t i = n / 2; i-- > 0;)
        sift_down_scored(score, l->c, n, i);
    for (size_t end = n; end > 1;) {
        double t = score[0];

        end--;
        score[0] = score[end];
        score[end] = t;
        swap(&l->c[0], &l->c[end]);
        sift_down_scored(score, l->c, end, 0);
    }
    for (size_t i = 0; i < n; i++) {
        sum += exact_exp(l->c[i].logit - max);
        if (sum > (double)p * total) {
            l->n = i + 1;
            break;
        }
    }
    l->n_sorted = 0;
}

void filter_top_p(struct pool_list *l, float p)
{
    double max = best_logit(l), total = total_weight(l, max), sum = 0;

    for (size_t i = 0; i < l->n; i++) {
        /* Mostly a few dozen are enough: sort only as far as the sum needs. */
        if (i == l->n_sorted)
            filter_sort(l, MAX((size_t)64, i * 8));
        sum += exact_exp(l->c[i].logit - max);
        if (sum >= (double)p * total) {
            l->n = i + 1;
            break;
        }
    }
    l->n_sorted = MIN(l->n_sorted, l->n);
}

/* Keeps those that have at least this share of the best one's weight, in their order. */
static void keep_above(struct pool_list *l, double max, double share)
{
    size_t kept = 0, sorted = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (exact_exp(l->c[i].logit - max) < share)
            continue;
        if (i < l->n_sorted)
            sorted++;
        l->c[kept++] = l->c[i];
    }
    l->n = kept;
    l->n_sorted = sorted;
}

void filter_min_p(struct pool_list *l, float p)
{
    keep_above(l, best_logit(l), MIN(p, 1.0f));
}

void filter_xtc(struct pool_list *l, float threshold)
{
    double max = best_logit(l), total = total_weight(l, max);
    size_t above = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (i == l->n_sorted)
            filter_sort(l, MAX((size_t)64, i * 8));
        if (exact_exp(l->c[i].logit - max) < (double)threshold * total)
            break;
        above++;
    }
    if (above < 2)
        return;
    /* All that reach the threshold go, but for the least likely of them. */
    above--;
    for (size_t i = above; i < l->n; i++)
        l->c[i - above] = l->c[i];
    l->n -= above;
    l->n_sorted -= above;
}

void filter_temperature(struct pool_list *l, float t)
{
    for (size_t i = 0; i < l->n; i++)
        l->c[i].logit /= t;
}

void filter_dynatemp(struct pool_list *l, float t, float range, float exponent)
{
    double least = MAX(0.0, (double)t - range), most = (double)t + range;
    double max, share, chosen;

    if (l->n <= 1)
        return;
    max = best_logit(l);
    share = entropy(l, max, total_weight(l, max)) / exact_log((double)l->n);
    share = MIN(MAX(share, 0.0), 1.0);
    if (exponent != 1.0f)
        share = share > 0 ? exact_exp(exponent * exact_log(share)) : (exponent > 0 ? 0.0 : 1.0);
    chosen = least + (most - least) * share;
    if (chosen > 0) {
        filter_temperature(l, (float)chosen);
        return;
    }
    filter_sort(l, 1);
    l->n = 1;
}

void filter_surprise(struct pool_list *l, double mu)
{
    double max = best_logit(l), total = total_weight(l, max);

    /* −log2 p ≤ mu as p / p_best ≥ 2^−mu · total; a bound above 1 would drop the best too. */
    keep_above(l, max, MIN(exact_exp(-mu * 0.69314718055994530942) * total, 1.0));
}

void filter_softmax(struct pool_list *l)
{
    double max = best_logit(l), total = total_weight(l, max);

    for (size_t i = 0; i < l->n; i++)
        l->c[i].p = (float)(exact_exp(l->c[i].logit - max) / total);
}
