/* tests/flow/flow.h - tables through include/tarn alone: Arrow batches built by hand, streams told
 * as sorted text.
 *
 * The usual table is id long not null, day int, tag string; a batch of it is written as text too:
 * "1,10,a;2,,b" is two rows, and an empty day or tag is null. */
#ifndef TARN_TEST_FLOW_H
#define TARN_TEST_FLOW_H

#include "tempdir.h"

#include <tarn/tarn.h>

#define FLOW_SCHEMA "id long not null, day int, tag string"

/* ---- batches ---- */

typedef struct flow_column {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[3];
    uint8_t validity[1024];
} flow_column;

#define FLOW_COLUMNS 3
#define FLOW_ROWS    8192

typedef struct flow_batch {
    flow_column columns[FLOW_COLUMNS];
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct ArrowSchema *schema_children[FLOW_COLUMNS];
    struct ArrowArray *array_children[FLOW_COLUMNS];
    const void *buffers[1];
    int64_t ids[FLOW_ROWS];
    int32_t days[FLOW_ROWS];
    int32_t offsets[FLOW_ROWS + 1];
    char bytes[FLOW_ROWS * 16];
    int64_t rows;
} flow_batch;

static inline void flow_release_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
}
static inline void flow_release_array(struct ArrowArray *array) {
    flow_batch *batch = array->private_data;
    array->release = NULL;
    free(batch);
}
static inline void flow_release_child(struct ArrowArray *array) {
    array->release = NULL;
}

/* A batch without rows; add, then give batch->array and batch->schema. */
static inline flow_batch *flow_batch_new(void) {
    static const char *const NAMES[] = {"id", "day", "tag"};
    static const char *const FORMATS[] = {"l", "i", "u"};
    flow_batch *b = calloc(1, sizeof *b);
    assert_non_null(b);
    const void *data[] = {b->ids, b->days, b->offsets};
    for (int i = 0; i < FLOW_COLUMNS; i++) {
        flow_column *c = &b->columns[i];
        c->schema.format = FORMATS[i];
        c->schema.name = NAMES[i];
        c->schema.flags = ARROW_FLAG_NULLABLE;
        c->schema.release = flow_release_schema;
        c->buffers[0] = c->validity;
        c->buffers[1] = data[i];
        c->buffers[2] = b->bytes;
        c->array.n_buffers = i == 2 ? 3 : 2;
        c->array.buffers = c->buffers;
        c->array.release = flow_release_child;
        b->schema_children[i] = &c->schema;
        b->array_children[i] = &c->array;
    }
    b->schema.format = "+s";
    b->schema.name = "";
    b->schema.n_children = FLOW_COLUMNS;
    b->schema.children = b->schema_children;
    b->schema.release = flow_release_schema;
    b->array.n_buffers = 1;
    b->array.buffers = b->buffers;
    b->array.n_children = FLOW_COLUMNS;
    b->array.children = b->array_children;
    b->array.release = flow_release_array;
    b->array.private_data = b;
    return b;
}

static inline void flow_valid(flow_batch *b, int column, bool valid) {
    flow_column *c = &b->columns[column];
    if (valid) {
        c->validity[b->rows / 8] = (uint8_t)(c->validity[b->rows / 8] | 1u << b->rows % 8);
    } else {
        c->array.null_count++;
    }
}

/* day -1, tag NULL: null. */
static inline void flow_batch_add(flow_batch *b, int64_t id, int32_t day, const char *tag) {
    size_t len = tag != NULL ? strlen(tag) : 0;
    assert_true(b->rows < FLOW_ROWS && len <= 16);
    b->ids[b->rows] = id;
    b->days[b->rows] = day;
    memcpy(b->bytes + b->offsets[b->rows], tag != NULL ? tag : "", len);
    b->offsets[b->rows + 1] = b->offsets[b->rows] + (int32_t)len;
    flow_valid(b, 0, true);
    flow_valid(b, 1, day >= 0);
    flow_valid(b, 2, tag != NULL);
    b->rows++;
    b->array.length = b->rows;
    for (int i = 0; i < FLOW_COLUMNS; i++) {
        b->columns[i].array.length = b->rows;
    }
}

