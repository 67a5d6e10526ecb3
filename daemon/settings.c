/* The settings table applied to files and the command line; see settings.h. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/file.h"
#include "common/ini.h"
#include "common/log.h"
#include "common/units.h"
#include "common/utf8.h"
#include "daemon/settings.h"

enum key_type {
    KEY_TEXT,
    KEY_TIER,
    KEY_ADDRESS,
    KEY_SIZE,
    KEY_SHARE,
    KEY_TIME,
    KEY_UINT,
    KEY_COUNT,
    KEY_BOOL,
    KEY_LEVEL,
    KEY_MODE
};

struct key {
    const char *section;
    const char *name;
    enum key_type type;
    size_t offset;
    size_t width; /* of the field, for integers */
    const char *fallback;
    bool live;
    const char *help;
};

static const struct key keys[] = {
#define KEY(section, key, type, field, fallback, live, help)                                       \
    {#section,                                                                                     \
     #key,                                                                                         \
     KEY_##type,                                                                                   \
     offsetof(struct settings, field),                                                             \
     sizeof(((struct settings *)0)->field),                                                        \
     fallback,                                                                                     \
     live,                                                                                         \
     help},
#include "daemon/settings.def"
#undef KEY
};

static void *field_of(struct settings *s, const struct key *k)
{
    return (char *)s + k->offset;
}

static const void *field_of_const(const struct settings *s, const struct key *k)
{
    return (const char *)s + k->offset;
}

static void store_int(struct settings *s, const struct key *k, uint64_t value)
{
    void *field = field_of(s, k);

    if (k->width == sizeof(uint64_t))
        memcpy(field, &value, sizeof value);
    else
        memcpy(field, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
}

static uint64_t load_int(const struct settings *s, const struct key *k)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;

    if (k->width == sizeof wide) {
        memcpy(&wide, field_of_const(s, k), sizeof wide);
        return wide;
    }
    memcpy(&narrow, field_of_const(s, k), sizeof narrow);
    return narrow;
}

static const char *load_text(const struct settings *s, const struct key *k)
{
    char *text;

    memcpy(&text, field_of_const(s, k), sizeof text);
    return text ? text : "";
}

static int parse_uint(const char *text, int base, uint64_t max, uint64_t *ret, struct err *err)
{
    char *end;

    errno = 0;
    *ret = strtoull(text, &end, base);
    if (errno || end == text || *end || *text == '-' || *ret > max)
        return err_set(err, ERR_INVALID, "'%s' is not a whole number from 0 to %llu", text,
                       (unsigned long long)max);
    return 0;
}

static int parse_bool(const char *text, uint64_t *ret, struct err *err)
{
    static const char *const words[2][3] = {{"no", "false", "off"}, {"yes", "true", "on"}};

    for (unsigned value = 0; value < 2; value++)
        for (unsigned i = 0; i < 3; i++)
            if (strcmp(text, words[value][i]) == 0) {
                *ret = value;
                return 0;
            }
    return err_set(err, ERR_INVALID, "'%s' is neither yes nor no", text);
}

static bool is_text(const struct key *k)
{
    return k->type <= KEY_ADDRESS;
}

static int check_tier(const char *text, struct err *err)
{
    static const char *const tiers[] = {"auto", "scalar",  "avx2", "avx512",
                                        "neon", "dotprod", "i8mm"};

    for (size_t i = 0; i < ARRAY_LEN(tiers); i++)
        if (strcmp(text, tiers[i]) == 0)
            return 0;
    return err_set(err, ERR_INVALID,
                   "'%s' is none of auto, scalar, avx2, avx512, neon, dotprod, i8mm", text);
}

/* "ADDRESS:PORT" or empty; getaddrinfo would take a port modulo 65536. */
static int check_address(const char *text, struct err *err)
{
    const char *colon = strrchr(text, ':');
    struct err inner;
    uint64_t port;

    if (*text && (!colon || colon == text || parse_uint(colon + 1, 10, 65535, &port, &inner) < 0))
        return err_set(err, ERR_INVALID,
                       "'%s' is not of the form ADDRESS:PORT with a port from 0 to 65535", text);
    return 0;
}

static int set_text(struct settings *s, const struct key *k, const char *value, struct err *err)
{
    int r = k->type == KEY_TIER      ? check_tier(value, err)
            : k->type == KEY_ADDRESS ? check_address(value, err)
                                     : 0;
    char *copy;

    if (r < 0)
        return r;
    copy = xstrdup(value);
    free(*(char **)field_of(s, k));
    memcpy(field_of(s, k), &copy, sizeof copy);
    return 0;
}

