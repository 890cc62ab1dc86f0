/* Goal: a followed file is read on over rotations and cuts, each row once and in order, whatever
 * happened between two looks; what may be lost is told, or refused until it is accepted.
 * Method: files of a folder are renamed, packed, copied and cut while a source reads, and while
 * none does; offsets go from one source to the next after every batch (of one row). Which file
 * comes next is checked on lists of names and times too. */
#include "tempdir.h"
#include "test.h"
#include "torture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/codec.h"
#include "format/text/text.h"
#include "source/rotated.h"
#include "source/source.h"

typedef struct fixture {
    tarn_env *env;
    tarn_arena arena;
    char folder[64];
    tarn_error err;
    tarn_buf seen; /* "id," of every row */
    const char *offsets;
    source_options options;
    tarn_file_options file;
    const char *log; /* the followed file */
    row_source *source;
    char told[1024]; /* the last warning */
    int n_told;
} fixture;

static void on_log(void *ctx, tarn_log_level level, const char *room, const char *event,
                   const char *text) {
    fixture *f = ctx;
    (void)room;
    (void)event;
    if (level == TARN_LOG_WARN) {
        (void)snprintf(f->told, sizeof f->told, "%s", text);
        f->n_told++;
    }
}

static const char *path_of(fixture *f, const char *name) {
    return arena_printf(&f->arena, "%s/%s", f->folder, name);
}

static void begin(fixture *f) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_file_options none = TARN_FILE_OPTIONS_INIT;
    tarn_error clean = TARN_ERROR_INIT;
    memset(f, 0, sizeof *f);
    f->err = clean;
    options.log = on_log;
    options.log_ctx = f;
    assert_int_equal(tarn_env_new(&options, &f->env, &f->err), TARN_OK);
    arena_init(&f->arena, f->env);
    buf_init(&f->seen, f->env, 0);
    test_tempdir(f->folder);
    f->file = none;
    f->file.batch_rows = 1;
    f->file.format = "ndjson";
    f->options.file = &f->file;
    f->options.follow = true;
    f->log = path_of(f, "app.log");
    assert_int_equal(type_from_text(&f->arena, STR("struct<id: int>"), &f->options.root, &f->err),
                     TARN_OK);
}

static void stop(fixture *f) {
    source_close(f->source);
    f->source = NULL;
}

static void end(fixture *f) {
    stop(f);
    test_tempdir_done(f->folder);
    buf_release(&f->seen);
    arena_release(&f->arena);
    test_env_done(f->env);
}

/* Appends (mode "ab"), or writes anew ("wb"), rows from..to of one width. */
static void put(fixture *f, const char *name, const char *mode, int from, int to) {
    FILE *file = fopen(path_of(f, name), mode);
    assert_non_null(file);
    for (int i = from; i <= to; i++) {
        assert_true(fprintf(file, "{\"id\":%d}\n", 100 + i) > 0);
    }
    assert_int_equal(fclose(file), 0);
}

static void move(fixture *f, const char *from, const char *to) {
    assert_int_equal(rename(path_of(f, from), path_of(f, to)), 0);
}

static void copy(fixture *f, const char *from, const char *to, codec_kind codec) {
    char bytes[4096];
    tarn_buf out;
    FILE *file = fopen(path_of(f, from), "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    assert_int_equal(fclose(file), 0);
    buf_init(&out, f->env, 0);
    codec_ctx ctx;
    codec_ctx_init(&ctx, f->env);
    assert_int_equal(
        codec_compress(&ctx, codec, CODEC_LEVEL_DEFAULT, str_make(bytes, n), &out, &f->err),
        TARN_OK);
    codec_ctx_release(&ctx);
    file = fopen(path_of(f, to), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(out.data, 1, out.len, file), out.len);
    assert_int_equal(fclose(file), 0);
    buf_release(&out);
}

/* As gzip does it: the time stays. */
static void pack(fixture *f, const char *name) {
    struct stat st;
    const char *to = arena_printf(&f->arena, "%s.gz", name);
    assert_int_equal(stat(path_of(f, name), &st), 0);
    copy(f, name, to, CODEC_GZIP);
    const struct timespec times[] = {st.st_mtim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path_of(f, to), times, 0), 0);
    assert_int_equal(unlink(path_of(f, name)), 0);
}

