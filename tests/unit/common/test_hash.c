/* XXH3 by its published values. */
#include <check.h>

#include "common/hash.h"

START_TEST(nothing_hashes_to_the_published_value)
{
    ck_assert_uint_eq(hash_bytes(NULL, 0), 0x2D06800538D394C2ull);
    ck_assert_uint_eq(hash_bytes("x", 0), 0x2D06800538D394C2ull);
    ck_assert_uint_eq(hash_bytes_seed(NULL, 0, 0), 0x2D06800538D394C2ull);
}
END_TEST

START_TEST(one_bit_or_another_seed_gives_another_hash)
{
    ck_assert_uint_eq(hash_bytes("abc", 3), hash_bytes("abcd", 3));
    ck_assert_uint_ne(hash_bytes("abc", 3), hash_bytes("abb", 3));
    ck_assert_uint_ne(hash_bytes("a", 1), hash_bytes("a", 2));
    ck_assert_uint_ne(hash_bytes_seed("abc", 3, 1), hash_bytes_seed("abc", 3, 2));
    ck_assert_uint_eq(hash_bytes_seed("abc", 3, 0), hash_bytes("abc", 3));
}
END_TEST

TCase *tcase_common_hash(void);
TCase *tcase_common_hash(void)
{
    TCase *tc = tcase_create("hash");

    tcase_add_test(tc, nothing_hashes_to_the_published_value);
    tcase_add_test(tc, one_bit_or_another_seed_gives_another_hash);
    return tc;
}
