/* Keys, Host and Origin; see http.h. */
#include <arpa/inet.h>
#include <event2/keyvalq_struct.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"
#include "daemon/http/http_priv.h"

int auth_read_keys(const char *path, struct str **ret_keys, size_t *ret_n, struct err *err)
{
    struct str text = {0};
    struct str *keys = NULL;
    size_t n = 0;
    char *save = NULL;
    int r = file_read_all(path, 64 << 10, &text, err);

    if (r < 0)
        return r;
    for (char *line = strtok_r(text.len ? text.p : NULL, "\r\n", &save); line;
         line = strtok_r(NULL, "\r\n", &save)) {
        while (*line == ' ' || *line == '\t')
            line++;
        if (!*line || *line == '#')
            continue;
        keys = xreallocarray(keys, n + 1, sizeof *keys);
        keys[n] = (struct str){0};
        str_adds(&keys[n++], line);
    }
    str_clear(&text);
    if (n == 0)
        return err_set(err, ERR_INVALID, "the key file '%s' holds no key: write one a line", path);
    *ret_keys = keys;
    *ret_n = n;
    return 0;
}

void auth_free_keys(struct str *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (keys[i].p)
            explicit_bzero(keys[i].p, keys[i].len);
        str_clear(&keys[i]);
    }
    free(keys);
}

/* Time depends on the length of what was sent alone, not on where it differs. */
static bool same_key(const struct str *key, const char *given, size_t len)
{
    unsigned char diff = key->len != len;

    for (size_t i = 0; i < len; i++)
        diff |= (unsigned char)(given[i] ^ key->p[i % key->len]);
    return diff == 0;
}

static bool key_is_known(const struct http *h, const char *given)
{
    bool known = false;

    for (size_t i = 0; i < h->n_keys; i++)
        known |= same_key(&h->keys[i], given, strlen(given));
    return known;
}

static int check_key(const struct http *h, const struct evkeyvalq *headers, struct err *err)
{
    const char *bearer = evhttp_find_header(headers, "Authorization");
    const char *plain = evhttp_find_header(headers, "x-api-key");

    if (h->n_keys == 0)
        return 0;
    if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0 && key_is_known(h, bearer + 7))
        return 0;
    if (plain && key_is_known(h, plain))
        return 0;
    return err_set(err, ERR_AUTH, "%s; send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'",
                   bearer || plain ? "the key is not one that this server knows"
                                   : "this server wants a key");
}

bool auth_is_loopback(const char *host, size_t len)
{
    char name[64];
    struct in_addr v4;

    if (len >= sizeof name)
        return false;
    memcpy(name, host, len);
    name[len] = '\0';
    if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0 ||
        strcmp(name, "::1") == 0)
        return true;
    if (len > 10 && strcasecmp(name + len - 10, ".localhost") == 0)
        return true;
    return inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

/* Is word one of the space-separated words of list, or is "*" one? */
static bool listed(const char *list, const char *word, size_t len)
{
    while (*list) {
        size_t n = strcspn(list, " ,");

        if ((n == 1 && *list == '*') || (n == len && strncasecmp(list, word, n) == 0))
            return true;
        list += n;
        list += strspn(list, " ,");
    }
    return false;
}

/* "name:port", "[::1]:port" → length of the name. */
static size_t host_length(const char *host)
{
    const char *end = *host == '[' ? strchr(host, ']') : NULL;

    return end ? (size_t)(end - host) + 1 : strcspn(host, ":/");
}

/*
 * A page in a browser can be made to send requests to a loopback server under a
 * name of its own (DNS rebinding): without a key, only known names are answered.
 */
static int check_host(const struct http *h, const struct evkeyvalq *headers, struct err *err)
{
    const char *host = evhttp_find_header(headers, "Host");
    size_t len = host ? host_length(host) : 0;

    if (h->n_keys || !host || auth_is_loopback(host, len) || listed(h->opt.hosts, host, len))
        return 0;
    return err_set(err, ERR_FORBIDDEN,
                   "requests for host '%.*s' are not answered here; add it to http.hosts",
                   (int)MIN(len, 64), host);
}

static bool origin_is_allowed(const struct http *h, const char *origin)
{
    const char *host = strstr(origin, "://");

    if (listed(h->opt.origins, origin, strlen(origin)))
        return true;
    return host && auth_is_loopback(host + 3, host_length(host + 3));
}

static int check_origin(const struct http *h, struct evhttp_request *req, struct err *err)
{
    const char *origin = evhttp_find_header(evhttp_request_get_input_headers(req), "Origin");
    struct evkeyvalq *out = evhttp_request_get_output_headers(req);

    if (!origin)
        return 0;
    if (!origin_is_allowed(h, origin))
        return err_set(err, ERR_FORBIDDEN,
                       "pages from '%.64s' may not call this server; add it to http.origins",
                       origin);
    evhttp_add_header(out, "Access-Control-Allow-Origin", origin);
    evhttp_add_header(out, "Vary", "Origin");
    return 0;
}

int auth_check(struct http *h, struct evhttp_request *req, bool needs_key, struct err *err)
{
    const struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
    int r = check_host(h, headers, err);

    if (r == 0)
        r = check_origin(h, req, err);
    if (r == 0 && needs_key)
        r = check_key(h, headers, err);
    return r;
}
