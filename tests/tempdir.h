/* tests/tempdir.h - a fresh folder for one test, removed with all that is in it. */
#ifndef TARN_TEST_TEMPDIR_H
#define TARN_TEST_TEMPDIR_H

#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* path needs 64 bytes. */
static inline void test_tempdir(char path[64]) {
    const char *base = getenv("TMPDIR");
    (void)snprintf(path, 64, "%s/tarn-test-XXXXXX",
                   base != NULL && strlen(base) < 40 ? base : "/tmp");
    assert_non_null(mkdtemp(path));
}

/* Removes a file, or a folder with all that is in it; links are removed, not followed. */
static inline void test_tempdir_done(const char *path) {
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    if (!S_ISDIR(st.st_mode)) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    (void)chmod(path, 0700);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            char below[4096];
            int n = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
            assert_true(n > 0 && n < (int)sizeof below);
            test_tempdir_done(below);
        }
    }
    (void)closedir(dir);
    assert_int_equal(rmdir(path), 0);
}

#endif
