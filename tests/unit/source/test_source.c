/* Goal: a source gives every row once, in order, whatever it reads from, and another one goes on
 * exactly behind what the offsets say; what is not the same any more is refused.
 * Method: a source is stopped after every possible batch (of one row) and its offsets given to
 * another one; together they must have given all rows. Files are made, renamed, cut and followed in
 * a folder of the test. */
#include "tempdir.h"
#include "test.h"
#include "torture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/text/text.h"
#include "source/file_reader.h"
#include "source/source.h"

typedef struct fixture {
    tarn_env *env;
    tarn_arena arena;
    char folder[64];
    tarn_error err;
    tarn_buf seen; /* "id," of every row, with -id for those that delete */
    tarn_buf rejects;
    source_options options;
    tarn_file_options file;
    char told[1024]; /* the last warning */
    int n_told;
} fixture;

static int on_reject(void *ctx, int64_t line, const char *raw, size_t raw_len, const char *reason) {
    fixture *f = ctx;
    return buf_printf(&f->rejects, &f->err, "%lld %.*s %s\n", (long long)line, (int)raw_len, raw,
                      reason) != TARN_OK;
}

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
    buf_init(&f->rejects, f->env, 0);
    test_tempdir(f->folder);
    f->file = none;
    f->file.batch_rows = 1;
    f->file.reject = on_reject;
    f->file.reject_ctx = f;
    f->options.file = &f->file;
    assert_int_equal(
        type_from_text(&f->arena, STR("struct<id: int, v: string>"), &f->options.root, &f->err),
        TARN_OK);
}

static void end(fixture *f) {
    test_tempdir_done(f->folder);
    buf_release(&f->seen);
    buf_release(&f->rejects);
    arena_release(&f->arena);
    test_env_done(f->env);
}

static const char *path_of(fixture *f, const char *name) {
    return arena_printf(&f->arena, "%s/%s", f->folder, name);
}

static const char *put(fixture *f, const char *name, const char *mode, const char *text) {
    const char *path = path_of(f, name);
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
    return path;
}

static void note_rows(fixture *f, const tarn_batch *batch, const uint8_t *kinds) {
    tarn_view id;
    int32_t at = 0;
    if (batch_rows(batch) == 0) {
        return;
    }
    while (!str_is(batch->type->fields[at].name, "id")) {
        at++;
    }
    view_column(batch, at, &id);
    for (int64_t i = 0; i < batch_rows(batch); i++) {
        int64_t value = id.type->kind == TARN_LONG ? ((const int64_t *)id.values)[i]
                                                   : ((const int32_t *)id.values)[i];
        bool gone = kinds != NULL && (kinds[i] == 1 || kinds[i] == 3);
        assert_int_equal(
            buf_printf(&f->seen, &f->err, "%s%lld,", gone ? "-" : "", (long long)value), TARN_OK);
    }
}

/* Reads at most n batches (-1: to the end, or until nothing comes in time); *offsets (may be NULL)
 * is where it stands then. */