/* Reads n batches (-1: until nothing comes), and notes where it stands. */
static tarn_code look(fixture *f, int n) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    tarn_buf text;
    buf_init(&text, f->env, 0);
    memset(&batch, 0, sizeof batch);
    if (f->source == NULL) {
        TRY(source_open(f->env, &f->log, 1, &f->options, &f->source, &f->err));
        TRY(f->offsets != NULL ? source_seek(f->source, str_of(f->offsets), &f->err) : TARN_OK);
    }
    for (int i = 0; i != n; i++) {
        const uint8_t *kinds;
        bool ended;
        tarn_view id;
        TRY(source_next(f->source, n > 0 ? 20000 : 60, &batch, &kinds, &ended, &f->err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        view_column(&batch, 0, &id);
        TRY(buf_printf(&f->seen, &f->err, "%d,", ((const int32_t *)id.values)[0] - 100));
        batch_release(&batch);
    }
    TRY(source_put_offsets(f->source, &text, &f->err));
    f->offsets = arena_str(&f->arena, buf_str(&text)).data;
done:
    batch_release(&batch);
    buf_release(&text);
    return code;
}

static void reads(fixture *f, const char *want) {
    if (look(f, -1) != TARN_OK) {
        fail_msg("%s (%s)", f->err.message, f->err.detail);
    }
    assert_int_equal(buf_append_char(&f->seen, '\0', &f->err), TARN_OK);
    assert_string_equal((const char *)f->seen.data, want);
    buf_reset(&f->seen);
}

static void refuses(fixture *f, const char *word) {
    stop(f);
    assert_int_equal(look(f, -1), TARN_INVALID);
    if (strstr(f->err.message, word) == NULL || strstr(f->err.message, "--accept-gap") == NULL) {
        fail_msg("%s", f->err.message);
    }
    err_reset(&f->err);
    stop(f);
}

/* Another source for each of the rows. */
static void reads_by_steps(fixture *f, const char *want) {
    while (f->seen.len < strlen(want)) {
        stop(f);
        if (look(f, 1) != TARN_OK) {
            fail_msg("%s (%s)", f->err.message, f->err.detail);
        }
    }
    stop(f);
    reads(f, want);
}

/* ---- what comes next ---- */

typedef struct listed {
    const char *name;
    int64_t modified;
} listed;

/* The name of what comes behind at; its missing number with a "-" in front. */
static void next_is(const listed *files, int32_t n, int32_t at, const char *want, int64_t missing,
                    bool sure) {
    store_beside list_files[8];
    store_beside_list list = {list_files, n, STR("app.log"), STR("app.log"), -1};
    rotated_next next;
    for (int32_t i = 0; i < n; i++) {
        list_files[i] = (store_beside){
            files[i].name, str_of(files[i].name), (uint64_t)i + 1, 1, files[i].modified, 0};
        list.named = strcmp(files[i].name, "app.log") == 0 ? i : list.named;
    }
    rotated_find_next(&list, at, 5, &next);
    assert_string_equal(next.file >= 0 ? files[next.file].name : "", want);
    assert_int_equal(next.missing, missing);
    assert_true(missing < 0 || next.sure == sure);
}

static void names_and_times_say_what_comes_next(void **state) {
    (void)state;
    const listed counted[] = {{"app.log", 9},   {"app.log.1", 8},    {"app.log.2", 7},
                              {"app.log.3", 6}, {"app.log.3.gz", 6}, {"app.log.4.gz", 5},
                              {"app.log.x", 8}, {"app.log.lock", 8}};
    next_is(counted, 8, 5, "app.log.3", -1, false);
    next_is(counted, 8, 3, "app.log.2", -1, false);
    next_is(counted, 8, 1, "", -1, false);
    const listed upward[] = {
        {"app.log", 9}, {"app.log.9", 5}, {"app.log.10", 6}, {"app.log.11", 8}};
    next_is(upward, 4, 1, "app.log.10", -1, false);
    next_is(upward, 4, 3, "", -1, false);
    const listed ties[] = {{"app.log.1", 5}, {"app.log.2", 5}, {"app.log.3", 5}, {"app.log", 5}};
    next_is(ties, 4, 2, "app.log.2", -1, false);
    const listed dates[] = {{"app.log-20261129", 7}, {"app.log-20261130", 7}, {"app.log", 7}};
    next_is(dates, 3, 0, "app.log-20261130", -1, false);
    next_is(dates, 3, 1, "", -1, false);
    const listed inside[] = {{"app.1.log", 8}, {"app.2.log", 7}, {"app.log", 9}, {"app2.log", 8}};
    next_is(inside, 4, 1, "app.1.log", -1, false);
    const listed daily[] = {
        {"app.log.2026-11-30.2", 7}, {"app.log.2026-11-30.10", 8}, {"app.log.2026-11-29.1", 6}};
    next_is(daily, 3, 2, "app.log.2026-11-30.2", -1, false);
    next_is(daily, 3, 0, "app.log.2026-11-30.10", -1, false);
    const listed hole[] = {{"app.log", 9}, {"app.log.1", 8}, {"app.log.3", 6}, {"app.log.4", 5}};
    next_is(hole, 4, 2, "app.log.1", 2, true);
    const listed none[] = {{"app.log", 9}, {"app.log.3", 6}, {"app.log.4", 5}};
    next_is(none, 3, 1, "", 2, true);
    const listed repacked[] = {{"app.log", 9}, {"app.log.1", 7}, {"app.log.2.gz", 8}};
    next_is(repacked, 3, 1, "", -1, false); /* packed later, by what keeps no times */
    const listed alone[] = {{"app.log", 9}, {"app.log.3", 6}};
    next_is(alone, 2, 1, "", 2, false);
    next_is(counted, 8, -1, "app.log.3", -1, false); /* gone, and last written at 5 */
    const listed moved[] = {{"a.log", 6}, {"app.log.1", 7}, {"app.log.2", 5}, {"app.log", 8}};
    next_is(moved, 4, 0, "app.log.1", -1, false);
}

/* ---- rotation ---- */

static void rotate(fixture *f, int round, int style) {
    static const char *const names[][3] = {{"app.log.1", "app.log.2", "app.log.3"},
                                           {"app.1.log", "app.2.log", "app.3.log"}};
    if (style == 2) {
        move(f, "app.log", arena_printf(&f->arena, "app.log-202611%02d", round + 1));
        return;
    }
    for (int i = 2; i > 0; i--) {
        if (access(path_of(f, names[style][i - 1]), F_OK) == 0) {
            move(f, names[style][i - 1], names[style][i]);
        }
    }
    move(f, "app.log", names[style][0]);
}

static void rotate_often(bool running, int style) {
    fixture f;
    begin(&f);
    put(&f, "app.log", "wb", 1, 2);
    reads(&f, "1,2,");
    if (!running) {
        stop(&f);
    }
    put(&f, "app.log", "ab", 3, 3);
    for (int i = 0; i < 3; i++) {
        rotate(&f, i, style);
        put(&f, "app.log", "wb", 4 + 2 * i, 5 + 2 * i);
    }
    if (running) {
        reads(&f, "3,4,5,6,7,8,9,");
    } else {
        reads_by_steps(&f, "3,4,5,6,7,8,9,");
    }
    put(&f, "app.log", "ab", 10, 10);
    reads(&f, "10,");
    assert_int_equal(f.n_told, 0);
    end(&f);
}

static void files_between_are_read_in_order(void **state) {
    (void)state;
    for (int style = 0; style < 3; style++) {
        rotate_often(false, style);
        rotate_often(true, style);
    }
}

/* Also the file itself, in the middle of which reading stood. */
static void packed_files_are_read_through(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    put(&f, "app.log", "wb", 1, 4);
    assert_int_equal(look(&f, 2), TARN_OK);
    stop(&f);
    for (int i = 0; i < 2; i++) {
        rotate(&f, i, 0);
        put(&f, "app.log", "wb", 5 + 2 * i, 6 + 2 * i);
    }
    pack(&f, "app.log.2");
    pack(&f, "app.log.1");
    reads_by_steps(&f, "1,2,3,4,5,6,7,8,");
    move(&f, "app.log.2.gz", "app.log.3.gz");
    move(&f, "app.log.1.gz", "app.log.2.gz");
    stop(&f);
    move(&f, "app.log", "app.log.1");
    put(&f, "app.log.1.xz", "wb", 1, 1); /* it is there unpacked */
    put(&f, "app.log", "wb", 9, 9);
    reads(&f, "9,");
    stop(&f);
    move(&f, "app.log", "app.log-1");
    (void)usleep(20000); /* times of files are told apart */
    put(&f, "app.log-2.xz", "wb", 10, 10);
    put(&f, "app.log", "wb", 11, 11);
    assert_int_equal(unlink(path_of(&f, "app.log-1")), 0);
    f.options.accept_gap = true;
    assert_int_equal(look(&f, -1), TARN_UNSUPPORTED);
    assert_non_null(strstr(f.err.message, "app.log-2.xz"));
    end(&f);
}

/* Of texts that begin alike the one that was written next is it. */
static void short_texts_are_told_apart(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    put(&f, "app.log.2", "wb", 0, 1);
    (void)usleep(20000); /* times of files are told apart */
    put(&f, "app.log.1", "wb", 0, 2);
    (void)usleep(20000);
    put(&f, "app.log", "wb", 0, 0);
    reads(&f, "0,");
    stop(&f);
    put(&f, "app.log", "ab", 3, 3);
    for (int i = 0; i < 2; i++) {
        rotate(&f, i, 0);
        (void)usleep(20000);
        put(&f, "app.log", "wb", 0, 0);
        put(&f, "app.log", "ab", 4 + i, 4 + i);
    }
    pack(&f, "app.log.2");
    reads(&f, "3,0,4,0,5,");
    assert_int_equal(f.n_told, 0);
    end(&f);
}

/* An inode may come again: nothing was read of the one that it was of. */
static void another_file_with_its_inode_is_not_it(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    put(&f, "app.log", "wb", 1, 0);
    reads(&f, "");
    stop(&f);
    put(&f, "app.log", "ab", 1, 1);
    move(&f, "app.log", "app.log.1");
    pack(&f, "app.log.1");
    (void)usleep(20000);
    put(&f, "app.log", "wb", 2, 2);
    refuses(&f, "rows may be lost");
    f.options.accept_gap = true;
    reads(&f, "1,2,");
    end(&f);
}

/* Its inode is where the link leads. */
static void a_links_file_is_rotated(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    assert_int_equal(mkdir(path_of(&f, "pods"), 0700), 0);
    assert_int_equal(symlink("pods/0.log", f.log), 0);
    put(&f, "pods/0.log", "wb", 1, 2);
    reads(&f, "1,2,");
    stop(&f);
    put(&f, "pods/0.log", "ab", 3, 3);
    move(&f, "pods/0.log", "pods/0.log.20261129-101500");
    put(&f, "pods/0.log", "wb", 4, 4);
    move(&f, "pods/0.log", "pods/0.log.20261130-101500");
    put(&f, "pods/0.log", "wb", 5, 5);
    reads(&f, "3,4,5,");
    assert_int_equal(f.n_told, 0);
    end(&f);
}

/* The next one is there and empty: whoever has the old one open writes on. */
static void late_rows_are_waited_for(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    put(&f, "app.log", "wb", 1, 1);
    reads(&f, "1,");
    move(&f, "app.log", "app.log.1");
    put(&f, "app.log", "wb", 1, 0);
    reads(&f, "");
    put(&f, "app.log.1", "ab", 2, 2);
    reads(&f, "2,");
    put(&f, "app.log", "ab", 3, 3);
    reads(&f, "3,");
    assert_int_equal(f.n_told, 0);
    end(&f);
}

/* Read to its end, renamed, and nothing in its place: it is known on. */
static void what_was_read_is_known_until_the_next_is_there(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    put(&f, "app.log", "wb", 1, 1);
    reads(&f, "1,");
    move(&f, "app.log", "app.log.1");
    reads(&f, "");
    stop(&f);
    put(&f, "app.log", "wb", 2, 2);
    rotate(&f, 0, 0);
    put(&f, "app.log", "wb", 3, 3);
    reads(&f, "2,3,");
    end(&f);
}

/* ---- cuts ---- */

static void a_file_that_was_cut_is_begun_again(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    put(&f, "app.log", "wb", 1, 3);
    reads(&f, "1,2,3,");
    put(&f, "app.log", "wb", 4, 9); /* and is longer at the next look */
    reads(&f, "4,5,6,7,8,9,");
    assert_int_equal(f.n_told, 1);
    assert_non_null(strstr(f.told, "was cut"));
    put(&f, "app.log", "wb", 1, 0);
    reads(&f, "");
    put(&f, "app.log", "ab", 10, 11);
    reads(&f, "10,11,");
    stop(&f);
    put(&f, "app.log", "ab", 12, 12);
    move(&f, "app.log", "app.log.1");
    put(&f, "app.log", "wb", 13, 13);
    reads(&f, "12,13,");
    end(&f);
}

/* Copied, then cut: the copy has what was not read. */
static void copies_are_read_on(void **state) {
    (void)state;
    for (int running = 0; running < 2; running++) {
        fixture f;
        begin(&f);
        put(&f, "app.log", "wb", 1, 3);
        reads(&f, "1,2,3,");
        if (!running) {
            stop(&f);
        }
        put(&f, "app.log", "ab", 4, 4);
        copy(&f, "app.log", "app.log.2", CODEC_NONE);
        put(&f, "app.log", "wb", 5, 6);
        copy(&f, "app.log", "app.log.1", CODEC_NONE);
        put(&f, "app.log", "wb", 7, 7);
        if (running) {
            (void)look(&f, -1);
            reads(&f, "4,5,6,7,");
        } else {
            reads_by_steps(&f, "4,5,6,7,");
        }
        assert_int_equal(f.n_told, 0);
        end(&f);
    }
}

/* ---- gaps ---- */

static void gaps_are_refused_or_told(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    put(&f, "app.log.2", "wb", 90, 90);
    put(&f, "app.log.1", "wb", 91, 91);
    put(&f, "app.log", "wb", 1, 2);
    reads(&f, "1,2,");
    stop(&f);
    for (int i = 0; i < 4; i++) {
        (void)usleep(20000); /* times of files are told apart */
        rotate(&f, i, 0);
        put(&f, "app.log", "wb", 3 + i, 3 + i);
    }
    refuses(&f, "rows may be lost"); /* its place was the fourth: a new file may have its inode */
    f.options.accept_gap = true;
    reads(&f, "3,4,5,6,");
    assert_int_equal(f.n_told, 1);
    assert_non_null(strstr(f.told, "rows may be lost"));
    /* the file is there, the next is not */
    f.options.accept_gap = false;
    stop(&f);
    for (int i = 0; i < 3; i++) {
        (void)usleep(20000);
        rotate(&f, i, 0);
        put(&f, "app.log", "wb", 7 + i, 7 + i);
    }
    assert_int_equal(unlink(path_of(&f, "app.log.2")), 0);
    refuses(&f, "of number 2");
    f.options.accept_gap = true;
    reads(&f, "8,9,");
    assert_int_equal(f.n_told, 2);
    /* cut, and no copy */
    f.options.accept_gap = false;
    stop(&f);
    put(&f, "app.log", "wb", 1, 0);
    refuses(&f, "was cut or replaced");
    f.options.accept_gap = true;
    put(&f, "app.log", "ab", 10, 10);
    reads(&f, "10,");
    assert_int_equal(f.n_told, 3);
    end(&f);
}

/* It was read to its end while it was followed. */
static void a_file_that_goes_is_told(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    put(&f, "app.log", "wb", 1, 1);
    reads(&f, "1,");
    put(&f, "app.log", "ab", 2, 2);
    assert_int_equal(unlink(f.log), 0);
    reads(&f, "2,");
    assert_int_equal(f.n_told, 0);
    put(&f, "app.log", "wb", 1, 3); /* begins as the other one did, and is not it */
    reads(&f, "1,2,3,");
    assert_int_equal(f.n_told, 1);
    assert_non_null(strstr(f.told, "is gone"));
    end(&f);
}

/* ---- offsets of versions before ---- */

static void older_offsets_are_read(void **state) {
    (void)state;
    fixture f;
    struct stat st;
    begin(&f);
    put(&f, "app.log", "wb", 1, 3);
    assert_int_equal(stat(f.log, &st), 0);
    f.offsets = arena_printf(&f.arena,
                             "{\"inputs\":[{\"path\":\"%s\",\"inode\":%lld,\"bytes\":22,"
                             "\"lines\":2}]}",
                             f.log, (long long)st.st_ino);
    rotate(&f, 0, 0);
    put(&f, "app.log", "wb", 4, 4);
    rotate(&f, 1, 0);
    put(&f, "app.log", "wb", 5, 5);
    reads(&f, "3,4,5,");
    end(&f);
}

/* Every allocation of finding the file again, and of those behind it, fails once. */
static void memory_runs_out_anywhere(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    put(&f, "app.log", "wb", 1, 2);
    reads(&f, "1,2,");
    stop(&f);
    const char *offsets = f.offsets;
    put(&f, "app.log", "ab", 3, 3);
    rotate(&f, 0, 0);
    put(&f, "app.log", "wb", 4, 4);
    rotate(&f, 1, 0);
    pack(&f, "app.log.2");
    put(&f, "app.log", "wb", 5, 5);
    tarn_env *env = f.env;
    for (int64_t k = 1;; k++) {
        test_memory memory = {0};
        f.env = test_env_memory(&memory);
        memory.fail_at = k;
        f.offsets = offsets;
        tarn_code code = look(&f, 3);
        bool struck = memory.fail_at == 0;
        stop(&f);
        test_env_done(f.env);
        f.env = env;
        if (!struck) {
            assert_int_equal(code, TARN_OK);
            break;
        }
        assert_int_equal(code, TARN_NOMEM);
        buf_reset(&f.seen);
        err_reset(&f.err);
    }
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_times_say_what_comes_next),
        cmocka_unit_test(files_between_are_read_in_order),
        cmocka_unit_test(packed_files_are_read_through),
        cmocka_unit_test(short_texts_are_told_apart),
        cmocka_unit_test(another_file_with_its_inode_is_not_it),
        cmocka_unit_test(a_links_file_is_rotated),
        cmocka_unit_test(late_rows_are_waited_for),
        cmocka_unit_test(what_was_read_is_known_until_the_next_is_there),
        cmocka_unit_test(a_file_that_was_cut_is_begun_again),
        cmocka_unit_test(copies_are_read_on),
        cmocka_unit_test(gaps_are_refused_or_told),
        cmocka_unit_test(a_file_that_goes_is_told),
        cmocka_unit_test(older_offsets_are_read),
        cmocka_unit_test(memory_runs_out_anywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
