/* format/text/text_plan.c - a schema made ready for matching names, and the state that one chunk's
 * decoding needs. */
#include "format/text/text_int.h"

#include <stdarg.h>
#include <stdio.h>

#define KEY_WORD_BYTES 8

tarn_code text_options_check(const text_options *given, text_options *out, tarn_error *err) {
    static const tarn_str empty = {"", 0};
    *out = *given;
    out->delimiter = given->delimiter != '\0' ? given->delimiter : ',';
    out->quote = given->quote != '\0' ? given->quote : '"';
    out->escape = given->escape != out->quote ? given->escape : '\0'; /* doubling is known anyway */
    if (given->n_null_texts == 0) {
        out->null_texts = &empty;
        out->n_null_texts = 1;
    }
    out->batch_rows = given->batch_rows > 0 ? given->batch_rows : TEXT_BATCH_ROWS;
    out->batch_rows = out->batch_rows < INT32_MAX / 2 ? out->batch_rows : INT32_MAX / 2;
    out->chunk_bytes = given->chunk_bytes > 0 ? given->chunk_bytes : TEXT_CHUNK_BYTES;
    out->chunk_bytes =
        out->chunk_bytes < LIMIT_TEXT_LINE_BYTES ? out->chunk_bytes : LIMIT_TEXT_LINE_BYTES;
    if (out->delimiter == out->quote || out->delimiter == '\n' || out->quote == '\n' ||
        out->delimiter == '\r' || out->quote == '\r' || out->escape == '\n' ||
        out->escape == '\r' || out->delimiter == out->escape) {
        return err_set(err, TARN_INVALID,
                       "delimiter, quote and escape of a CSV file were not three different "
                       "characters within a line");
    }
    return TARN_OK;
}

/* ---- the plan ---- */

static tarn_code set_key(tarn_arena *arena, text_node *node, tarn_error *err) {
    char *key = arena_calloc(arena, 1, node->name.len + 1 + KEY_WORD_BYTES);
    if (key == NULL) {
        return err_nomem(err);
    }
    if (node->name.len > 0) {
        memcpy(key, node->name.data, node->name.len);
    }
    key[node->name.len] = '"';
    node->key = key;
    node->key_len = node->name.len + 1;
    node->key_word = num_load_u64(key);
    node->key_mask =
        node->key_len >= KEY_WORD_BYTES ? UINT64_MAX : (UINT64_C(1) << (8 * node->key_len)) - 1;
    node->key_word &= node->key_mask;
    return TARN_OK;
}

static tarn_code hash_names(tarn_arena *arena, text_node *node, tarn_error *err) {
    uint32_t n = 4;
    while (n < 2 * (uint32_t)node->n_children) {
        n *= 2;
    }
    node->slots = ARENA_ARRAY(arena, int32_t, n);
    if (node->slots == NULL) {
        return err_nomem(err);
    }
    node->n_slots = n;
    for (int32_t i = 0; i < node->n_children; i++) {
        uint32_t at = (uint32_t)str_hash(node->children[i].name) & (n - 1);
        while (node->slots[at] != 0) {
            at = (at + 1) & (n - 1);
        }
        node->slots[at] = i + 1;
    }
    return TARN_OK;
}

/* A row that lacks the column has its default for writing (spec, "Default values"). */
static tarn_code set_fallback(text_plan *plan, text_node *node, const tarn_field *field,
                              tarn_error *err) {
    const json_value *json = field->write_default;
    if (json == NULL || json->kind == JSON_NULL) {
        return TARN_OK;
    }
    node->fallback = field;
    tarn_code code = type_is_nested(field->type)
                         ? TARN_OK
                         : value_from_json(&plan->arena, field->type, json, &node->absent, err);
    return code == TARN_OK
               ? code
               : err_add(err, code, "write-default of column %.*s", STR_ARG(node->name));
}

