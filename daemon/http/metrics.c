/* Prometheus text of what the loop thread can see without waiting; see http.h. */
#include <stddef.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "daemon/http/http_priv.h"

static void head(struct str *out, const char *name, const char *type, const char *help)
{
    str_addf(out, "# HELP rnbd_%s %s\n# TYPE rnbd_%s %s\n", name, help, name, type);
}

static void one(struct str *out, const char *name, const char *type, const char *help, double value)
{
    head(out, name, type, help);
    str_addf(out, "rnbd_%s %.17g\n", name, value);
}

static void write_engine(const struct http *h, struct str *out)
{
    struct engine_stats s;

    engine_stats(h->engine, &s);
    head(out, "requests_total", "counter", "requests that ended, by outcome");
    str_addf(
        out,
        "rnbd_requests_total{outcome=\"done\"} %llu\nrnbd_requests_total{outcome=\"failed\"} %llu\n"
        "rnbd_requests_total{outcome=\"cancelled\"} %llu\nrnbd_requests_total{outcome=\"refused\"} "
        "%llu\n",
        (unsigned long long)s.requests_done, (unsigned long long)s.requests_failed,
        (unsigned long long)s.requests_cancelled, (unsigned long long)s.requests_refused);
    one(out, "prompt_tokens_total", "counter", "tokens of prompts, cached ones included",
        (double)s.prompt_tokens);
    one(out, "cached_tokens_total", "counter", "tokens of prompts that were not computed again",
        (double)s.cached_tokens);
    one(out, "completion_tokens_total", "counter", "tokens generated", (double)s.completion_tokens);
    one(out, "prefill_seconds_total", "counter", "time spent on prompts", s.prefill_seconds);
    one(out, "decode_seconds_total", "counter", "time spent on generating", s.decode_seconds);
    one(out, "queue_seconds_total", "counter", "time requests have waited", s.queue_seconds);
    one(out, "read_bytes_total", "counter", "bytes read from model files", (double)s.bytes_read);
    one(out, "wanted_bytes_total", "counter", "bytes of weights wanted that are not all in memory",
        (double)s.bytes_wanted);
    one(out, "expert_uses_total", "counter", "experts used by decode where not all are in memory",
        (double)s.expert_uses);
    one(out, "expert_hits_total", "counter", "of these, those that were in memory",
        (double)s.expert_hits);
    one(out, "read_wait_seconds_total", "counter", "time computing stood still for reads",
        s.wait_seconds);
    one(out, "model_loads_total", "counter", "models loaded", (double)s.loads);
    one(out, "model_unloads_total", "counter", "models unloaded", (double)s.unloads);
    one(out, "requests_running", "gauge", "requests being computed", (double)s.running);
    one(out, "requests_waiting", "gauge", "requests in the queue", (double)s.waiting);
}

static void write_memory(const struct http *h, struct str *out)
{
    struct ledger_report r;

    engine_memory(h->engine, POOL_RAM, &r);
    one(out, "memory_budget_bytes", "gauge", "host memory that rnbd may hold", (double)r.budget);
    one(out, "memory_used_bytes", "gauge", "host memory reserved in the ledger", (double)r.used);
    one(out, "memory_peak_bytes", "gauge", "most that was ever reserved", (double)r.peak);
    one(out, "memory_refused_total", "counter", "reservations that the budget refused",
        (double)r.refused);
    one(out, "resident_bytes", "gauge", "resident set of the process",
        (double)engine_rss_bytes(h->engine));
    one(out, "page_cache_bytes", "gauge", "page cache of the files below loaded models",
        (double)engine_page_cache_bytes(h->engine));
    head(out, "memory_account_bytes", "gauge", "host memory reserved, by account");
    for (int a = 0; a < ACCOUNT_COUNT; a++)
        str_addf(out, "rnbd_memory_account_bytes{account=\"%s\"} %zu\n",
                 ledger_account_name((enum account)a), r.accounts[a]);
}

/* A name as the value of a label. */
static void add_label(struct str *out, const char *name)
{
    for (; *name; name++) {
        if (*name == '\n')
            str_adds(out, "\\n");
        else if (*name == '"' || *name == '\\')
            str_addf(out, "\\%c", *name);
        else
            str_addc(out, *name);
    }
}

/* What loaded models want of their files: counters that begin anew with a load. */
static const struct {
    const char *name, *type, *help;
    size_t at;
    double scale; /* of a real number; 0: an integer */
} reads[] = {
#define READS(name, type, help, field, scale)                                                      \
    {                                                                                              \
        name, type, help, offsetof(struct model_reads, field), scale                               \
    }
    READS("model_wanted_bytes_total", "counter", "bytes wanted that are not all in memory", wanted,
          0),
    READS("model_hit_bytes_total", "counter", "of these, those that were in memory", hit, 0),
    READS("model_read_bytes_total", "counter", "bytes read from its files", read, 0),
    READS("model_over_read_bytes_total", "counter", "of these, those that nobody wanted: blocks",
          over_read, 0),
    READS("model_read_ahead_bytes_total", "counter", "bytes read before their layer began",
          read_ahead, 0),
    READS("model_read_ahead_unused_bytes_total", "counter",
          "of these, those given up before it did", read_ahead_unused, 0),
    READS("model_expert_uses_total", "counter", "experts used by decode", uses, 0),
    READS("model_expert_hits_total", "counter", "of these, those that were in memory", hits, 0),
    READS("model_read_wait_seconds_total", "counter", "time computing stood still for reads",
          wait_ms, 1e-3),
    READS("model_device_bytes_per_second", "gauge", "what the drive gave while it was read",
          device_mb_per_s, 1e6),
#undef READS
};

static void write_reads(const struct http *h, struct str *out)
{
    size_t n = engine_models(h->engine, NULL, 0);
    struct model_status *list = XNEW_ARRAY(struct model_status, n);

    n = MIN(n, engine_models(h->engine, list, n));
    for (size_t k = 0; k < ARRAY_LEN(reads); k++) {
        head(out, reads[k].name, reads[k].type, reads[k].help);
        for (size_t i = 0; i < n; i++) {
            const char *at = (const char *)&list[i].reads + reads[k].at;

            if (list[i].state != MODEL_READY && list[i].state != MODEL_DRAINING)
                continue;
            str_addf(out, "rnbd_%s{model=\"", reads[k].name);
            add_label(out, list[i].name);
            str_addf(out, "\"} %.17g\n",
                     reads[k].scale > 0 ? reads[k].scale * *(const double *)(const void *)at
                                        : (double)*(const uint64_t *)(const void *)at);
        }
    }
    free(list);
}

void metrics_write(struct http *h, struct str *out)
{
    struct http_stats *s = &h->stats;

    write_engine(h, out);
    write_memory(h, out);
    write_reads(h, out);
    one(out, "http_connections_total", "counter", "connections accepted", (double)s->connections);
    one(out, "http_requests_total", "counter", "requests received", (double)s->requests);
    one(out, "http_refused_total", "counter", "requests answered with an error",
        (double)s->refused);
    one(out, "http_sent_bytes_total", "counter", "bytes of bodies sent", (double)s->bytes_sent);
    one(out, "http_connections_open", "gauge", "connections open now", (double)s->open_connections);
    one(out, "http_streams_open", "gauge", "answers being streamed", (double)s->streams);
}