/* Writes value into the field of k. */
static int set_key(struct settings *s, const struct key *k, const char *value, struct err *err)
{
    uint64_t n = 0;
    int64_t ms = 0;
    int r = 0;

    if (is_text(k))
        return set_text(s, k, value, err);
    switch (k->type) {
    case KEY_SIZE: r = units_parse_size(value, &n, err); break;
    case KEY_SHARE: r = units_parse_share(value, s->usable_bytes, &n, err); break;
    case KEY_TIME:
        r = units_parse_time_ms(value, &ms, err);
        n = (uint64_t)ms;
        break;
    case KEY_UINT:
    case KEY_COUNT: r = parse_uint(value, 10, 1u << 30, &n, err); break;
    case KEY_MODE: r = parse_uint(value, 8, 0777, &n, err); break;
    case KEY_BOOL: r = parse_bool(value, &n, err); break;
    case KEY_LEVEL:
        if (log_level_of(value) < 0)
            return err_set(err, ERR_INVALID, "'%s' is none of error, warning, notice, info, debug",
                           value);
        n = (uint64_t)log_level_of(value);
        break;
    default: break;
    }
    if (r == 0 && n == 0 && (k->type == KEY_SIZE || k->type == KEY_SHARE || k->type == KEY_COUNT))
        r = err_set(err, ERR_INVALID, "'%s' is too little for %s; give more than 0", value,
                    k->name);
    if (r < 0)
        return r;
    store_int(s, k, n);
    return 0;
}

