/* Goal: pruning and evolution never change what a scan gives.
 * Method: tables grow by random appends between schema, partition and format changes; a model keeps
 * every row. The whole scan must be the model's rows as the schema now shows them; each random
 * filter must give what it gives on the model's rows, with pruning and without; every old snapshot
 * must still give what it gave, also where the table's folder was moved. Seeds are fixed. */
#include "table_rows.h"

#include "iceberg/evolve.h"

static tarn_error err;

#define MAX_ROWS 3000

typedef struct model_row { /* -1: null */
    int32_t id, i, s, d, day, hour, a, b, x, flag, e, c;
} model_row;

typedef struct model {
    table_case c;
    uint64_t seed;
    model_row rows[MAX_ROWS];
    int32_t n_rows;
    bool dropped_s, has_e, has_c, s_again;
    const char *i_name;
    /* what each snapshot showed */
    int64_t snapshots[16];
    char *shown[16];
    int32_t n_snapshots;
} model;

static uint32_t chance(model *m, uint32_t below) {
    m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(m->seed >> 33) % below;
}

static int32_t maybe(model *m, uint32_t below) {
    return chance(m, 8) == 0 ? -1 : (int32_t)chance(m, below);
}

/* ---- rows ---- */

static void put(tarn_buf *out, const char *fmt, ...) {
    char text[128];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    assert_ok(buf_append(out, text, (size_t)n, &err));
}

static void put_member(tarn_buf *out, const char *name, int32_t v, const char *fmt, int32_t a,
                       int32_t b) {
    char text[64];
    (void)snprintf(text, sizeof text, fmt, (int)a, (int)b);
    put(out, ",\"%s\":%s", name, v < 0 ? "null" : text);
}

static void put_row(const model *m, const model_row *r, tarn_buf *out) {
    put(out, "{\"id\":%d", (int)r->id);
    put_member(out, m->i_name, r->i, "%d", r->i - 20, 0);
    if (!m->dropped_s || m->s_again) {
        put_member(out, "s", m->dropped_s ? -1 : r->s, r->s == 0 ? "\"\"" : "\"s%02d\"", r->s, 0);
    }
    put_member(out, "d", r->d, "%d.%d", r->d - 10, r->d % 2 == 0 ? 0 : 5);
    put_member(out, "day", r->day, "\"2020-%02d-%02d\"", r->day / 28 % 3 + 1, r->day % 28 + 1);
    put_member(out, "at", r->hour, "\"1969-12-31T%02d:%02d:00\"", r->hour % 24, r->hour % 60);
    put_member(out, "x", r->x, "\"%d.%02d\"", r->x - 5, r->x);
    put_member(out, "flag", r->flag, r->flag == 0 ? "false" : "true", 0, 0);
    put(out, ",\"n\":");
    if (r->a < 0 && r->b < 0) {
        put(out, "null");
    } else {
        put(out, "{\"a\":");
        put(out, r->a < 0 ? "null" : "%d", (int)r->a);
        put_member(out, "b", r->b, "\"b%d\"", r->b, 0);
        if (m->has_c) {
            put_member(out, "c", r->c, "%d", r->c, 0);
        }
        put(out, "}");
    }
    if (m->has_e) {
        put_member(out, "e", r->e, "%d", r->e, 0);
    }
    put(out, "}\n");
}

static void add_rows(model *m, int32_t n, tarn_buf *lines) {
    bool sorted = chance(m, 2) == 0;
    for (int32_t k = 0; k < n; k++) {
        model_row *r = &m->rows[m->n_rows];
        *r = (model_row){.id = m->n_rows,
                         .i = maybe(m, 40),
                         .s = maybe(m, 12),
                         .d = maybe(m, 20),
                         .day = sorted ? k * 60 / n : maybe(m, 84),
                         .hour = maybe(m, 24),
                         .a = maybe(m, 5),
                         .b = maybe(m, 5),
                         .x = maybe(m, 30),
                         .flag = maybe(m, 2),
                         .e = m->has_e ? maybe(m, 6) : -1,
                         .c = m->has_c ? maybe(m, 6) : -1};
        if (m->dropped_s && !m->s_again) {
            r->s = -1;
        }
        m->n_rows++;
        put_row(m, r, lines);
    }
}

