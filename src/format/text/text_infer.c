/* format/text/text_infer.c - the schema that a sample suggests, and the stream that begins again.
 *
 * Each column gathers what kinds of values were seen in it; at the end kinds that go together make
 * a type, and others a string. Bad records are passed over: reading tells of them, with their
 * lines. */
#include "base/map.h"
#include "base/time.h"
#include "format/text/text_int.h"
#include "format/text/text_scan.h"

#define SAMPLE_BYTES     ((size_t)16 << 20)
#define SAMPLE_RECORDS   100000
#define PARSE_ARENA_SIZE ((size_t)1 << 20)

enum {
    SEEN_BOOLEAN = 1,
    SEEN_LONG = 2,
    SEEN_DOUBLE = 4,
    SEEN_STRING = 8,
    SEEN_DATE = 16,
    SEEN_TIMESTAMP = 32,
    SEEN_TIMESTAMPTZ = 64,
    SEEN_OBJECT = 128,
    SEEN_ARRAY = 256
};

typedef struct seen_node seen_node;
struct seen_node {
    unsigned seen;
    tarn_str name;
    seen_node *element; /* of arrays */
    tarn_map members;   /* of objects: name to seen_node, in the order of their coming */
};

typedef struct inferrer {
    tarn_arena *arena; /* the caller's: names and types */
    tarn_error *err;
    const char *name; /* of the stream */
    const text_plan *plan;
    int32_t n_nodes;
} inferrer;

/* ---- kinds of texts ---- */

static unsigned classify_time(tarn_str text) {
    int32_t days;
    int64_t value;
    bool zoned;
    if (text.len < 10 || text.data[4] != '-') {
        return 0;
    }
    if (time_parse_date(text, &days)) {
        return SEEN_DATE;
    }
    if (time_parse_timestamp(text, 6, &zoned, &value)) {
        return zoned ? SEEN_TIMESTAMPTZ : SEEN_TIMESTAMP;
    }
    return 0;
}

/* Leading zeros and signs of plus are kept as text: such are codes, not amounts. */
static unsigned classify_cell(tarn_str text) {
    int64_t whole;
    double fraction;
    bool truth;
    size_t sign = text.len > 0 && text.data[0] == '-' ? 1 : 0;
    char first = text.len > sign ? text.data[sign] : '\0';
    if (text_is_digit(first) || first == '.') {
        bool code = first == '0' && text.len > sign + 1 && text_is_digit(text.data[sign + 1]);
        if (!code && str_to_i64(text, &whole)) {
            return SEEN_LONG;
        }
        bool digits_only = true;
        for (size_t i = sign; i < text.len && digits_only; i++) {
            digits_only = text_is_digit(text.data[i]);
        }
        if (!code && !digits_only && str_to_f64(text, &fraction)) {
            return SEEN_DOUBLE;
        }
        unsigned time = sign == 0 ? classify_time(text) : 0;
        return time != 0 ? time : SEEN_STRING;
    }
    if (str_is(text, "NaN") || str_is(text, "Infinity") || str_is(text, "-Infinity")) {
        return SEEN_DOUBLE;
    }
    return str_to_bool(text, &truth) ? SEEN_BOOLEAN : SEEN_STRING;
}

static tarn_kind scalar_kind(unsigned seen) {
    if (seen == SEEN_BOOLEAN) {
        return TARN_BOOLEAN;
    }
    if (seen == SEEN_LONG) {
        return TARN_LONG;
    }
    if (seen != 0 && (seen & ~(unsigned)(SEEN_LONG | SEEN_DOUBLE)) == 0) {
        return TARN_DOUBLE;
    }
    if (seen == SEEN_DATE) {
        return TARN_DATE;
    }
    if (seen != 0 && (seen & ~(unsigned)(SEEN_DATE | SEEN_TIMESTAMP)) == 0) {
        return TARN_TIMESTAMP;
    }
    return seen == SEEN_TIMESTAMPTZ ? TARN_TIMESTAMPTZ : TARN_STRING;
}

/* ---- NDJSON ---- */

static seen_node *new_seen(inferrer *f, tarn_str name) {
    seen_node *node = ARENA_NEW(f->arena, seen_node);
    if (node == NULL) {
        (void)err_nomem(f->err);
        return NULL;
    }
    node->name = name;
    map_init(&node->members, f->arena);
    return node;
}