static const struct key *find_key(const char *section, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

/* -- [model NAME] ---------------------------------------------------------------------- */

static struct engine_model_entry *model_named(struct settings *s, const char *name)
{
    struct engine_model_entry *m;

    for (size_t i = 0; i < s->n_models; i++)
        if (strcmp(s->models[i].name, name) == 0)
            return &s->models[i];
    ARRAY_GROW(s->models, s->n_models + 1, s->cap_models);
    m = &s->models[s->n_models++];
    *m = (struct engine_model_entry){.name = xstrdup(name), .ttl_ms = -1};
    return m;
}

static void set_aliases(struct engine_model_entry *m, const char *value)
{
    char *copy = xstrdup(value), *save = NULL;

    for (size_t i = 0; i < m->n_aliases; i++)
        free(m->aliases[i]);
    free(m->aliases);
    m->aliases = NULL;
    m->n_aliases = 0;
    for (char *word = strtok_r(copy, " ,\t", &save); word; word = strtok_r(NULL, " ,\t", &save)) {
        m->aliases = xreallocarray(m->aliases, m->n_aliases + 1, sizeof *m->aliases);
        m->aliases[m->n_aliases++] = xstrdup(word);
    }
    free(copy);
}

static int set_model_key(struct settings *s, const struct ini_entry *e, struct err *err)
{
    struct engine_model_entry *m;
    uint64_t n;
    int r = 0;

    if (!*e->name)
        return err_set(err, ERR_INVALID, "a model section needs a name: [model NAME]");
    if (!utf8_valid(e->name, strlen(e->name)))
        return err_set(err, ERR_INVALID, "the name of a model must be UTF-8");
    m = model_named(s, e->name);
    if (strcmp(e->key, "file") == 0) {
        free(m->path);
        m->path = xstrdup(e->value);
    } else if (strcmp(e->key, "ctx") == 0) {
        r = parse_uint(e->value, 10, 1u << 30, &n, err);
        if (r == 0)
            m->n_ctx = n;
    } else if (strcmp(e->key, "kv") == 0) {
        if (strcmp(e->value, "f16") && strcmp(e->value, "q8_0") && strcmp(e->value, "q4_0"))
            return err_set(err, ERR_INVALID, "kv '%s' is none of f16, q8_0, q4_0", e->value);
        free(m->kv);
        m->kv = xstrdup(e->value);
    } else if (strcmp(e->key, "ttl") == 0) {
        r = units_parse_time_ms(e->value, &m->ttl_ms, err);
    } else if (strcmp(e->key, "pin") == 0) {
        r = parse_bool(e->value, &n, err);
        if (r == 0)
            m->pin = n;
    } else if (strcmp(e->key, "aliases") == 0) {
        set_aliases(m, e->value);
    } else {
        return err_set(err, ERR_INVALID,
                       "[model] has no key '%s' (it has: file, ctx, kv, ttl, pin, aliases)",
                       e->key);
    }
    return r;
}

static void free_model(struct engine_model_entry *m)
{
    set_aliases(m, "");
    free(m->aliases);
    free(m->name);
    free(m->path);
    free(m->kv);
}

/* -- files ------------------------------------------------------------------------------ */

static int on_entry(void *arg, const struct ini_entry *e, struct err *err)
{
    struct settings *s = arg;
    const struct key *k;

    if (strcmp(e->section, "model") == 0)
        return set_model_key(s, e, err);
    k = find_key(e->section, e->key);
    if (!k)
        return err_set(err, ERR_INVALID,
                       "there is no key '%s' in [%s]; rnbd --print-config lists them", e->key,
                       e->section);
    return set_key(s, k, e->value, err);
}

static int is_conf(const struct dirent *d)
{
    size_t len = strlen(d->d_name);

    return d->d_name[0] != '.' && len > 5 && strcmp(d->d_name + len - 5, ".conf") == 0;
}

/* conf.d/ beside the file, by name. */
static int read_drop_ins(struct settings *s, const char *file, struct err *err)
{
    const char *slash = strrchr(file, '/');
    char *dir = slash ? xasprintf("%.*s/conf.d", (int)(slash - file), file) : xstrdup("conf.d");
    struct dirent **list = NULL;
    int n = scandir(dir, &list, is_conf, alphasort);
    int r = 0;

    for (int i = 0; i < n; i++) {
        if (r == 0) {
            char *path = file_join(dir, list[i]->d_name);

            r = ini_read(path, on_entry, s, err);
            free(path);
        }
        free(list[i]);
    }
    free(list);
    free(dir);
    return r;
}

static char *user_path(const char *variable, const char *fallback, const char *rest)
{
    /* Nothing in rnbd sets the environment, so reading it is safe beside other threads. */
    const char *base = getenv(variable); /* NOLINT(concurrency-mt-unsafe) */
    const char *home = getenv("HOME");   /* NOLINT(concurrency-mt-unsafe) */

    if (base && *base)
        return xasprintf("%s/%s", base, rest);
    return home && *home && fallback ? xasprintf("%s/%s/%s", home, fallback, rest) : NULL;
}

static int read_files(struct settings *s, const char *given, struct err *err)
{
    char *path = given            ? xstrdup(given)
                 : geteuid() == 0 ? xstrdup("/etc/rnbd/rnbd.conf")
                                  : user_path("XDG_CONFIG_HOME", ".config", "rnbd/rnbd.conf");
    int r = 0;

    if (path && (given || file_exists(path))) {
        r = ini_read(path, on_entry, s, err);
        if (r == 0)
            r = read_drop_ins(s, path, err);
        if (r == 0) {
            s->config_file = path;
            path = NULL;
        }
    }
    free(path);
    return r;
}

/* -- command line ------------------------------------------------------------------------- */

enum { OPT_CONFIG = 256, OPT_MODEL, OPT_CHECK, OPT_PRINT, OPT_HELP, OPT_VERSION, OPT_KEY };

/* Options that stand for a key. */
static const struct {
    const char *option;
    const char *section;
    const char *key;
    const char *arg;
} key_options[] = {
    {"ram", "memory", "ram", "SIZE"},         {"listen", "http", "listen", "ADDR:PORT"},
    {"socket", "control", "socket", "PATH"},  {"threads", "compute", "threads", "N"},
    {"cpu", "compute", "cpu", "TIER"},        {"log-level", "daemon", "log_level", "LEVEL"},
    {"key-file", "http", "key_file", "FILE"}, {"models-dir", "models", "dir", "DIR"},
};

static void print_help(void)
{
    printf("usage: rnbd [OPTION]...\n\n"
           "Runs GGUF language models within a memory budget; answers OpenAI-style HTTP clients\n"
           "and rnbctl.  Stays in the foreground, logs to stderr, ends with 0 on SIGTERM.\n\n"
           "  --config FILE      read FILE instead of the standard rnbd.conf\n"
           "  --model NAME=FILE  a known model, loaded when it is asked for; may be repeated\n");
    for (size_t i = 0; i < ARRAY_LEN(key_options); i++) {
        const struct key *k = find_key(key_options[i].section, key_options[i].key);
        char left[64];

        snprintf(left, sizeof left, "--%s %s", key_options[i].option, key_options[i].arg);
        printf("  %-18s %s [%s]\n", left, k->help, *k->fallback ? k->fallback : "none");
    }
    printf(
        "  --vram SIZE        device memory; this build has no device backend, so it is refused\n"
        "  --check-config     read everything, say what is wrong, exit\n"
        "  --print-config     print the configuration in force with its help, exit\n"
        "  --version, --help\n");
}

static int set_model_option(struct settings *s, const char *text, struct err *err)
{
    const char *eq = strchr(text, '=');
    struct engine_model_entry *m;
    char *name;

    if (!eq || eq == text || !eq[1])
        return err_set(err, ERR_INVALID, "--model '%s' is not of the form NAME=FILE", text);
    name = xstrndup(text, (size_t)(eq - text));
    m = model_named(s, name);
    free(m->path);
    m->path = xstrdup(eq + 1);
    free(name);
    return 0;
}

static int set_key_option(struct settings *s, const char *option, const char *value,
                          struct err *err)
{
    struct err inner;

    for (size_t i = 0; i < ARRAY_LEN(key_options); i++)
        if (strcmp(key_options[i].option, option) == 0) {
            int r = set_key(s, find_key(key_options[i].section, key_options[i].key), value, &inner);

            return r < 0 ? err_set(err, inner.kind, "--%s: %s", option, inner.text) : 0;
        }
    return err_set(err, ERR_INVALID, "--%s is not supported by this build", option);
}

/* Runs over the command line; pass 0 finds --config alone, pass 1 applies the rest over the files. */
static int read_options(int argc, char **argv, int pass, const char **config, struct settings *s,
                        struct err *err)
{
    struct option options[ARRAY_LEN(key_options) + 8] = {
        {"config", required_argument, NULL, OPT_CONFIG},
        {"model", required_argument, NULL, OPT_MODEL},
        {"check-config", no_argument, NULL, OPT_CHECK},
        {"print-config", no_argument, NULL, OPT_PRINT},
        {"help", no_argument, NULL, OPT_HELP},
        {"version", no_argument, NULL, OPT_VERSION},
        {"vram", required_argument, NULL, OPT_KEY},
    };
    int c, at = 0, r = 0;

    for (size_t i = 0; i < ARRAY_LEN(key_options); i++)
        options[7 + i] = (struct option){key_options[i].option, required_argument, NULL, OPT_KEY};
    optind = 1;
    opterr = 0;
    /* The LOOP thread alone reads options: at start, and at a reload. */
    /* NOLINTNEXTLINE(concurrency-mt-unsafe) */
    while (r == 0 && (c = getopt_long(argc, argv, ":", options, &at)) != -1) {
        switch (c) {
        case OPT_CONFIG: *config = optarg; break;
        case OPT_MODEL: r = pass ? set_model_option(s, optarg, err) : 0; break;
        case OPT_CHECK: s->check_only = true; break;
        case OPT_PRINT: s->print_only = true; break;
        case OPT_KEY: r = pass ? set_key_option(s, options[at].name, optarg, err) : 0; break;
        case OPT_HELP: print_help(); return 1;
        case OPT_VERSION: printf("rnbd %s\n", RNBD_VERSION); return 1;
        case ':': return err_set(err, ERR_INVALID, "%s needs a value", argv[optind - 1]);
        default:
            return err_set(err, ERR_INVALID, "there is no option '%s'; see rnbd --help",
                           argv[optind - 1]);
        }
    }
    if (r == 0 && optind < argc)
        return err_set(err, ERR_INVALID,
                       "rnbd takes no argument '%s'; a model is given as --model NAME=FILE",
                       argv[optind]);
    return r;
}

static void set_standard_paths(struct settings *s)
{
    if (!*s->control.socket) {
        free(s->control.socket);
        s->control.socket =
            geteuid() == 0 ? NULL : user_path("XDG_RUNTIME_DIR", NULL, "rnbd/control.sock");
        if (!s->control.socket)
            s->control.socket = xstrdup("/run/rnbd/control.sock");
    }
    if (!*s->engine.state_dir) {
        free(s->engine.state_dir);
        s->engine.state_dir =
            user_path("STATE_DIRECTORY", NULL, ""); /* systemd's, for the service */
        if (!s->engine.state_dir && geteuid() != 0)
            s->engine.state_dir = user_path("XDG_STATE_HOME", ".local/state", "rnbd");
        if (!s->engine.state_dir)
            s->engine.state_dir = xstrdup("/var/lib/rnbd");
    }
    s->backend.cpu = s->cpu;
}

static int check_models(const struct settings *s, struct err *err)
{
    for (size_t i = 0; i < s->n_models; i++)
        if (!s->models[i].path)
            return err_set(err, ERR_INVALID, "[model %s] names no file: add file = PATH",
                           s->models[i].name);
    return 0;
}

int settings_read(int argc, char **argv, uint64_t usable_bytes, struct settings *ret,
                  struct err *err)
{
    struct settings s = {.usable_bytes = usable_bytes};
    const char *config = NULL;
    int r = 0;

    s.http.inherited_fd = s.control.inherited_fd = -1;
    for (size_t i = 0; i < ARRAY_LEN(keys) && r == 0; i++)
        r = set_key(&s, &keys[i], keys[i].fallback, err);
    if (r == 0)
        r = read_options(argc, argv, 0, &config, &s, err);
    if (r == 0)
        r = read_files(&s, config, err);
    if (r == 0)
        r = read_options(argc, argv, 1, &config, &s, err);
    if (r == 0)
        r = check_models(&s, err);
    if (r != 0) {
        settings_clear(&s);
        return r;
    }
    set_standard_paths(&s);
    *ret = s;
    return 0;
}

void settings_clear(struct settings *s)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (is_text(&keys[i]))
            free(*(char **)field_of(s, &keys[i]));
    for (size_t i = 0; i < s->n_models; i++)
        free_model(&s->models[i]);
    free(s->models);
    free(s->config_file);
    memset(s, 0, sizeof *s);
}

