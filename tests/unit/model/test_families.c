/* What holds for every family: a sound file opens, and each fault of another is told by name. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/family_model.h"
#include "tests/unit/model/tiny.h"

TCase *tcase_model_families(void);

START_TEST(the_least_file_of_a_family_opens)
{
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};
    char name[96];

    ck_assert(family_model_build(family_names[_i], FAMILY_SOUND, 0, &w, name));
    ck_assert_msg(tiny_open(&w, &m, &err) == 0, "%s: %s", family_names[_i], err.text);
    model_close(m);
}
END_TEST

/* Each fault in turn, of each thing that a file can have it in. */
START_TEST(a_wrong_file_of_a_family_is_refused_by_name)
{
    size_t n = 0;

    for (int fault = FAMILY_SOUND + 1; fault < FAMILY_FAULTS; fault++)
        for (size_t which = 0;; which++) {
            struct gguf_writer w = {0};
            struct model *m = NULL;
            struct err err = {0};
            char name[96];
            int r;

            if (!family_model_build(family_names[_i], (enum family_fault)fault, which, &w, name)) {
                gguf_writer_clear(&w);
                break;
            }
            r = tiny_open(&w, &m, &err);
            if (!name[0]) {
                model_close(m);
                continue;
            }
            n++;
            ck_assert_msg(r < 0, "%s: fault %d of %s is let through", family_names[_i], fault,
                          name);
            ck_assert_msg(strstr(err.text, name), "%s: fault %d of %s: %s", family_names[_i], fault,
                          name, err.text);
        }
    ck_assert_uint_gt(n, 30);
}
END_TEST

TCase *tcase_model_families(void)
{
    TCase *tc = tcase_create("families");
    int n = 0;

    while (family_names[n])
        n++;
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, the_least_file_of_a_family_opens, 0, n);
    tcase_add_loop_test(tc, a_wrong_file_of_a_family_is_refused_by_name, 0, n);
    return tc;
}