static void set_property(model *m, const char *key, const char *value);

static void append_rows(model *m) {
    tarn_buf lines;
    buf_init(&lines, m->c.env, 0);
    set_property(m, "write.format.default", chance(m, 3) == 0 ? "avro" : "parquet");
    add_rows(m, 150 + (int32_t)chance(m, 150), &lines);
    assert_ok(buf_append_char(&lines, '\0', &err));
    case_append(&m->c, (const char *)lines.data);
    buf_release(&lines);
}

/* The model's rows as a batch of the current schema; lines of it in out. */
static void model_batch(model *m, const tarn_type *root, tarn_arena *arena, tarn_batch *out) {
    tarn_buf lines;
    buf_init(&lines, m->c.env, 0);
    for (int32_t k = 0; k < m->n_rows; k++) {
        put_row(m, &m->rows[k], &lines);
    }
    assert_ok(buf_append_char(&lines, '\0', &err));
    assert_ok(rows_read(m->c.env, arena, root, (const char *)lines.data, out, &err));
    buf_release(&lines);
}

static char *sorted_rows(tarn_arena *arena, const tarn_batch *batch) {
    tarn_buf buf;
    buf_init(&buf, arena->env, 0);
    assert_ok(rows_write(batch, &buf, &err));
    char *text = case_sorted(arena, buf_str(&buf));
    buf_release(&buf);
    return text;
}

static char *scan_rows(model *m, tarn_arena *arena, scan_options *options, const char *where,
                       scan_counters *counters) {
    tarn_buf buf;
    buf_init(&buf, m->c.env, 0);
    assert_ok(case_scan(&m->c, options, where, &buf, counters, &err));
    char *text = case_sorted(arena, buf_str(&buf));
    buf_release(&buf);
    return text;
}

/* ---- changes ---- */

typedef struct edit_ctx {
    tarn_edit edit;
    tarn_property property;
    tarn_change change;
} edit_ctx;

static tarn_code make_edit(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                           tarn_change_set *out, tarn_error *e) {
    edit_ctx *c = ctx;
    if (c->property.key.len == 0) {
        return evolve_changes(arena, base, &c->edit, 1, out, e);
    }
    memset(out, 0, sizeof *out);
    c->change.kind = CHANGE_SET_PROPERTIES;
    c->change.properties = (tarn_properties){1, &c->property};
    out->changes = &c->change;
    out->n_changes = 1;
    return TARN_OK;
}

static void change_table(model *m, edit_ctx *ctx) {
    commit_outcome outcome;
    assert_ok(commit_changes(m->c.env, m->c.catalog, &m->c.ident, make_edit, ctx, &outcome, &err));
    table_version_release(outcome.version);
}

static void set_property(model *m, const char *key, const char *value) {
    edit_ctx ctx = {.property = {str_of(key), str_of(value)}};
    change_table(m, &ctx);
}

static void edit(model *m, tarn_edit e) {
    edit_ctx ctx = {.edit = e};
    change_table(m, &ctx);
}