/* -- printing ------------------------------------------------------------------------------- */

static void format_value(const struct settings *s, const struct key *k, char *buf, size_t cap)
{
    static const char *const levels[] = {"error", "warning", "notice", "info", "debug"};
    uint64_t n = is_text(k) ? 0 : load_int(s, k);

    if (is_text(k)) {
        snprintf(buf, cap, "%s", load_text(s, k));
        return;
    }
    switch (k->type) {
    case KEY_TIME: snprintf(buf, cap, "%lldms", (long long)n); break;
    case KEY_BOOL: snprintf(buf, cap, "%s", n ? "yes" : "no"); break;
    case KEY_MODE: snprintf(buf, cap, "%04o", (unsigned)n); break;
    case KEY_LEVEL: snprintf(buf, cap, "%s", levels[n - LOG_LEVEL_ERROR]); break;
    default: snprintf(buf, cap, "%llu", (unsigned long long)n); break;
    }
}

void settings_print(const struct settings *s, struct str *out)
{
    const char *section = "";
    char value[1024];

    str_addf(out, "# rnbd %s, %s\n", RNBD_VERSION,
             s->config_file ? s->config_file : "no configuration file");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct key *k = &keys[i];

        if (strcmp(section, k->section) != 0) {
            section = k->section;
            str_addf(out, "\n[%s]\n", section);
        }
        format_value(s, k, value, sizeof value);
        str_addf(out, "# %s (default %s)\n%s = %s\n", k->help, *k->fallback ? k->fallback : "none",
                 k->name, value);
    }
    for (size_t i = 0; i < s->n_models; i++) {
        const struct engine_model_entry *m = &s->models[i];

        str_addf(out, "\n[model %s]\nfile = %s\nctx = %zu\nkv = %s\npin = %s\n", m->name, m->path,
                 m->n_ctx, m->kv ? m->kv : "f16", m->pin ? "yes" : "no");
        if (m->ttl_ms >= 0)
            str_addf(out, "ttl = %lldms\n", (long long)m->ttl_ms);
        if (m->n_aliases)
            str_adds(out, "aliases =");
        for (size_t j = 0; j < m->n_aliases; j++)
            str_addf(out, " %s%s", m->aliases[j], j + 1 == m->n_aliases ? "\n" : "");
    }
}

void settings_diff(const struct settings *now, const struct settings *fresh,
                   void (*changed)(void *arg, const char *section, const char *key, bool live),
                   void *arg)
{
    char a[1024], b[1024];

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        format_value(now, &keys[i], a, sizeof a);
        format_value(fresh, &keys[i], b, sizeof b);
        if (strcmp(a, b) != 0)
            changed(arg, keys[i].section, keys[i].name, keys[i].live);
    }
}