static inline flow_batch *flow_batch_of(const char *text) {
    flow_batch *b = flow_batch_new();
    while (*text != '\0') {
        char *after;
        char tag[17];
        size_t len = 0;
        int64_t id = strtoll(text, &after, 10);
        assert_int_equal(*after, ',');
        int32_t day = after[1] == ',' ? -1 : (int32_t)strtol(after + 1, &after, 10);
        after += day < 0;
        assert_int_equal(*after, ',');
        for (after++; *after != ';' && *after != '\0'; after++) {
            tag[len++] = *after;
        }
        tag[len] = '\0';
        flow_batch_add(b, id, day, len > 0 ? tag : NULL);
        text = *after == ';' ? after + 1 : after;
    }
    return b;
}

/* ---- streams ---- */

static inline bool flow_is_null(const struct ArrowArray *a, int64_t i) {
    const uint8_t *validity = a->n_buffers > 0 ? a->buffers[0] : NULL;
    i += a->offset;
    return validity != NULL && (validity[i / 8] >> i % 8 & 1) == 0;
}

/* One value: numbers, text, and what lies in structs and lists; other kinds as '?'. */
static inline void flow_put(FILE *out, const struct ArrowSchema *s, const struct ArrowArray *a,
                            int64_t i) {
    int64_t at = i + a->offset;
    if (flow_is_null(a, i)) {
        fprintf(out, "null");
    } else if (strcmp(s->format, "l") == 0 || strncmp(s->format, "ts", 2) == 0) {
        fprintf(out, "%lld", (long long)((const int64_t *)a->buffers[1])[at]);
    } else if (strcmp(s->format, "i") == 0 || strcmp(s->format, "tdD") == 0) {
        fprintf(out, "%d", (int)((const int32_t *)a->buffers[1])[at]);
    } else if (strcmp(s->format, "g") == 0) {
        fprintf(out, "%g", ((const double *)a->buffers[1])[at]);
    } else if (strcmp(s->format, "b") == 0) {
        fprintf(out, "%d", ((const uint8_t *)a->buffers[1])[at / 8] >> at % 8 & 1);
    } else if (strcmp(s->format, "u") == 0) {
        const int32_t *offsets = a->buffers[1];
        fprintf(out, "%.*s", (int)(offsets[at + 1] - offsets[at]),
                (const char *)a->buffers[2] + offsets[at]);
    } else if (strcmp(s->format, "+s") == 0) {
        fprintf(out, "(");
        for (int64_t c = 0; c < a->n_children; c++) {
            fprintf(out, c == 0 ? "" : ",");
            flow_put(out, s->children[c], a->children[c], at);
        }
        fprintf(out, ")");
    } else if (strcmp(s->format, "+l") == 0) {
        const int32_t *offsets = a->buffers[1];
        fprintf(out, "[");
        for (int32_t k = offsets[at]; k < offsets[at + 1]; k++) {
            fprintf(out, k == offsets[at] ? "" : ",");
            flow_put(out, s->children[0], a->children[0], k);
        }
        fprintf(out, "]");
    } else {
        fprintf(out, "?");
    }
}

static inline int flow_line_cmp(const void *a, const void *b) {
    const char *x = *(const char *const *)a;
    const char *y = *(const char *const *)b;
    size_t n = strcspn(x, "\n");
    size_t m = strcspn(y, "\n");
    int c = memcmp(x, y, n < m ? n : m);
    return c != 0 ? c : (n > m) - (n < m);
}

/* Lines sorted, in one allocation. */
static inline char *flow_sort(char *text, size_t len) {
    size_t n = 0;
    char **lines = calloc(len + 1, sizeof *lines);
    char *out = calloc(len + 1, 1);
    assert_non_null(lines);
    assert_non_null(out);
    for (char *at = text; *at != '\0'; at = strchr(at, '\n') + 1) {
        lines[n++] = at;
    }
    qsort(lines, n, sizeof *lines, flow_line_cmp);
    char *to = out;
    for (size_t i = 0; i < n; i++) {
        size_t line = strcspn(lines[i], "\n") + 1;
        memcpy(to, lines[i], line);
        to += line;
    }
    free(lines);
    free(text);
    return out;
}

/* Reads to the end and releases; the rows as sorted lines, to be freed. NULL: it failed, with the
 * errno in *error and the words in message. */