static void evolve_step(model *m, int step) {
    switch (step) {
    case 1:
        edit(m, (tarn_edit){
                    .kind = EVOLVE_ADD_COLUMN, .path = STR("e"), .type = type_primitive(TARN_INT)});
        m->has_e = true;
        break;
    case 2:
        edit(m, (tarn_edit){.kind = EVOLVE_RENAME_COLUMN, .path = STR("i"), .new_name = STR("j")});
        edit(m, (tarn_edit){.kind = EVOLVE_UPDATE_TYPE,
                            .path = STR("j"),
                            .type = type_primitive(TARN_LONG)});
        m->i_name = "j";
        break;
    case 3:
        edit(m, (tarn_edit){.kind = EVOLVE_ADD_COLUMN,
                            .path = STR("n.c"),
                            .type = type_primitive(TARN_LONG)});
        edit(m, (tarn_edit){.kind = EVOLVE_MOVE_FIRST, .path = STR("flag")});
        m->has_c = true;
        break;
    case 4:
        edit(m, (tarn_edit){.kind = EVOLVE_SET_PARTITION, .text = STR("day(at)")});
        edit(m, (tarn_edit){.kind = EVOLVE_DROP_COLUMN, .path = STR("s")});
        m->dropped_s = true;
        break;
    case 5: /* the same name again is another column */
        edit(m, (tarn_edit){.kind = EVOLVE_ADD_COLUMN,
                            .path = STR("s"),
                            .type = type_primitive(TARN_STRING)});
        m->s_again = true;
        break;
    default:
        break;
    }
}

static void repartition(model *m) {
    static const char *const SPECS[] = {"bucket(3, id)",
                                        "truncate(10, %s)",
                                        "month(day)",
                                        "day(at)",
                                        "hour(at), flag",
                                        "n.a",
                                        "day, n.b",
                                        "year(day)",
                                        "truncate(4, x)",
                                        "d",
                                        ""};
    char text[64];
    (void)snprintf(text, sizeof text, SPECS[chance(m, sizeof SPECS / sizeof *SPECS)], m->i_name);
    edit(m, (tarn_edit){.kind = EVOLVE_SET_PARTITION, .text = str_of(text)});
}

/* ---- filters ---- */

static void put_literal(model *m, const char *column, char *out, size_t cap) {
    int v = (int)chance(m, 40);
    if (strcmp(column, "s") == 0) {
        (void)snprintf(out, cap, v % 13 == 0 ? "''" : "'s%02d'", v % 13);
    } else if (strcmp(column, "n.b") == 0) {
        (void)snprintf(out, cap, "'b%d'", v % 6);
    } else if (strcmp(column, "day") == 0) {
        (void)snprintf(out, cap, "date '2020-%02d-%02d'", v % 3 + 1, v % 28 + 1);
    } else if (strcmp(column, "at") == 0) {
        (void)snprintf(out, cap, "timestamp '1969-12-31T%02d:%02d:00'", v % 24, v % 60);
    } else if (strcmp(column, "x") == 0 || strcmp(column, "d") == 0) {
        (void)snprintf(out, cap, "%d.%s", v % 30 - 5, v % 2 == 0 ? "5" : "0");
    } else if (strcmp(column, "flag") == 0) {
        (void)snprintf(out, cap, v % 2 == 0 ? "true" : "false");
    } else {
        (void)snprintf(out, cap, "%d", strcmp(column, "id") == 0 ? v * m->n_rows / 40 : v - 20);
    }
}

static void put_predicate(model *m, char *out, size_t cap) {
    static const char *const OPS[] = {"=", "<>", "<", "<=", ">", ">="};
    const char *columns[] = {"id",  m->i_name, "d",    "day", "at", "x",
                             "n.a", "n.b",     "flag", "s",   "e"};
    uint32_t n = !m->dropped_s || m->s_again ? 10 : 9;
    uint32_t pick = chance(m, n + (m->has_e && n == 10));
    const char *column = columns[pick];
    char a[64], b[64];
    put_literal(m, column, a, sizeof a);
    put_literal(m, column, b, sizeof b);
    switch (chance(m, 8)) {
    case 0:
        (void)snprintf(out, cap, "%s is null", column);
        break;
    case 1:
        (void)snprintf(out, cap, "%s is not null", column);
        break;
    case 2:
        (void)snprintf(out, cap, "%s %sin (%s, %s)", column, chance(m, 2) == 0 ? "not " : "", a, b);
        break;
    case 3:
        if (strcmp(column, "s") == 0 || strcmp(column, "n.b") == 0) {
            (void)snprintf(out, cap, "%s %slike '%s'", column, chance(m, 2) == 0 ? "not " : "",
                           chance(m, 2) == 0 ? "s0%" : "b%");
            break;
        }
        /* fall through */
    default:
        (void)snprintf(out, cap, "%s %s %s", column, OPS[chance(m, 6)], a);
        break;
    }
}