static tarn_code fit_node(text_plan *plan, text_node *node, const tarn_type *type, int depth,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    node->type = type;
    node->kind = type->kind;
    node->n_children = type_is_nested(type) ? type->n_fields : 0;
    if (node->n_children == 0 &&
        type->kind != TARN_STRUCT) { /* an empty struct still has members */
        return TARN_OK;
    }
    if (depth > LIMIT_NESTING) {
        return err_set(err, TARN_LIMIT, "column %.*s was nested deeper than %d levels",
                       STR_ARG(node->name), LIMIT_NESTING);
    }
    node->children = ARENA_ARRAY(&plan->arena, text_node, (size_t)node->n_children);
    if (node->children == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < node->n_children; i++) {
        text_node *child = &node->children[i];
        child->parent = node;
        child->name = type->fields[i].name;
        child->required = type->fields[i].required;
        TRY(set_key(&plan->arena, child, err));
        TRY(type->kind == TARN_STRUCT ? set_fallback(plan, child, &type->fields[i], err) : TARN_OK);
        TRY(fit_node(plan, child, type->fields[i].type, depth + 1, err));
    }
    if (type->kind == TARN_STRUCT) {
        node->predict_at = plan->n_predict;
        plan->n_predict += node->n_children + 1;
        code = hash_names(&plan->arena, node, err);
    }
done:
    return code;
}

/* Rows that delete may lack what others must have: the batches' type asks for nothing, and complete
 * rows are checked (text_kind_row). */
static tarn_code relax_root(text_plan *plan, tarn_error *err) {
    const tarn_type *root = plan->root.type;
    tarn_field *fields = ARENA_ARRAY(&plan->arena, tarn_field, (size_t)root->n_fields + 1);
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < root->n_fields; i++) {
        fields[i] = root->fields[i];
        fields[i].required = false;
    }
    plan->root.type = type_struct(&plan->arena, fields, root->n_fields);
    return plan->root.type != NULL ? TARN_OK : err_nomem(err);
}

tarn_code text_plan_init(text_plan *plan, tarn_env *env, const tarn_type *root,
                         const text_options *options, tarn_error *err) {
    memset(plan, 0, sizeof *plan);
    arena_init(&plan->arena, env);
    tarn_code code = text_options_check(options, &plan->options, err);
    TRY(code);
    /* The caller's texts need not outlive the call. */
    int32_t n = plan->options.n_null_texts;
    tarn_str *texts = ARENA_ARRAY(&plan->arena, tarn_str, (size_t)n);
    if (texts == NULL) {
        code = err_nomem(err);
        goto done;
    }
    for (int32_t i = 0; i < n; i++) {
        texts[i] = arena_str(&plan->arena, plan->options.null_texts[i]);
        if (texts[i].data == NULL) {
            code = err_nomem(err);
            goto done;
        }
        plan->null_empty = plan->null_empty || texts[i].len == 0;
        if (texts[i].len > 0) {
            plan->null_begins[(unsigned char)texts[i].data[0]] = true;
        }
    }
    plan->options.null_texts = texts;
    TRY(fit_node(plan, &plan->root, root, 0, err));
    int32_t kind = plan->options.kind_column;
    if (kind != 0 &&
        (kind < 0 || kind > root->n_fields || root->fields[kind - 1].type->kind != TARN_STRING)) {
        code = err_set(err, TARN_INVALID, "the column of row kinds was not a string column");
        goto done;
    }
    for (int32_t i = 0; i < plan->options.n_keys; i++) {
        int32_t at = text_plan_find(plan, &plan->root, plan->options.keys[i]);
        if (at >= 0) {
            plan->root.children[at].is_key = true;
            plan->root.children[at].required = true;
        }
    }
    plan->has_kinds = plan->options.debezium || plan->options.kind_column > 0;
    if (plan->has_kinds) {
        TRY(relax_root(plan, err));
    }
    if (plan->options.debezium) {
        TRY(text_change_plan(plan, err));
    }
done:
    if (code != TARN_OK) {
        text_plan_release(plan);
    }
    return code;
}

void text_plan_release(text_plan *plan) {
    arena_release(&plan->arena);
    memset(plan, 0, sizeof *plan);
}