static tarn_code member_of(inferrer *f, seen_node *node, tarn_str name, seen_node **out) {
    map_entry *entry = map_find(&node->members, name);
    if (entry != NULL) {
        *out = entry->value.ptr;
        return TARN_OK;
    }
    if (f->n_nodes++ == LIMIT_SCHEMA_FIELDS) {
        return err_set(f->err, TARN_LIMIT, "%s: there were more than %d different columns", f->name,
                       LIMIT_SCHEMA_FIELDS);
    }
    tarn_str kept = arena_str(f->arena, name);
    entry = kept.data != NULL ? map_put(&node->members, kept, NULL) : NULL;
    if (entry == NULL) {
        return err_nomem(f->err);
    }
    entry->value.ptr = new_seen(f, kept);
    *out = entry->value.ptr;
    return *out != NULL ? TARN_OK : TARN_NOMEM;
}

/* A whole number beyond 64 bits is kept as text: as a double it would lose digits. */
static unsigned classify_number(tarn_str text) {
    int64_t whole;
    if (str_to_i64(text, &whole)) {
        return SEEN_LONG;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (!text_is_digit(text.data[i]) && !(i == 0 && text.data[i] == '-')) {
            return SEEN_DOUBLE;
        }
    }
    return SEEN_STRING;
}

static unsigned classify_json(const json_value *value) {
    switch (value->kind) {
    case JSON_BOOL:
        return SEEN_BOOLEAN;
    case JSON_NUMBER:
        return classify_number(value->text);
    case JSON_STRING: {
        unsigned time = classify_time(value->text);
        return time != 0 ? time : SEEN_STRING;
    }
    case JSON_ARRAY:
        return SEEN_ARRAY;
    case JSON_OBJECT:
        return SEEN_OBJECT;
    case JSON_NULL:
        break;
    }
    return 0;
}

static tarn_code look_at(inferrer *f, seen_node *node, const json_value *value, int depth) {
    tarn_code code = TARN_OK;
    unsigned seen = classify_json(value);
    node->seen |= seen;
    if (depth > LIMIT_NESTING) {
        return err_set(f->err, TARN_LIMIT, "%s: column %.*s was nested deeper than %d levels",
                       f->name, STR_ARG(node->name), LIMIT_NESTING);
    }
    if (seen == SEEN_ARRAY && node->element == NULL) {
        node->element = new_seen(f, node->name);
        if (node->element == NULL) {
            return TARN_NOMEM;
        }
    }
    for (const json_value *part = value->first; part != NULL; part = part->next) {
        seen_node *below = node->element;
        if (seen == SEEN_OBJECT) {
            TRY(member_of(f, node, part->name, &below));
        }
        TRY(look_at(f, below, part, depth + 1));
    }
done:
    return code;
}

static tarn_field make_field(tarn_str name, const tarn_type *type) {
    tarn_field field;
    memset(&field, 0, sizeof field);
    field.id = TARN_NO_ID;
    field.name = name;
    field.type = type;
    return field;
}

static tarn_code resolve(inferrer *f, const seen_node *node, const tarn_type **out) {
    tarn_code code = TARN_OK;
    const tarn_type *type = NULL;
    if ((node->seen & (SEEN_OBJECT | SEEN_ARRAY)) == 0) {
        *out = type_primitive(scalar_kind(node->seen));
        return TARN_OK;
    }
    if (node->seen == SEEN_ARRAY) {
        TRY(resolve(f, node->element, &type));
        *out = type_list(f->arena, make_field(STR("element"), type));
    } else if (node->seen == SEEN_OBJECT) {
        tarn_field *fields = ARENA_ARRAY(f->arena, tarn_field, node->members.count + 1);
        if (fields == NULL) {
            return err_nomem(f->err);
        }
        for (size_t i = 0; i < node->members.count; i++) {
            const seen_node *member = node->members.entries[i].value.ptr;
            TRY(resolve(f, member, &type));
            fields[i] = make_field(member->name, type);
        }
        *out = type_struct(f->arena, fields, (int32_t)node->members.count);
    } else {
        return err_set(f->err, TARN_INVALID,
                       "%s: column %.*s held values of kinds that have no type together (%s and "
                       "others)",
                       f->name, STR_ARG(node->name),
                       (node->seen & SEEN_OBJECT) != 0 ? "objects" : "arrays");
    }
    code = *out != NULL ? TARN_OK : err_nomem(f->err);
done:
    return code;
}

static bool is_blank(tarn_str line) {
    return str_trim(line).len == 0;
}

