/* Tables, bars and numbers for people; see cmd.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cmd.h"
#include "common/alloc.h"
#include "common/units.h"
#include "common/utf8.h"

/* -- numbers ------------------------------------------------------------------------------------ */

static char *rotating(size_t *ret_cap)
{
    static char buffers[16][160];
    static unsigned next;

    *ret_cap = sizeof buffers[0];
    return buffers[next++ % ARRAY_LEN(buffers)];
}

const char *size_text(double bytes)
{
    size_t cap;
    char *buf = rotating(&cap);

    return units_format_size(bytes > 0 ? (uint64_t)bytes : 0, buf, (unsigned)cap);
}

const char *time_text(double ms)
{
    size_t cap;
    char *buf = rotating(&cap);

    return units_format_time_ms((int64_t)ms, buf, (unsigned)cap);
}

const char *format_text(const char *fmt, ...)
{
    size_t cap;
    char *buf = rotating(&cap);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, cap, fmt, ap);
    va_end(ap);
    return buf;
}

const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

double number_of(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* -- tables --------------------------------------------------------------------------------------- */

struct table {
    size_t n;
    char **cells;
    size_t n_cells, cap_cells;
};

void print_text(const char *text, bool one_line)
{
    for (const char *p = text; *p; p++) {
        bool is_space = *p == '\t' || *p == '\n';

        if (((unsigned char)*p < ' ' && (one_line || !is_space)) || *p == 0x7f)
            fputs("\xEF\xBF\xBD", stdout);
        else
            putchar(*p);
    }
}

void table_cell(struct table *t, const char *text)
{
    ARRAY_GROW(t->cells, t->n_cells + 1, t->cap_cells);
    t->cells[t->n_cells++] = xstrdup(text ? text : "");
}

struct table *table_create(const char *const *heads, size_t n)
{
    struct table *t = XNEW(struct table);

    t->n = n;
    for (size_t i = 0; i < n; i++)
        table_cell(t, heads[i]);
    return t;
}

void table_row(struct table *t, ...)
{
    va_list ap;

    va_start(ap, t);
    for (size_t i = 0; i < t->n; i++)
        table_cell(t, va_arg(ap, const char *));
    va_end(ap);
}

static size_t width_of(const char *cell)
{
    cell += *cell == '>';
    return utf8_length(cell, strlen(cell));
}

static void print_cell(const char *cell, size_t width, bool last)
{
    bool right = *cell == '>';
    size_t pad = width - width_of(cell);

    cell += right;
    if (right)
        printf("%*s", (int)pad, "");
    print_text(cell, true);
    if (!right && !last)
        printf("%*s", (int)pad, "");
    fputs(last ? "\n" : "  ", stdout);
}

void table_print_and_destroy(struct table *t)
{
    size_t *widths = XNEW_ARRAY(size_t, t->n);

    for (size_t i = 0; i < t->n_cells; i++)
        widths[i % t->n] = MAX(widths[i % t->n], width_of(t->cells[i]));
    for (size_t i = 0; i < t->n_cells; i++) {
        print_cell(t->cells[i], widths[i % t->n], i % t->n == t->n - 1);
        free(t->cells[i]);
    }
    free(t->cells);
    free(widths);
    free(t);
}

/* -- progress --------------------------------------------------------------------------------------- */

#define BAR_WIDTH 30

static void draw(const char *step, double done, double total, bool bytes)
{
    double share = total > 0 ? MIN(1.0, done / total) : 0;
    int filled = (int)(share * BAR_WIDTH);

    fprintf(stderr, "\r%-11s [", step);
    for (int i = 0; i < BAR_WIDTH; i++)
        fputc(i < filled ? '#' : '.', stderr);
    if (bytes)
        fprintf(stderr, "] %3.0f %%  %s of %s ", share * 100, size_text(done), size_text(total));
    else
        fprintf(stderr, "] %3.0f %%  %.0f of %.0f ", share * 100, done, total);
    fputs("\x1b[K", stderr);
    fflush(stderr);
}

void progress_show(struct client *c, struct progress *p, const char *step, double done,
                   double total, bool bytes)
{
    int tenth = total > 0 ? (int)(done / total * 10) : 0;

    if (strcmp(p->step, step) != 0) {
        progress_end(c, p);
        snprintf(p->step, sizeof p->step, "%s", step);
        p->last_tenth = -1;
    }
    if (c->progress) {
        draw(step, done, total, bytes);
        p->drawn = true;
    } else if (tenth != p->last_tenth) {
        if (bytes)
            fprintf(stderr, "%s: %d %% of %s\n", step, tenth * 10, size_text(total));
        else
            fprintf(stderr, "%s: %d %% of %.0f\n", step, tenth * 10, total);
    }
    p->last_tenth = tenth;
}

void progress_end(struct client *c, struct progress *p)
{
    if (c->progress && p->drawn)
        fputs("\r\x1b[K", stderr);
    memset(p, 0, sizeof *p);
}

void load_notify(void *arg, const char *method, const json_t *params)
{
    struct load_progress *l = arg;

    if (strcmp(method, "progress") == 0 && !l->client->json)
        progress_show(l->client, &l->bar, text_of(params, "step"), number_of(params, "done"),
                      number_of(params, "total"),
                      strcasecmp(text_of(params, "step"), "loading") == 0);
}
