/* The machine and its cgroups, from trees made for the purpose. */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/file.h"
#include "daemon/memory/probe.h"
#include "tests/support/scratch.h"

TCase *tcase_memory_probe(void);

static const char *root;

static void make_root(void)
{
    root = scratch_make();
}

static void remove_root(void)
{
    ck_assert_int_eq(scratch_remove(), 0);
}

static void put(const char *name, const char *text)
{
    char *path = file_join(root, name);
    char *dir = xstrdup(path);
    struct err err = {0};

    *strrchr(dir, '/') = '\0';
    ck_assert_msg(file_make_dirs(dir, 0755, &err) >= 0, "%s", err.text);
    ck_assert_msg(file_replace(path, text, strlen(text), 0644, &err) >= 0, "%s", err.text);
    free(dir);
    free(path);
}

static struct probe_machine probe(void)
{
    struct probe_machine m = {0};
    struct err err = {0};

    ck_assert_msg(probe_machine(root, &m, &err) == 0, "%s", err.text);
    return m;
}

START_TEST(without_cgroups_the_physical_memory_is_usable)
{
    put("proc/meminfo", "MemTotal:        1000 kB\nMemFree:  10 kB\n");
    ck_assert_uint_eq(probe().usable_bytes, 1000 << 10);
    ck_assert_uint_eq(probe().cgroup_bytes, SIZE_MAX);
    ck_assert_str_eq(probe().cgroup_path, "");
}
END_TEST

START_TEST(the_least_limit_up_a_v2_tree_counts)
{
    put("proc/meminfo", "MemTotal: 1000 kB\n");
    put("proc/self/mountinfo",
        "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    put("proc/self/cgroup", "0::/a/b/c\n");
    put("sys/fs/cgroup/a/b/c/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/memory.max", "300000\n");
    put("sys/fs/cgroup/a/memory.max", "400000\n");
    ck_assert_uint_eq(probe().usable_bytes, 300000);
    ck_assert_str_eq(probe().cgroup_path, "/sys/fs/cgroup/a/b/memory.max");
}
END_TEST

START_TEST(a_v1_memory_hierarchy_counts_and_other_controllers_do_not)
{
    put("proc/meminfo", "MemTotal: 1000 kB\n");
    put("proc/self/mountinfo", "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                               "32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    put("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n");
    put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "200000\n");
    ck_assert_uint_eq(probe().usable_bytes, 200000);
}
END_TEST

START_TEST(a_container_whose_cgroup_is_the_mount_s_root_finds_its_limit)
{
    put("proc/meminfo", "MemTotal: 1000 kB\n");
    put("proc/self/mountinfo",
        "32 24 0:28 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    put("proc/self/cgroup", "4:memory:/docker/abc\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "150000\n");
    ck_assert_uint_eq(probe().usable_bytes, 150000);
}
END_TEST

START_TEST(a_machine_that_does_not_say_its_memory_is_an_error)
{
    struct probe_machine m;
    struct err err = {0};

    put("proc/meminfo", "MemFree: 1 kB\n");
    ck_assert_int_eq(probe_machine(root, &m, &err), -ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "MemTotal"));
}
END_TEST

START_TEST(what_was_written_is_in_the_page_cache_until_it_is_cut_off)
{
    enum { BYTES = 300000 };
    static char text[BYTES];
    char path[128];

    memset(text, 'x', sizeof text);
    snprintf(path, sizeof path, "%s/cached", root);
    ck_assert_int_ge(file_replace(path, text, sizeof text, 0600, NULL), 0);
    for (int by_map = 0; by_map < 2; by_map++) {
        size_t bytes = probe_page_cache(path, by_map);

        ck_assert_uint_ge(bytes, BYTES);
        ck_assert_uint_lt(bytes, BYTES + 65536);
    }
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_assert_uint_eq(probe_page_cache(path, false), 0);
    ck_assert_uint_eq(probe_page_cache(path, true), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_uint_eq(probe_page_cache(path, false), 0);
}
END_TEST

START_TEST(this_process_and_machine_can_be_probed)
{
    struct probe_self self = {0};
    struct probe_machine m = {0};
    struct err err = {0};

    ck_assert_msg(probe_self(&self, &err) == 0, "%s", err.text);
    ck_assert_uint_gt(self.rss_bytes, self.anon_bytes);
    ck_assert_msg(probe_machine("", &m, &err) == 0, "%s", err.text);
    ck_assert_uint_gt(m.usable_bytes, self.rss_bytes);
}
END_TEST

TCase *tcase_memory_probe(void)
{
    TCase *tc = tcase_create("probe");

    tcase_add_checked_fixture(tc, make_root, remove_root);
    tcase_add_test(tc, without_cgroups_the_physical_memory_is_usable);
    tcase_add_test(tc, the_least_limit_up_a_v2_tree_counts);
    tcase_add_test(tc, a_v1_memory_hierarchy_counts_and_other_controllers_do_not);
    tcase_add_test(tc, a_container_whose_cgroup_is_the_mount_s_root_finds_its_limit);
    tcase_add_test(tc, a_machine_that_does_not_say_its_memory_is_an_error);
    tcase_add_test(tc, what_was_written_is_in_the_page_cache_until_it_is_cut_off);
    tcase_add_test(tc, this_process_and_machine_can_be_probed);
    return tc;
}