static void put_filter(model *m, int depth, char *out, size_t cap) {
    uint32_t kind = depth == 0 ? 9 : chance(m, 10);
    if (kind >= 6) {
        put_predicate(m, out, cap);
        return;
    }
    char left[400], right[400];
    put_filter(m, depth - 1, left, sizeof left);
    put_filter(m, depth - 1, right, sizeof right);
    if (kind == 0) {
        (void)snprintf(out, cap, "not (%s)", left);
    } else {
        (void)snprintf(out, cap, "(%s) %s (%s)", left, kind < 4 ? "and" : "or", right);
    }
}

/* ---- checks ---- */

static void check_equal(const char *what, const char *got, const char *want) {
    if (strcmp(got, want) != 0) {
        size_t at = 0;
        while (got[at] == want[at]) {
            at++;
        }
        while (at > 0 && got[at - 1] != '\n') {
            at--;
        }
        fail_msg("%s: got %.200s, wanted %.200s", what, got + at, want + at);
    }
}

static char *filtered(model *m, tarn_arena *arena, const tarn_batch *batch, const char *where) {
    const tarn_expr *parsed, *bound;
    tarn_batch kept;
    memset(&kept, 0, sizeof kept);
    uint8_t *selection = arena_calloc(arena, bit_bytes(batch_rows(batch)) + 8, 1);
    assert_ok(expr_parse(arena, str_of(where), &parsed, &err));
    assert_ok(expr_bind(arena, parsed, batch->type, true, &bound, &err));
    assert_ok(expr_eval(m->c.env, bound, batch, selection, NULL, &err));
    assert_ok(batch_filter(m->c.env, batch, selection, &kept, &err));
    char *text = sorted_rows(arena, &kept);
    batch_release(&kept);
    return text;
}

static void check_filters(model *m, const tarn_batch *batch, int n, scan_counters *saved) {
    for (int k = 0; k < n; k++) {
        tarn_arena arena;
        char where[1000];
        scan_counters counters;
        scan_options options = case_scan_options();
        const tarn_str narrow[] = {STR("n.b"), STR("id")};
        arena_init(&arena, m->c.env);
        put_filter(m, 2, where, sizeof where);
        char *want = filtered(m, &arena, batch, where);
        check_equal(where, scan_rows(m, &arena, &options, where, &counters), want);
        saved->files_skipped += counters.files_skipped;
        saved->manifests_skipped += counters.manifests_skipped;
        saved->row_groups_skipped += counters.row_groups_skipped;
        saved->pages_skipped += counters.pages_skipped;
        options.batch_rows = 37;
        options.columns = narrow;
        options.n_columns = 2;
        char *some = scan_rows(m, &arena, &options, where, NULL);
        options.no_prune = true;
        check_equal(where, scan_rows(m, &arena, &options, where, NULL), some);
        options = case_scan_options();
        options.no_prune = true;
        check_equal(where, scan_rows(m, &arena, &options, where, NULL), want);
        arena_release(&arena);
    }
}

static void remember(model *m, const tarn_metadata *metadata, const char *rows) {
    m->snapshots[m->n_snapshots] = metadata->current_snapshot_id;
    m->shown[m->n_snapshots++] = arena_strdup(&m->c.arena, rows);
}

