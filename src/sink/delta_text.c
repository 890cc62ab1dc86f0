/* sink/delta_text.c - deltas as JSON: what a checkpoint wrote, as a committer that never saw the
 * writers needs it. Files are said as iceberg/file_json.h says them. */
#include "iceberg/file_json.h"
#include "sink/state.h"

tarn_code delta_write(const sink_identity *who, const sink_delta *delta, tarn_buf *out,
                      tarn_error *err) {
    json_writer w;
    const write_result *r = &delta->written;
    json_begin(&w, out, false, err);
    json_put_object(&w);
    json_member_str(&w, "table-uuid", who->table_uuid);
    json_member_str(&w, "branch", who->branch);
    json_member_str(&w, "sink-id", who->sink_id);
    json_member_i64(&w, "checkpoint", delta->checkpoint);
    json_member_i64(&w, "epoch", delta->epoch);
    if (delta->after_checkpoint >= 0) {
        json_member_i64(&w, "after-checkpoint", delta->after_checkpoint);
        json_member_i64(&w, "after-epoch", delta->after_epoch);
    }
    json_member_str(&w, "commit-id", str_of(delta->commit_id));
    json_member_i64(&w, "base-snapshot-id", delta->base_snapshot_id);
    if (delta->offsets.data != NULL) {
        json_member_str(&w, "offsets", delta->offsets);
    }
    json_member_i64(&w, "rows", r->rows);
    json_member_i64(&w, "deleted-rows", r->deleted_rows);
    files_put_json("files", r->files, r->n_files, &w);
    files_put_json("deletes", r->deletes, r->n_deletes, &w);
    texts_put_json("referenced", r->referenced, r->n_referenced, &w);
    entries_put_json("removed-deletes", r->removed_deletes, r->n_removed_deletes, &w);
    json_end_object(&w);
    return json_end(&w);
}

/* ---- reading ---- */

typedef struct delta_reader {
    tarn_arena *arena;
    const tarn_metadata *metadata;
    const char *what;
} delta_reader;

static tarn_code bad_member(const delta_reader *r, const char *name, tarn_error *err) {
    return err_set(err, TARN_CORRUPT, "checkpoint file %s had no usable \"%s\"", r->what, name);
}

static tarn_code get_i64(const delta_reader *r, const json_value *json, const char *name,
                         int64_t *out, tarn_error *err) {
    return json_i64(json_get(json, name), out) ? TARN_OK : bad_member(r, name, err);
}

/* The files; what is wrong with them is wrong with the checkpoint's file. */
static tarn_code get_files(const delta_reader *r, const json_value *json, write_result *out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_metadata *m = r->metadata;
    TRY(files_from_json(r->arena, json, "files", m, &out->files, &out->n_files, err));
    TRY(files_from_json(r->arena, json, "deletes", m, &out->deletes, &out->n_deletes, err));
    TRY(texts_from_json(r->arena, json, "referenced", &out->referenced, &out->n_referenced, err));
    TRY(entries_from_json(r->arena, json, "removed-deletes", m, &out->removed_deletes,
                          &out->n_removed_deletes, err));
done:
    if (err != NULL && (code == TARN_INVALID || code == TARN_CONFLICT)) {
        tarn_error first = *err;
        code = err_set(err, code == TARN_INVALID ? TARN_CORRUPT : code, "checkpoint file %s: %s",
                       r->what, first.message);
    }
    return code;
}

static tarn_code check_owner(const delta_reader *r, const sink_identity *who,
                             const json_value *json, tarn_error *err) {
    tarn_str uuid = STR_NULL;
    tarn_str branch = STR_NULL;
    tarn_str sink = STR_NULL;
    (void)json_str(json_get(json, "table-uuid"), &uuid);
    (void)json_str(json_get(json, "branch"), &branch);
    (void)json_str(json_get(json, "sink-id"), &sink);
    if (!str_eq(uuid, who->table_uuid) || !str_eq(branch, who->branch)) {
        return err_set(err, TARN_INVALID,
                       "checkpoint file %s is of table %.*s, branch %.*s, not of %.*s, branch %.*s",
                       r->what, STR_ARG(uuid), STR_ARG(branch), STR_ARG(who->table_uuid),
                       STR_ARG(who->branch));
    }
    if (!str_eq(sink, who->sink_id)) {
        return err_set(err, TARN_INVALID, "checkpoint file %s is of sink %.*s, not of %.*s",
                       r->what, STR_ARG(sink), STR_ARG(who->sink_id));
    }
    return TARN_OK;
}

tarn_code delta_read(tarn_arena *arena, const sink_identity *who, const json_value *json,
                     const tarn_metadata *m, const char *what, sink_delta *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str id;
    delta_reader r = {arena, m, what};
    TRY(check_owner(&r, who, json, err));
    TRY(get_i64(&r, json, "checkpoint", &out->checkpoint, err));
    TRY(get_i64(&r, json, "epoch", &out->epoch, err));
    out->after_checkpoint = -1;
    out->after_epoch = 0;
    if (json_get(json, "after-checkpoint") != NULL) {
        TRY(get_i64(&r, json, "after-checkpoint", &out->after_checkpoint, err));
        TRY(get_i64(&r, json, "after-epoch", &out->after_epoch, err));
    }
    TRY(get_i64(&r, json, "base-snapshot-id", &out->base_snapshot_id, err));
    if (!json_str(json_get(json, "commit-id"), &id) || id.len != sizeof out->commit_id - 1) {
        return bad_member(&r, "commit-id", err);
    }
    memcpy(out->commit_id, id.data, id.len);
    out->commit_id[id.len] = '\0';
    out->offsets = STR_NULL;
    (void)json_str(json_get(json, "offsets"), &out->offsets);
    TRY(get_i64(&r, json, "rows", &out->written.rows, err));
    TRY(get_i64(&r, json, "deleted-rows", &out->written.deleted_rows, err));
    TRY(get_files(&r, json, &out->written, err));
done:
    return code;
}
