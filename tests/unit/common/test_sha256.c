/* The digest of published files. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/sha256.h"

static const char *digest_of(const char *bytes, size_t n, size_t step)
{
    static char text[SHA256_HEX_LEN + 1];
    struct sha256 s;

    sha256_init(&s);
    for (size_t at = 0; at < n; at += step)
        sha256_add(&s, bytes + at, MIN(step, n - at));
    sha256_hex(&s, text);
    return text;
}

START_TEST(the_examples_of_the_standard_come_out)
{
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

    ck_assert_str_eq(digest_of("", 0, 1),
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    ck_assert_str_eq(digest_of("abc", 3, 3),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_str_eq(digest_of(two, strlen(two), 56),
                     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}
END_TEST

START_TEST(a_million_letters_come_out_however_they_are_cut)
{
    const size_t n = 1000000;
    char *a = memset(xcalloc(1, n), 'a', n);

    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(digest_of(a, n, (const size_t[]){1000000, 63, 64, 4097}[i]),
                         "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(a);
}
END_TEST

TCase *tcase_common_sha256(void);
TCase *tcase_common_sha256(void)
{
    TCase *tc = tcase_create("sha256");

    tcase_add_test(tc, the_examples_of_the_standard_come_out);
    tcase_add_test(tc, a_million_letters_come_out_however_they_are_cut);
    return tc;
}
