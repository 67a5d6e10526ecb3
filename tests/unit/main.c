/* Runs the unit tests of one room: TEST_ROOM, with the cases in TEST_LIST; both given by the Makefile. */
#include <check.h>
#include <stdlib.h>

#define TCASE(room, name) TCase *tcase_##room##_##name(void);
#include TEST_LIST
#undef TCASE

int main(void)
{
    Suite *suite;
    SRunner *runner;
    int failed;

    /* What hangs is ended, and nothing that is only slow: check's own 4 s pass on a busy machine too. */
    setenv("CK_DEFAULT_TIMEOUT", "600", 0); /* NOLINT(concurrency-mt-unsafe) */
    suite = suite_create(TEST_ROOM);
#define TCASE(room, name) suite_add_tcase(suite, tcase_##room##_##name());
#include TEST_LIST
#undef TCASE
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