/* The images of a Debezium envelope. */
static tarn_code look_at_envelope(inferrer *f, seen_node *root, const json_value *record) {
    static const char *const images[] = {"before", "after"};
    const json_value *payload = json_get(record, "payload");
    for (int i = 0; i < 2; i++) {
        const json_value *image = json_get(payload != NULL ? payload : record, images[i]);
        tarn_code code = json_is(image, JSON_OBJECT) ? look_at(f, root, image, 0) : TARN_OK;
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

/* *told: a schema in the record that says it all; its texts are the record's own. */
static tarn_code look_at_record_of(inferrer *f, seen_node *root, const json_value *record,
                                   const tarn_type **told) {
    if (!f->plan->options.debezium) {
        return look_at(f, root, record, 0);
    }
    tarn_arena scratch;
    arena_init(&scratch, f->arena->env);
    const tarn_type *type = NULL;
    tarn_code code = text_change_type(&scratch, record, &type, f->err);
    if (code == TARN_OK && type != NULL) {
        *told = type_copy(f->arena, type);
        code = *told != NULL ? TARN_OK : err_nomem(f->err);
    }
    arena_release(&scratch);
    return code == TARN_OK ? look_at_envelope(f, root, record) : code;
}

static tarn_code infer_ndjson(inferrer *f, const char *p, const char *end, const tarn_type **out) {
    tarn_code code = TARN_OK;
    tarn_arena parsed;
    arena_init(&parsed, f->arena->env);
    seen_node *root = new_seen(f, STR("(record)"));
    if (root == NULL) {
        return TARN_NOMEM;
    }
    root->seen = SEEN_OBJECT;
    bool any_good = false;
    tarn_error first_bad = TARN_ERROR_INIT;
    const tarn_type *told = NULL;
    for (int64_t n = 0; p < end && n < SAMPLE_RECORDS && told == NULL; n++) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        const char *stop = line != NULL ? line : end;
        tarn_str record = str_make(p, (size_t)(stop - p));
        json_value *value = NULL;
        p = stop + 1;
        if (is_blank(record)) {
            continue;
        }
        if (f->plan->options.debezium) {
            record = text_change_envelope(record);
        }
        if (parsed.used_bytes > PARSE_ARENA_SIZE) {
            arena_release(&parsed);
        }
        tarn_error why = TARN_ERROR_INIT;
        code = json_parse(&parsed, record, "record", &value, &why);
        if (code == TARN_OK && value->kind == JSON_OBJECT) {
            any_good = true;
            TRY(look_at_record_of(f, root, value, &told));
        } else if (code == TARN_OK && value->kind == JSON_NULL && f->plan->options.debezium) {
            continue; /* a tombstone */
        } else if (code == TARN_NOMEM) {
            (void)err_nomem(f->err);
            goto done;
        } else if (!any_good && first_bad.code == TARN_OK) {
            (void)err_set(&first_bad, TARN_INVALID, "%s line %lld: %s", f->name, (long long)(n + 1),
                          code == TARN_OK ? "the record was not a JSON object" : why.message);
        }
    }
    if (!any_good && first_bad.code != TARN_OK) { /* a schema of nothing would blame the schema */
        code = err_set(f->err, TARN_INVALID, "%s", first_bad.message);
        goto done;
    }
    if (told != NULL) {
        *out = told;
    } else {
        code = resolve(f, root, out);
    }
done:
    arena_release(&parsed);
    return code;
}

/* ---- CSV ---- */

/* Kinds of one record's cells into kinds; false: a bad record. */
static tarn_code look_at_record(inferrer *f, const char **p, const char *end, tarn_buf *scratch,
                                unsigned *kinds, int32_t n, bool *good) {
    text_cell cell = {.last = false};
    *good = true;
    for (int32_t i = 0; *good && !cell.last; i++) {
        const char *why = NULL;
        tarn_code code = text_csv_cell(&f->plan->options, p, end, scratch, &cell, &why, f->err);
        if (code != TARN_OK && why == NULL) {
            return code;
        }
        *good = code == TARN_OK && i < n && (!cell.last || i == n - 1);
        if (*good) {
            bool null = !cell.quoted && text_is_null(f->plan, cell.text);
            kinds[i] = null ? 0 : classify_cell(cell.text);
        }
    }
    return TARN_OK;
}

static tarn_code look_at_cells(inferrer *f, const char *p, const char *end, unsigned *seen,
                               int32_t n) {
    tarn_code code = TARN_OK;
    tarn_buf scratch;
    const text_options *o = &f->plan->options;
    buf_init(&scratch, f->arena->env, 0);
    unsigned *kinds = ARENA_ARRAY(f->arena, unsigned, (size_t)n);
    if (kinds == NULL) {
        return err_nomem(f->err);
    }
    for (int64_t k = 0; p < end && k < SAMPLE_RECORDS; k++) {
        const char *start = p;
        bool good;
        if (*p == '\n' && n != 1) {
            p++;
            continue;
        }
        TRY(look_at_record(f, &p, end, &scratch, kinds, n, &good));
        if (!good) {
            p = text_csv_record_end(o, start, end, true);
            p = p != NULL ? p : end;
            continue;
        }
        for (int32_t i = 0; i < n; i++) {
            seen[i] |= kinds[i];
        }
    }
done:
    buf_release(&scratch);
    return code;
}

static tarn_code infer_csv(inferrer *f, const char *p, const char *end, const tarn_type **out) {
    tarn_code code = TARN_OK;
    tarn_str *names = NULL;
    int32_t n = 0;
    if (p < end) {
        TRY(text_csv_header(f->arena, &f->plan->options, f->name, &p, end, &names, &n, f->err));
    }
    unsigned *seen = ARENA_ARRAY(f->arena, unsigned, (size_t)n + 1);
    tarn_field *fields = ARENA_ARRAY(f->arena, tarn_field, (size_t)n + 1);
    if (seen == NULL || fields == NULL) {
        return err_nomem(f->err);
    }
    TRY(look_at_cells(f, p, end, seen, n));
    for (int32_t i = 0; i < n; i++) {
        fields[i] = make_field(names[i], type_primitive(scalar_kind(seen[i])));
    }
    *out = type_struct(f->arena, fields, n);
    code = *out != NULL ? TARN_OK : err_nomem(f->err);
done:
    return code;
}

/* ---- the stream that begins again ---- */

typedef struct replay_stream {
    io_stream base;
    io_stream *inner;
    tarn_buf sample;
    size_t at;
} replay_stream;

static tarn_code read_replay(io_stream *base, void *dst, size_t cap, size_t *got, tarn_error *err) {
    replay_stream *s = (replay_stream *)base;
    size_t left = s->sample.len - s->at;
    if (left == 0) {
        buf_release(&s->sample);
        s->at = 0;
        return s->inner->read(s->inner, dst, cap, got, err);
    }
    size_t n = left < cap ? left : cap;
    memcpy(dst, s->sample.data + s->at, n);
    s->at += n;
    *got = n;
    return TARN_OK;
}

static void close_replay(io_stream *base) {
    replay_stream *s = (replay_stream *)base;
    s->inner->close(s->inner);
    buf_release(&s->sample);
    env_free(base->env, s);
}

/* Takes inner and the bytes read from it. */
static tarn_code make_replay(io_stream *inner, tarn_buf *sample, io_stream **out, tarn_error *err) {
    replay_stream *s = env_calloc(inner->env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->base.env = inner->env;
    s->base.name = inner->name;
    s->base.read = read_replay;
    s->base.close = close_replay;
    s->inner = inner;
    s->sample = *sample;
    memset(sample, 0, sizeof *sample);
    *out = &s->base;
    return TARN_OK;
}

tarn_code text_infer(tarn_arena *arena, io_stream **stream, const text_options *options,
                     size_t max_bytes, const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_env *env = arena->env;
    size_t skip = 0;
    size_t len = 0;
    tarn_buf sample;
    text_chunker chunker;
    text_plan plan;
    const tarn_type *type = NULL;
    static const tarn_type nothing = {.kind = TARN_STRUCT};
    buf_init(&sample, env, 0);
    code = text_plan_init(&plan, env, &nothing, options, err);
    if (code != TARN_OK) {
        return code;
    }
    text_chunker_init(&chunker, env, *stream, &plan.options);
    TRY(text_chunker_next(&chunker, max_bytes > 0 ? max_bytes : SAMPLE_BYTES, &sample, &skip, &len,
                          err));
    inferrer f = {.arena = arena, .err = err, .name = (*stream)->name, .plan = &plan};
    const char *p = (const char *)sample.data + skip;
    const char *end = (const char *)sample.data + len;
    p = p < end ? p : end;
    TRY(options->kind == TEXT_CSV ? infer_csv(&f, p, end, &type) : infer_ndjson(&f, p, end, &type));
    /* Without the line end that the sample may have got. */
    sample.len = (size_t)chunker.bytes_read - chunker.carry.len;
    TRY(buf_append(&sample, chunker.carry.data, chunker.carry.len, err));
    TRY(make_replay(*stream, &sample, stream, err));
    *out = type;
done:
    buf_release(&sample);
    text_chunker_release(&chunker);
    text_plan_release(&plan);
    return code;
}
