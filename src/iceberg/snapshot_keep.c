/* iceberg/snapshot_keep.c - a snapshot that outlives the document it came with: a copy in as few
 * pieces as can be, with the text that every later document has of it.
 *
 * Invariant: the copy is what the text says when it is read, so that whoever writes the text into a
 * document has read it back already. */
#include "iceberg/metadata_int.h"

/* Where texts are put one after the other, each ended by a NUL. */
typedef struct text_run {
    char *at;
    size_t bytes; /* measured first */
} text_run;

static void measure(text_run *run, tarn_str s) {
    run->bytes += s.len + 1;
}

static tarn_str place(text_run *run, tarn_str s) {
    tarn_str copy = str_make(run->at, s.len);
    if (s.len > 0) {
        memcpy(run->at, s.data, s.len);
    }
    run->at[s.len] = '\0';
    run->at += s.len + 1;
    return copy;
}

static void measure_all(text_run *run, const tarn_snapshot *s) {
    measure(run, s->text);
    measure(run, s->manifest_list);
    for (int32_t i = 0; i < s->n_manifests; i++) {
        measure(run, s->manifests[i]);
    }
    for (int32_t i = 0; i < s->summary.count; i++) {
        measure(run, s->summary.items[i].key);
        measure(run, s->summary.items[i].value);
    }
}

/* s with its texts and lists in arena; what is unknown of it aside. */
static tarn_code copy_known(tarn_arena *arena, const tarn_snapshot *s, tarn_snapshot *out,
                            tarn_error *err) {
    text_run run = {NULL, 0};
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (size_t)s->summary.count);
    tarn_str *manifests = ARENA_ARRAY(arena, tarn_str, (size_t)s->n_manifests);
    measure_all(&run, s);
    run.at = arena_alloc(arena, run.bytes);
    if (items == NULL || manifests == NULL || run.at == NULL) {
        return err_nomem(err);
    }
    *out = *s;
    out->text = place(&run, s->text);
    out->manifest_list = place(&run, s->manifest_list);
    for (int32_t i = 0; i < s->n_manifests; i++) {
        manifests[i] = place(&run, s->manifests[i]);
    }
    for (int32_t i = 0; i < s->summary.count; i++) {
        items[i].key = place(&run, s->summary.items[i].key);
        items[i].value = place(&run, s->summary.items[i].value);
    }
    out->manifests = manifests;
    out->summary.items = items;
    return TARN_OK;
}

/* Rare, so by way of text. */
static tarn_code copy_extra(tarn_arena *arena, const json_value *extra, const json_value **out,
                            tarn_error *err) {
    tarn_buf text;
    json_writer w;
    json_value *copy = NULL;
    tarn_code code = TARN_OK;
    *out = NULL;
    if (extra == NULL) {
        return TARN_OK;
    }
    buf_init(&text, arena->env, 0);
    json_begin(&w, &text, false, err);
    json_put_value(&w, extra);
    TRY(json_end(&w));
    TRY(json_parse(arena, buf_str(&text), "a snapshot", &copy, err));
    *out = copy;
done:
    buf_release(&text);
    return code;
}

tarn_code snapshot_keep(tarn_arena *arena, const tarn_snapshot *snapshot, int32_t format_version,
                        const tarn_snapshot **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena scratch;
    tarn_buf text;
    json_writer w;
    json_value *json = NULL;
    tarn_snapshot read;
    tarn_snapshot *kept = ARENA_NEW(arena, tarn_snapshot);
    arena_init(&scratch, arena->env);
    buf_init(&text, arena->env, 0);
    if (kept == NULL) {
        TRY(err_nomem(err));
    }
    json_begin(&w, &text, false, err);
    snapshot_put_json(snapshot, format_version, &w);
    TRY(json_end(&w));
    TRY(json_parse(&scratch, buf_str(&text), "a snapshot", &json, err));
    TRY(snapshot_from_json(&scratch, json, &read, err));
    read.text = buf_str(&text);
    read.text_version = format_version;
    TRY(copy_known(arena, &read, kept, err));
    TRY(copy_extra(arena, read.extra, &kept->extra, err));
    *out = kept;
done:
    buf_release(&text);
    arena_release(&scratch);
    return code;
}