static tarn_code read_some(fixture *f, const char *const *inputs, int32_t n_inputs,
                           const char *from, int64_t timeout, int n, const char **offsets) {
    tarn_code code = TARN_OK;
    row_source *s = NULL;
    tarn_batch batch;
    bool ended = false;
    tarn_buf text;
    buf_init(&text, f->env, 0);
    memset(&batch, 0, sizeof batch);
    TRY(source_open(f->env, inputs, n_inputs, &f->options, &s, &f->err));
    if (from != NULL) {
        TRY(source_seek(s, str_of(from), &f->err));
    }
    for (int i = 0; i != n && !ended; i++) {
        const uint8_t *kinds;
        TRY(source_next(s, timeout, &batch, &kinds, &ended, &f->err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        note_rows(f, &batch, kinds);
        batch_release(&batch);
    }
    TRY(source_put_offsets(s, &text, &f->err));
    if (offsets != NULL) {
        *offsets = arena_str(&f->arena, buf_str(&text)).data;
    }
done:
    batch_release(&batch);
    buf_release(&text);
    source_close(s);
    return code;
}

#define assert_reads(call)                                                                         \
    do {                                                                                           \
        if ((call) != TARN_OK) {                                                                   \
            fail_msg("%s (%s)", f.err.message, f.err.detail);                                      \
        }                                                                                          \
    } while (0)

static void seen_is(fixture *f, const char *want) {
    assert_int_equal(buf_append_char(&f->seen, '\0', &f->err), TARN_OK);
    assert_string_equal((const char *)f->seen.data, want);
    buf_reset(&f->seen);
}

/* Stopped after every number of batches, going on gives the rest. */
static void stop_anywhere(fixture *f, const char *const *inputs, int32_t n_inputs, int64_t timeout,
                          const char *all) {
    for (int n = 0;; n++) {
        const char *offsets = NULL;
        tarn_code code = read_some(f, inputs, n_inputs, NULL, timeout, n, &offsets);
        if (code == TARN_OK) {
            bool whole = f->seen.len == strlen(all);
            code = read_some(f, inputs, n_inputs, offsets, timeout, -1, NULL);
            seen_is(f, all);
            if (whole) {
                break;
            }
        }
        if (code != TARN_OK) {
            fail_msg("%s (%s)", f->err.message, f->err.detail);
        }
    }
}

static const char THREE[] = "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n";

static void files_go_on_after_any_batch(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    const char *inputs[] = {put(&f, "a.ndjson", "wb", THREE),
                            put(&f, "b.csv", "wb", "v,id\nx,4\n\"a\nb\",5\n"),
                            put(&f, "c.ndjson", "wb", "{\"id\":6}\n\n{\"id\":7}")};
    stop_anywhere(&f, inputs, 3, -1, "1,2,3,4,5,6,7,");
    f.options.grow = true; /* in pieces */
    stop_anywhere(&f, inputs, 3, -1, "1,2,3,4,5,6,7,");
    end(&f);
}

static void folders_give_each_file_once(void **state) {
    (void)state;
    fixture f;
    const char *offsets = NULL;
    begin(&f);
    put(&f, "b.ndjson", "wb", "{\"id\":3}\n{\"id\":4}\n");
    put(&f, "a.ndjson", "wb", "{\"id\":1}\n{\"id\":2}\n");
    put(&f, ".a.ndjson", "wb", "{\"id\":90}\n");
    put(&f, "_a.ndjson", "wb", "{\"id\":91}\n");
    put(&f, "a.ndjson.tmp", "wb", "{\"id\":92}\n");
    put(&f, "a.ndjson.part", "wb", "{\"id\":93}\n");
    const char *inputs[] = {f.folder};
    stop_anywhere(&f, inputs, 1, -1, "1,2,3,4,");
    assert_reads(read_some(&f, inputs, 1, NULL, -1, -1, &offsets));
    seen_is(&f, "1,2,3,4,");
    put(&f, "0.ndjson", "wb", "{\"id\":0}\n");
    assert_int_equal(unlink(path_of(&f, "b.ndjson")), 0);
    assert_reads(read_some(&f, inputs, 1, offsets, -1, -1, &offsets));
    seen_is(&f, "0,");
    assert_null(strstr(offsets, "b.ndjson")); /* what is gone is forgotten */
    f.options.follow = true;
    assert_reads(read_some(&f, inputs, 1, offsets, 0, -1, &offsets));
    put(&f, "z.ndjson", "wb", "{\"id\":9}\n");
    assert_reads(read_some(&f, inputs, 1, offsets, 0, -1, &offsets));
    seen_is(&f, "9,");
    end(&f);
}

/* What comes into a file later is not read, and that is told once, over restarts too. */
static void a_folders_file_that_grew_is_told(void **state) {
    (void)state;
    fixture f;
    const char *offsets = NULL;
    const char *inputs[] = {f.folder};
    begin(&f);
    f.options.follow = true;
    put(&f, "a.ndjson", "wb", "{\"id\":1}\n");
    put(&f, "b.ndjson", "wb", "{\"id\":2}\n");
    for (int again = 0; again < 2; again++) {
        assert_reads(read_some(&f, inputs, 1, offsets, 0, -1, &offsets));
        seen_is(&f, again ? "" : "1,2,");
    }
    assert_int_equal(f.n_told, 0);
    put(&f, "a.ndjson", "ab", "{\"id\":3}\n");
    for (int again = 0; again < 2; again++) {
        assert_reads(read_some(&f, inputs, 1, offsets, 0, -1, &offsets));
        seen_is(&f, "");
        assert_int_equal(f.n_told, 1);
    }
    assert_non_null(strstr(f.told, "a.ndjson has 18 bytes now and had 9"));
    assert_reads(read_some(&f, inputs, 1, /* offsets of a version that knew no sizes */
                           arena_printf(&f.arena,
                                        "{\"inputs\":[{\"path\":\"%s\",\"files-done\":"
                                        "[\"a.ndjson\",\"b.ndjson\"]}]}",
                                        f.folder),
                           0, -1, NULL));
    seen_is(&f, "");
    assert_int_equal(f.n_told, 1);
    end(&f);
}

/* Offsets are JSON, and names any bytes. */
static void names_that_are_no_text_are_known_again(void **state) {
    (void)state;
    fixture f;
    const char *offsets = NULL;
    begin(&f);
    const char *file[] = {put(&f, "b\xff.ndjson", "wb", "{\"id\":3}\n{\"id\":4}\n")};
    put(&f, "a\xc3(.ndjson", "wb", "{\"id\":1}\n{\"id\":2}\n");
    const char *inputs[] = {f.folder};
    stop_anywhere(&f, inputs, 1, -1, "1,2,3,4,");
    assert_reads(read_some(&f, inputs, 1, NULL, -1, -1, &offsets));
    seen_is(&f, "1,2,3,4,");
    assert_reads(read_some(&f, inputs, 1, offsets, -1, -1, &offsets));
    seen_is(&f, "");
    stop_anywhere(&f, file, 1, -1, "3,4,");
    assert_int_equal(read_some(&f, inputs, 1, "{\"inputs\":[{\"path\":[300]}]}", -1, -1, NULL),
                     TARN_INVALID);
    end(&f);
}

static void other_files_are_refused(void **state) {
    (void)state;
    fixture f;
    const char *offsets = NULL;
    begin(&f);
    const char *inputs[] = {put(&f, "a.ndjson", "wb", THREE)};
    assert_reads(read_some(&f, inputs, 1, NULL, -1, 2, &offsets));
    put(&f, "a.ndjson", "wb", "{\"id\":1}\n");
    assert_int_equal(read_some(&f, inputs, 1, offsets, -1, -1, NULL), TARN_INVALID);
    assert_non_null(strstr(f.err.message, "it is shorter"));
    put(&f, "a.ndjson", "wb", "{\"id\":7}\n{\"id\":2}\n{\"id\":3}\n");
    assert_int_equal(read_some(&f, inputs, 1, offsets, -1, -1, NULL), TARN_INVALID);
    assert_non_null(strstr(f.err.message, "does not begin as it did"));
    const char *others[] = {put(&f, "b.ndjson", "wb", THREE)};
    assert_int_equal(read_some(&f, others, 1, offsets, -1, -1, NULL), TARN_INVALID);
    assert_non_null(strstr(f.err.message, "of other inputs"));
    assert_int_equal(read_some(&f, others, 1, "{\"kafka\":{}}", -1, -1, NULL), TARN_INVALID);
    assert_int_equal(read_some(&f, others, 1, "[", -1, -1, NULL), TARN_CORRUPT);
    buf_reset(&f.seen);
    put(&f, "a.ndjson", "wb", THREE); /* and one that grew is read on */
    assert_reads(read_some(&f, inputs, 1, NULL, -1, -1, &offsets));
    put(&f, "a.ndjson", "ab", "{\"id\":4}\n");
    assert_reads(read_some(&f, inputs, 1, offsets, -1, -1, NULL));
    seen_is(&f, "1,2,3,4,");
    end(&f);
}

static void a_followed_file_waits_for_lines(void **state) {
    (void)state;
    fixture f;
    const char *offsets = NULL;
    begin(&f);
    f.options.follow = true;
    const char *inputs[] = {put(&f, "log", "wb", "{\"id\":1}\n{\"id\"")};
    f.file.format = "ndjson";
    assert_reads(read_some(&f, inputs, 1, NULL, 40, -1, &offsets));
    seen_is(&f, "1,");
    put(&f, "log", "ab", ":2}\n");
    assert_reads(read_some(&f, inputs, 1, offsets, 40, -1, &offsets));
    seen_is(&f, "2,");
    /* rotated while nobody looked: the old one first */
    put(&f, "log", "ab", "{\"id\":3}\n");
    assert_int_equal(rename(inputs[0], path_of(&f, "log.1")), 0);
    put(&f, "log", "wb", "{\"id\":4}\n");
    assert_reads(read_some(&f, inputs, 1, offsets, 40, -1, &offsets));
    seen_is(&f, "3,4,");
    stop_anywhere(&f, inputs, 1, 40, "4,");
    put(&f, "log", "wb", "");
    assert_int_equal(read_some(&f, inputs, 1, offsets, 40, -1, NULL), TARN_INVALID);
    end(&f);
}

static void a_file_is_rotated_while_it_is_followed(void **state) {
    (void)state;
    fixture f;
    row_source *s = NULL;
    tarn_batch batch;
    const uint8_t *kinds;
    bool ended;
    begin(&f);
    f.options.follow = true;
    f.file.format = "csv";
    const char *inputs[] = {put(&f, "log", "wb", "id,v\n1,a\n")};
    assert_reads(source_open(f.env, inputs, 1, &f.options, &s, &f.err));
    for (int i = 0; i < 12; i++) {
        if (i == 3) {
            put(&f, "log", "ab", "2,b\n");
            assert_int_equal(rename(inputs[0], path_of(&f, "log.1")), 0);
        }
        if (i == 6) {
            put(&f, "log.1", "ab", "3,c\n"); /* by whoever has it open still */
            put(&f, "log", "wb", "id,v\n4,d\n");
        }
        assert_reads(source_next(s, 30, &batch, &kinds, &ended, &f.err));
        assert_false(ended);
        note_rows(&f, &batch, kinds);
        batch_release(&batch);
    }
    seen_is(&f, "1,2,3,4,");
    source_close(s);
    end(&f);
}

static void pipes_are_read_as_they_come(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    const char *path = path_of(&f, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    const char *inputs[] = {path};
    for (int round = 0; round < 2; round++) {
        pid_t child = fork();
        if (child == 0) {
            FILE *pipe = fopen(path, "wb");
            bool ok = pipe != NULL &&
                      fputs("{\"id\":1,\"v\":\"0123456789012345678901234567890123456789\"}\n{"
                            "\"id\":2}\n{\"i",
                            pipe) >= 0 &&
                      fflush(pipe) == 0 && usleep(100000) == 0 && fputs("d\":3}\n", pipe) >= 0 &&
                      fclose(pipe) == 0;
            _exit(ok ? 0 : 1);
        }
        f.file.format = "ndjson";
        assert_reads(read_some(&f, inputs, 1, NULL, round == 0 ? 1000 : -1, -1, NULL));
        seen_is(&f, "1,2,3,");
    }
    end(&f);
}

static void what_a_file_holds_is_guessed_where_it_is_clear(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
        bool clear;
    } cases[] = {
        {"a", "id,v\n1,a\n", true},  {"b", "id\n1\n", true},      {"c", "{\"id\":1}\n", true},
        {"d", "<a>\n", false},       {"e", "[1]\n", false},       {"f", "some words\n", false},
        {"g", "id;v\n1;a\n", false}, {"h", "\001\002,\n", false}, {"i.csv", "id v\n", true}};
    fixture f;
    begin(&f);
    tarn_file_options o = TARN_FILE_OPTIONS_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file_kind kind;
        codec_kind codec;
        tarn_code code = file_kind_choose(str_of(cases[i].name), &o, str_of(cases[i].text), &kind,
                                          &codec, &f.err);
        assert_int_equal(code, cases[i].clear ? TARN_OK : TARN_INVALID);
        assert_true(cases[i].clear || strstr(f.err.message, "--format") != NULL);
        err_reset(&f.err);
    }
    end(&f);
}

static void an_empty_file_is_followed_until_it_says_what_it_is(void **state) {
    (void)state;
    fixture f;
    row_source *s;
    tarn_batch batch;
    const uint8_t *kinds;
    bool ended;
    begin(&f);
    f.options.follow = true;
    const char *inputs[] = {put(&f, "log", "wb", "")};
    assert_reads(source_open(f.env, inputs, 1, &f.options, &s, &f.err));
    assert_reads(source_next(s, 20, &batch, &kinds, &ended, &f.err));
    assert_false(ended);
    put(&f, "log", "ab", "{\"id\":1}\n");
    assert_reads(source_next(s, 10000, &batch, &kinds, &ended, &f.err));
    note_rows(&f, &batch, kinds);
    batch_release(&batch);
    seen_is(&f, "1,");
    source_close(s);
    end(&f);
}

/* What is read of a pipe with this text, from these offsets on. */
static tarn_code read_piped(fixture *f, const char *text, const char *from, int n,
                            const char **offsets) {
    const char *path = path_of(f, "pipe");
    const char *inputs[] = {path};
    pid_t child = fork();
    if (child == 0) {
        FILE *pipe = fopen(path, "wb");
        _exit(pipe != NULL && fputs(text, pipe) >= 0 && fclose(pipe) == 0 ? 0 : 1);
    }
    tarn_code code = read_some(f, inputs, 1, from, 10000, n, offsets);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return code;
}

static void a_pipe_is_known_again(void **state) {
    (void)state;
    fixture f;
    const char *part, *all, *again;
    begin(&f);
    assert_int_equal(mkfifo(path_of(&f, "pipe"), 0600), 0);
    f.file.format = "ndjson";
    f.file.batch_rows = 2;
    const char *text = "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n";
    assert_reads(read_piped(&f, text, NULL, 1, &part));
    seen_is(&f, "1,2,");
    assert_reads(read_piped(&f, text, part, -1, &all)); /* it was not read to its end */
    seen_is(&f, "3,4,");
    assert_int_equal(read_piped(&f, "{\"id\":7}\n{\"id\":8}\n", part, -1, NULL), TARN_INVALID);
    assert_non_null(strstr(f.err.message, "does not begin as"));
    assert_non_null(strstr(f.err.message, "another state folder"));
    assert_int_equal(read_piped(&f, "", part, -1, NULL), TARN_INVALID);
    seen_is(&f, "");
    assert_reads(read_piped(&f, text, all, -1, &all)); /* it was */
    assert_reads(read_piped(&f, "", all, -1, &all));
    seen_is(&f, "");
    assert_reads(read_piped(&f, "{\"id\":1}\n{\"id\":9}\n", all, -1, &again));
    seen_is(&f, "1,9,");
    assert_reads(read_piped(&f, "{\"id\":1}\n{\"id\":9}\n{\"id\":10}\n", again, -1, NULL));
    seen_is(&f, "10,");
    tarn_buf longer; /* it begins as the one before, for as long as that is looked at */
    buf_init(&longer, f.env, 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(buf_printf(&longer, &f.err, "{\"id\":%d}\n", 1000 + i), TARN_OK);
    }
    assert_int_equal(buf_append_char(&longer, '\0', &f.err), TARN_OK);
    assert_reads(read_piped(&f, (const char *)longer.data, NULL, -1, &all));
    buf_reset(&f.seen);
    assert_reads(read_piped(&f, (const char *)longer.data, all, -1, &all));
    seen_is(&f, "");
    longer.data[9000] = '9';
    assert_int_equal(read_piped(&f, (const char *)longer.data, all, -1, NULL), TARN_INVALID);
    assert_non_null(strstr(f.err.message, "are not the same"));
    seen_is(&f, "");
    buf_release(&longer);
    assert_reads(read_piped(&f, "", NULL, -1, &all));
    assert_reads(read_piped(&f, text, all, -1, NULL));
    seen_is(&f, "1,2,3,4,");
    end(&f);
}

/* Neither a writer that says nothing yet nor one that is not there holds the caller up. */
static void an_idle_pipe_is_not_waited_for(void **state) {
    (void)state;
    fixture f;
    row_source *s;
    tarn_batch batch;
    const uint8_t *kinds;
    bool ended;
    begin(&f);
    const char *inputs[] = {path_of(&f, "pipe")};
    assert_int_equal(mkfifo(inputs[0], 0600), 0);
    f.file.format = "ndjson";
    assert_reads(source_open(f.env, inputs, 1, &f.options, &s, &f.err));
    assert_reads(source_next(s, 20, &batch, &kinds, &ended, &f.err));
    assert_false(ended);
    int fd = open(inputs[0], O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_reads(source_next(s, 20, &batch, &kinds, &ended, &f.err));
    assert_false(ended);
    assert_int_equal(write(fd, "{\"id\":1}\n", 9), 9); /* too little to tell a format by */
    assert_reads(source_next(s, 10000, &batch, &kinds, &ended, &f.err));
    note_rows(&f, &batch, kinds);
    batch_release(&batch);
    seen_is(&f, "1,");
    assert_int_equal(close(fd), 0);
    assert_reads(source_next(s, 10000, &batch, &kinds, &ended, &f.err));
    assert_true(ended);
    assert_int_equal(source_taken(s), 9);
    source_close(s);
    end(&f);
}

static void a_column_of_kinds_is_taken_out(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    f.options.kind_column = "op";
    const char *inputs[] = {put(&f, "a.ndjson", "wb",
                                "{\"id\":1,\"op\":\"I\"}\n{\"op\":\"D\",\"id\":2}\n"
                                "{\"id\":3,\"op\":\"?\"}\n")};
    stop_anywhere(&f, inputs, 1, -1, "1,-2,");
    f.options.grow = true;
    stop_anywhere(&f, inputs, 1, -1, "1,-2,");
    buf_reset(&f.rejects);
    assert_reads(read_some(&f, inputs, 1, NULL, -1, -1, NULL));
    assert_non_null(strstr((const char *)f.rejects.data, "3 {\"id\":3,\"op\":\"?\"} column op:"));
    end(&f);
}

static void schemas_grow(void **state) {
    (void)state;
    fixture f;
    row_source *s = NULL;
    tarn_batch batch;
    const uint8_t *kinds;
    bool ended = false;
    tarn_buf shape;
    begin(&f);
    f.options.grow = true;
    buf_init(&shape, f.env, 0);
    const char *inputs[] = {put(&f, "a.ndjson", "wb",
                                "{\"id\":1}\n{\"id\":2,\"w\":{\"a\":1.5}}\nbad\n"
                                "{\"id\":3000000000,\"w\":{\"b\":true}}\n")};
    assert_reads(source_open(f.env, inputs, 1, &f.options, &s, &f.err));
    while (!ended) {
        assert_reads(source_next(s, -1, &batch, &kinds, &ended, &f.err));
        if (batch_rows(&batch) > 0) {
            note_rows(&f, &batch, kinds);
            buf_reset(&shape);
            assert_reads(type_text(batch.type, &shape, &f.err));
        }
        batch_release(&batch);
    }
    seen_is(&f, "1,2,3000000000,");
    assert_reads(buf_append_char(&shape, '\0', &f.err));
    assert_string_equal((const char *)shape.data,
                        "struct<id: long, v: string, w: struct<a: double, b: boolean>>");
    assert_int_equal(str_of((const char *)f.rejects.data).data[0], '3'); /* the bad line, once */
    buf_release(&shape);
    source_close(s);
    end(&f);
}

/* Every allocation of reading these inputs, sought and with a growing schema too, fails once. */
static void memory_runs_out(bool grow, const char *kind_column) {
    fixture f;
    const char *offsets = NULL;
    begin(&f);
    f.options.grow = grow;
    f.options.kind_column = kind_column;
    put(&f, "b.csv", "wb", "id,op,w\n4,I,x\n5,D,y\n");
    put(&f, "a.ndjson", "wb", "{\"id\":1,\"op\":\"I\"}\nbad\n{\"id\":2,\"op\":\"c\"}\n");
    const char *inputs[] = {f.folder};
    f.file.ignore_unknown = !grow;
    assert_reads(read_some(&f, inputs, 1, NULL, -1, 1, &offsets));
    tarn_env *env = f.env;
    for (int64_t k = 1;; k++) {
        test_memory memory = {0};
        f.env = test_env_memory(&memory);
        memory.fail_at = k;
        tarn_code code = read_some(&f, inputs, 1, offsets, -1, -1, NULL);
        bool struck = memory.fail_at == 0;
        test_env_done(f.env);
        buf_reset(&f.seen);
        buf_reset(&f.rejects);
        if (!struck) {
            f.env = env;
            assert_reads(code);
            break;
        }
        assert_int_equal(code, TARN_NOMEM);
    }
    end(&f);
}

static void memory_runs_out_anywhere(void **state) {
    (void)state;
    memory_runs_out(false, NULL);
    memory_runs_out(false, "op");
    memory_runs_out(true, "op");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_go_on_after_any_batch),
        cmocka_unit_test(folders_give_each_file_once),
        cmocka_unit_test(a_folders_file_that_grew_is_told),
        cmocka_unit_test(names_that_are_no_text_are_known_again),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(a_followed_file_waits_for_lines),
        cmocka_unit_test(a_file_is_rotated_while_it_is_followed),
        cmocka_unit_test(pipes_are_read_as_they_come),
        cmocka_unit_test(a_pipe_is_known_again),
        cmocka_unit_test(an_idle_pipe_is_not_waited_for),
        cmocka_unit_test(what_a_file_holds_is_guessed_where_it_is_clear),
        cmocka_unit_test(an_empty_file_is_followed_until_it_says_what_it_is),
        cmocka_unit_test(a_column_of_kinds_is_taken_out),
        cmocka_unit_test(schemas_grow),
        cmocka_unit_test(memory_runs_out_anywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