int32_t text_plan_find(const text_plan *plan, const text_node *node, tarn_str name) {
    if (node->n_children == 0) {
        return -1;
    }
    uint32_t at = (uint32_t)str_hash(name) & (node->n_slots - 1);
    for (; node->slots[at] != 0; at = (at + 1) & (node->n_slots - 1)) {
        if (str_eq(node->children[node->slots[at] - 1].name, name)) {
            return node->slots[at] - 1;
        }
    }
    for (int32_t i = 0; plan->options.case_insensitive && i < node->n_children; i++) {
        if (str_eq_nocase(node->children[i].name, name)) {
            return i;
        }
    }
    return -1;
}

/* ---- the decoder ---- */

/* Until records say otherwise, members come in the schema's order. */
static void expect_schema_order(const text_node *node, int32_t *successor) {
    if (node->kind == TARN_STRUCT) {
        for (int32_t i = 0; i <= node->n_children; i++) {
            successor[node->predict_at + i] = i < node->n_children ? i : -1;
        }
    }
    for (int32_t i = 0; i < node->n_children; i++) {
        expect_schema_order(&node->children[i], successor);
    }
}

tarn_code text_decoder_init(text_decoder *d, tarn_env *env, const text_plan *plan,
                            tarn_error *err) {
    memset(d, 0, sizeof *d);
    d->env = env;
    d->plan = plan;
    buf_init(&d->scratch, env, 0);
    buf_init(&d->nested, env, 0);
    buf_init(&d->key_slots, env, 0);
    buf_init(&d->kinds, env, 0);
    buf_init(&d->schema, env, 0);
    buf_init(&d->variant_names, env, LIMIT_BATCH_BYTES);
    variant_maker_init(&d->variant, env);
    d->spellings = plan->spellings;
    d->successor = env_alloc(env, ((size_t)plan->n_predict + 1) * sizeof *d->successor);
    if (d->successor == NULL) {
        return err_nomem(err);
    }
    expect_schema_order(&plan->root, d->successor);
    memcpy(&d->date_text[0], "1970-01-01", 8);
    memcpy(&d->date_text[1], &"1970-01-01"[2], 8);
    return builder_init(&d->rows, env, plan->root.type, err);
}

void text_decoder_release(text_decoder *d) {
    if (d->env != NULL) {
        env_free(d->env, d->successor);
        env_free(d->env, d->told);
    }
    builder_release(&d->rows);
    buf_release(&d->scratch);
    buf_release(&d->nested);
    buf_release(&d->key_slots);
    buf_release(&d->kinds);
    buf_release(&d->schema);
    buf_release(&d->variant_names);
    variant_maker_release(&d->variant);
    memset(d, 0, sizeof *d);
}

static size_t put_path(const text_node *node, char *out, size_t cap) {
    size_t len = 0;
    if (node->parent == NULL || cap < 2) {
        return 0;
    }
    if (node->parent->parent != NULL) {
        len = put_path(node->parent, out, cap - 1);
        out[len++] = '.';
    }
    size_t n = node->name.len < cap - len ? node->name.len : cap - len;
    if (n > 0) {
        memcpy(out + len, node->name.data, n);
    }
    return len + n;
}

/* One line of valid UTF-8 whatever the record held. */
static void make_printable(char *text) {
    if (!str_utf8_valid(str_of(text))) {
        for (char *p = text; *p != '\0'; p++) {
            *p = (unsigned char)*p >= 0x80 ? '?' : *p;
        }
    }
    for (char *p = text; *p != '\0'; p++) {
        *p = (unsigned char)*p < 0x20 || *p == 0x7F ? '?' : *p;
    }
}

tarn_code text_bad(text_decoder *d, const text_node *node, const char *fmt, ...) {
    size_t at = 0;
    if (node != NULL && node->parent != NULL) {
        memcpy(d->reason, "column ", 7);
        at = 7 + put_path(node, d->reason + 7, TEXT_REASON_BYTES / 2);
        memcpy(d->reason + at, ": ", 2);
        at += 2;
    }
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(d->reason + at, sizeof d->reason - at, fmt, args);
    va_end(args);
    make_printable(d->reason);
    return TARN_INVALID;
}