static inline char *flow_read(struct ArrowArrayStream *stream, int *error, char message[512]) {
    struct ArrowSchema schema;
    struct ArrowArray array;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    memset(&schema, 0, sizeof schema);
    *error = stream->get_schema(stream, &schema);
    while (*error == 0) {
        *error = stream->get_next(stream, &array);
        if (*error != 0 || array.release == NULL) {
            break;
        }
        for (int64_t i = 0; i < array.length; i++) {
            for (int64_t c = 0; c < array.n_children; c++) {
                fprintf(out, c == 0 ? "" : ",");
                flow_put(out, schema.children[c], array.children[c], i);
            }
            fprintf(out, "\n");
        }
        array.release(&array);
    }
    if (*error != 0) {
        const char *words = stream->get_last_error(stream);
        (void)snprintf(message, 512, "%s", words != NULL ? words : "");
    }
    if (schema.release != NULL) {
        schema.release(&schema);
    }
    stream->release(stream);
    (void)fclose(out);
    if (*error != 0) {
        free(text);
        return NULL;
    }
    return flow_sort(text, len);
}

/* ---- tables ---- */

static inline void flow_check_scan(tarn_table *table, const tarn_scan_options *options,
                                   const char *want) {
    tarn_error err = TARN_ERROR_INIT;
    struct ArrowArrayStream stream;
    int error;
    char message[512];
    assert_ok(tarn_table_scan(table, options, &stream, NULL, &err));
    char *got = flow_read(&stream, &error, message);
    if (got == NULL) {
        fail_msg("stream failed with %d: %s", error, message);
    }
    assert_string_equal(got, want);
    free(got);
}

static inline void flow_check(tarn_table *table, const char *where, const char *want) {
    tarn_scan_options options = TARN_SCAN_OPTIONS_INIT;
    options.where = where;
    flow_check_scan(table, &options, want);
}

/* The rows through a sink of these options, one commit. */
static inline tarn_code flow_write(tarn_table *table, const tarn_sink_options *options,
                                   const char *rows, tarn_outcome *outcome, tarn_error *err) {
    tarn_sink *sink = NULL;
    flow_batch *b = NULL;
    tarn_code code = tarn_sink_open(table, options, &sink, err);
    if (code == TARN_OK && rows[0] != '\0') {
        b = flow_batch_of(rows);
        code = tarn_sink_write(sink, &b->schema, &b->array, err);
        if (code != TARN_OK) {
            assert_non_null(b->array.release); /* still ours */
            b->array.release(&b->array);
        }
    }
    if (code == TARN_OK) {
        code = tarn_sink_commit(sink, outcome, err);
    }
    tarn_sink_free(sink);
    return code;
}

/* ---- a batch as a stream of one array, which must not outlive it ---- */

static inline int flow_stream_schema(struct ArrowArrayStream *s, struct ArrowSchema *out) {
    *out = ((flow_batch *)s->private_data)->schema;
    return 0;
}
static inline int flow_stream_next(struct ArrowArrayStream *s, struct ArrowArray *out) {
    flow_batch *b = s->private_data;
    *out = b->array;
    b->array.release = NULL; /* the end comes next */
    return 0;
}
static inline const char *flow_stream_error(struct ArrowArrayStream *s) {
    (void)s;
    return NULL;
}
static inline void flow_stream_release(struct ArrowArrayStream *s) {
    free(s->private_data);
    s->release = NULL;
}
/* Takes the batch. */
static inline void flow_stream(flow_batch *b, struct ArrowArrayStream *out) {
    b->array.release = flow_release_child;
    out->get_schema = flow_stream_schema;
    out->get_next = flow_stream_next;
    out->get_last_error = flow_stream_error;
    out->release = flow_stream_release;
    out->private_data = b;
}

static inline void flow_append(tarn_table *table, const char *rows) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    assert_ok(flow_write(table, NULL, rows, &outcome, &err));
    assert_int_equal(outcome.state, TARN_COMMIT_DONE);
}

/* A catalog in folder: sqlite or dir. */
static inline void flow_uri(const char *folder, bool sqlite, char out[128]) {
    (void)snprintf(out, 128, sqlite ? "sqlite:%s/catalog.db" : "dir:%s/warehouse", folder);
}

static inline tarn_code flow_connect(tarn_env *env, const char *folder, bool sqlite,
                                     tarn_catalog_handle **out, tarn_error *err) {
    char uri[128];
    tarn_catalog_options options = TARN_CATALOG_OPTIONS_INIT;
    options.no_sync = true;
    flow_uri(folder, sqlite, uri);
    return tarn_catalog_open(env, uri, &options, out, err);
}

#endif
