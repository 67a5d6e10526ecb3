/* What the ledger says against what the kernel says: resident memory through a load, a full context and unloading. */
#include <check.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/memory/probe.h"
#include "tests/unit/model/tiny.h"

TCase *tcase_model_rss(void);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHADOWED 1 /* a sanitizer's own memory is most of what is resident */
#else
#define SHADOWED 0
#endif

#define CTX   1024
#define ALLOW ((size_t)8 << 20)

static size_t rss(void)
{
    struct probe_self s = {0};
    struct err err = {0};

    malloc_trim(0);
    ck_assert_msg(probe_self(&s, &err) == 0, "%s", err.text);
    return s.rss_bytes;
}

START_TEST(resident_memory_is_what_was_reserved_and_goes_with_the_model)
{
    struct tiny_model o = {
        .family = "llama", .fmt = format_of(FORMAT_f32), .n_layers = 10, .n_ctx = CTX};
    struct model_options mo = {
        .n_ctx = CTX, .n_batch = 256, .n_out = 1, .kv = format_of(FORMAT_f32)};
    char path[] = "/tmp/rnbd-rss-XXXXXX";
    struct cpu_backend cpu = cpu_backend_open(2, NULL);
    struct ledger *ledger = ledger_create();
    struct gguf_writer w = {0};
    struct str bytes = {0};
    struct model *m = NULL;
    struct err err = {0};
    int32_t ids[CTX];
    size_t before, reserved, grown;
    int fd = mkstemp(path);
    char *link;

    /* in a real file: an anonymous one would be resident itself */
    tiny_model_build(&o, &w);
    gguf_writer_bytes(&w, &bytes);
    gguf_writer_clear(&w);
    ck_assert_int_eq((ssize_t)bytes.len, write(fd, bytes.p, bytes.len));
    unlink(path);
    str_clear(&bytes);
    link = gguf_writer_fd_path(fd);
    tiny_ids(ids, CTX);
    before = rss();
    ck_assert_msg(model_open(link, &m, &err) == 0, "%s", err.text);
    ck_assert_msg(model_load(m, &mo, ledger, cpu.ops, cpu.be, NULL, NULL, NULL, &err) == 0, "%s",
                  err.text);
    for (size_t at = 0; at < CTX; at += 256)
        ck_assert_int_eq(model_eval(m, ids + at, 256, NULL, 0, NULL, NULL, &err), 0);
    reserved = ledger_used(ledger, POOL_RAM);
    grown = rss() - before;
    ck_assert_msg(grown <= reserved + ALLOW, "%zu resident, %zu reserved", grown, reserved);
    ck_assert_msg(grown >= reserved / 10 * 8, "%zu resident, %zu reserved", grown, reserved);
    model_close(m);
    ck_assert_uint_le(rss(), before + ALLOW);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    cpu_backend_close(&cpu);
    ledger_destroy(ledger);
    free(link);
    close(fd);
}
END_TEST

TCase *tcase_model_rss(void)
{
    TCase *tc = tcase_create("rss");

    if (!SHADOWED)
        tcase_add_test(tc, resident_memory_is_what_was_reserved_and_goes_with_the_model);
    return tc;
}
