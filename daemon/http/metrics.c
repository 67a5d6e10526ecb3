/* Prometheus text of what the loop thread can see without waiting; see http.h. */
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
    head(out, "memory_account_bytes", "gauge", "host memory reserved, by account");
    for (int a = 0; a < ACCOUNT_COUNT; a++)
        str_addf(out, "rnbd_memory_account_bytes{account=\"%s\"} %zu\n",
                 ledger_account_name((enum account)a), r.accounts[a]);
}

void metrics_write(struct http *h, struct str *out)
{
    struct http_stats *s = &h->stats;

    write_engine(h, out);
    write_memory(h, out);
    one(out, "http_connections_total", "counter", "connections accepted", (double)s->connections);
    one(out, "http_requests_total", "counter", "requests received", (double)s->requests);
    one(out, "http_refused_total", "counter", "requests answered with an error",
        (double)s->refused);
    one(out, "http_sent_bytes_total", "counter", "bytes of bodies sent", (double)s->bytes_sent);
    one(out, "http_connections_open", "gauge", "connections open now", (double)s->open_connections);
    one(out, "http_streams_open", "gauge", "answers being streamed", (double)s->streams);
}