static void check_state(model *m, int n_filters, scan_counters *saved) {
    tarn_arena arena;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    arena_init(&arena, m->c.env);
    tarn_table_version *v = case_load(&m->c);
    model_batch(m, metadata_schema(v->metadata)->root, &arena, &batch);
    char *want = sorted_rows(&arena, &batch);
    scan_options options = case_scan_options();
    check_equal("all rows", scan_rows(m, &arena, &options, NULL, NULL), want);
    check_filters(m, &batch, n_filters, saved);
    remember(m, v->metadata, want);
    options.limit = (int64_t)chance(m, (uint32_t)m->n_rows);
    tarn_buf buf;
    buf_init(&buf, m->c.env, 0);
    scan_counters counters;
    assert_ok(case_scan(&m->c, &options, NULL, &buf, &counters, &err));
    int64_t lines = 0;
    for (size_t i = 0; i < buf.len; i++) {
        lines += buf.data[i] == '\n';
    }
    assert_int_equal(lines, options.limit);
    buf_release(&buf);
    batch_release(&batch);
    table_version_release(v);
    arena_release(&arena);
}

static void check_history(model *m) {
    for (int32_t k = 0; k < m->n_snapshots; k++) {
        tarn_arena arena;
        scan_options options = case_scan_options();
        arena_init(&arena, m->c.env);
        options.snapshot_id = m->snapshots[k];
        options.snapshot_schema = true;
        check_equal("an old snapshot", scan_rows(m, &arena, &options, NULL, NULL), m->shown[k]);
        arena_release(&arena);
    }
}

/* The folder goes elsewhere; a store that knows reads all of it. */
static void check_moved(model *m) {
    char to[128];
    tarn_store *files, *moved;
    scan_counters unused;
    memset(&unused, 0, sizeof unused);
    (void)snprintf(to, sizeof to, "%s/elsewhere", m->c.folder);
    assert_int_equal(rename(m->c.warehouse, to), 0);
    catalog_close(m->c.catalog);
    assert_ok(store_file_new(m->c.env, false, &files, &err));
    assert_ok(store_moved_new(files, str_of(m->c.warehouse), str_of(to), &moved, &err));
    assert_ok(catalog_dir_new(m->c.env, moved, str_of(m->c.warehouse), &m->c.catalog, &err));
    check_history(m);
}

static void tell(uint64_t seed, case_kind kind, scan_counters *saved) {
    static const char *const properties[] = {"write.parquet.row-group-size-bytes",
                                             "6000",
                                             "write.parquet.page-row-limit",
                                             "40",
                                             "write.parquet.bloom-filter-enabled.column.n.b",
                                             "true",
                                             "write.target-file-size-bytes",
                                             "20000",
                                             NULL};
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->seed = seed;
    m->i_name = "i";
    tarn_env *env = test_env();
    case_open(&m->c, env, kind);
    case_table(
        &m->c, seed % 3 == 0 ? 1 : 2,
        "id int not null, i int, s string, d double, day date, at timestamp, x decimal(9,2), "
        "flag boolean, n struct<a: int, b: string>",
        NULL, properties);
    for (int step = 0; step < 7; step++) {
        evolve_step(m, step);
        if (step > 0) {
            repartition(m);
        }
        append_rows(m);
        check_state(m, 6, saved);
    }
    check_history(m);
    case_check_files(&m->c, 0);
    if (kind == CASE_DIR_FILE) {
        check_moved(m);
    }
    case_done(&m->c);
    test_env_done(env);
    free(m);
}

static void test_scan_random(void **state) {
    (void)state;
    scan_counters saved;
    memset(&saved, 0, sizeof saved);
    tell(1, CASE_SQLITE_MEMORY, &saved);
    tell(2, CASE_DIR_MEMORY, &saved);
    tell(3, CASE_DIR_FILE, &saved);
    assert_true(saved.files_skipped > 0);
    assert_true(saved.manifests_skipped > 0);
    assert_true(saved.row_groups_skipped > 0);
    assert_true(saved.pages_skipped > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scan_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
