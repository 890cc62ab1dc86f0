/* tests/torture/sink_flows.h - fixed streams into a sink with a state, and a job that goes on from
 * where the sink says to the end. */
#ifndef TARN_TEST_SINK_FLOWS_H
#define TARN_TEST_SINK_FLOWS_H

#include "sink_case.h"

#define BATCHES 6

typedef struct flow {
    const char *name;
    int32_t version;
    const char *deletes; /* NULL: appends */
    const char *lines[BATCHES];
    const uint8_t *kinds[BATCHES];
    const char *end;
    bool shared; /* no state: the table keeps the offsets */
    bool behind; /* committed behind the stream, and a checkpoint every batch */
} flow;

#define R(id, v) "{\"id\":" #id ",\"v\":" #v "}\n"

static const uint8_t INSERT_DELETE_INSERT[] = {0, 3, 0};
static const uint8_t DELETES[] = {3, 3};

#define CHANGES                                                                                    \
    {R(1, 1) R(2, 1) R(3, 1), R(2, 2) R(4, 1), R(3, 2) R(3, 2) R(3, 3),                            \
     R(1, 2) R(5, 1),         R(4, 1) R(9, 9), R(2, 3)},                                           \
        {NULL, NULL, INSERT_DELETE_INSERT, NULL, DELETES, NULL}, R(1, 2) R(2, 3) R(3, 3) R(5, 1)

static const flow FLOWS[] = {
    {"append",
     2,
     NULL,
     {R(1, 1), R(2, 1), R(3, 1), R(4, 1), R(5, 1), R(6, 1)},
     {0},
     R(1, 1) R(2, 1) R(3, 1) R(4, 1) R(5, 1) R(6, 1),
     false,
     false},
    {"equality", 2, "equality", CHANGES, false, false},
    {"position", 2, "position", CHANGES, false, false},
    {"vector", 3, "vector", CHANGES, false, false},
    {"append, shared",
     2,
     NULL,
     {R(1, 1), R(2, 1), R(3, 1), R(4, 1), R(5, 1), R(6, 1)},
     {0},
     R(1, 1) R(2, 1) R(3, 1) R(4, 1) R(5, 1) R(6, 1),
     true,
     false},
    {"equality, shared", 2, "equality", CHANGES, true, false},
    {"position, behind", 2, "position", CHANGES, false, true},
    {"vector, behind", 3, "vector", CHANGES, false, true},
};

static inline void start_flow(sink_case *t, tarn_env *env, case_kind kind, const flow *f) {
    static const char *const properties[] = {"commit.retry.min-wait-ms", "1", NULL};
    static const tarn_str key = {"id", 2};
    sink_case_init(t, env, kind);
    case_table(&t->c, f->version, "id int not null, v int", NULL, properties);
    t->options.memory_bytes = 4 << 20;
    if (f->deletes != NULL) {
        t->options.key = &key;
        t->options.n_key = 1;
        t->options.upsert = true;
        t->options.deletes = str_of(f->deletes);
    }
    t->options.background = f->behind;
    if (f->shared) {
        t->options.state_dir = STR_NULL;
        t->options.shared_offsets = STR("s");
    }
}

/* Where the stream stands; -1: at its beginning, and nothing says so. */
static inline tarn_code read_offset(sink_case *t, const flow *f, int64_t *at, tarn_error *e) {
    tarn_code code = TARN_OK;
    tarn_buf text;
    tarn_str offsets = sink_offsets(t->sink);
    buf_init(&text, t->c.env, 0);
    *at = -1;
    if (f->shared) {
        TRY(sink_shared_offsets(t->sink, &text, e));
        offsets = buf_str(&text);
        if (offsets.len > 0) {
            assert_true(str_starts_with(offsets, STR("{\"p\":")));
            offsets = str_sub(offsets, 5, offsets.len - 6);
        }
    }
    if (offsets.len > 0) {
        assert_true(str_to_i64(offsets, at));
    }
done:
    buf_release(&text);
    return code;
}

/* From where the sink says to the end. */
static inline tarn_code run_job(sink_case *t, const flow *f, tarn_error *e) {
    tarn_code code = TARN_OK;
    int64_t at = 0;
    TRY(sink_case_open(t, e));
    TRY(read_offset(t, f, &at, e));
    for (int64_t i = at > 0 ? at : 0; i < BATCHES; i++) {
        TRY(sink_case_write(t, f->lines[i], f->kinds[i], e));
        if (i % 2 == 1 || f->behind) {
            char text[64];
            if (f->shared) {
                (void)snprintf(text, sizeof text, "{\"p\":[%lld,%lld]}", (long long)at,
                               (long long)i + 1);
            } else {
                (void)snprintf(text, sizeof text, "%lld", (long long)i + 1);
            }
            at = i + 1;
            TRY(f->behind ? sink_push(t->sink, text, e) : sink_case_checkpoint(t, text, e));
        }
    }
    if (f->behind) {
        sink_progress progress;
        code = sink_flush(t->sink, &progress, e);
        table_version_release(progress.commit.version);
    }
done:
    sink_case_close(t);
    return code;
}

static inline void finish_flow(sink_case *t, const flow *f) {
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(run_job(t, f, &err));
    sink_case_rows_are(t, f->end);
    (void)case_count_orphans(&t->c, (char[256]){0}); /* all that is named is there */
}

#endif
