/* maintain/check_entry.c - the entries of one manifest: against the counts and summaries of the
 * manifest list, the rules of sequence numbers, and what each kind of file must say of itself. */
#include "maintain/check_int.h"

typedef struct totals {
    int64_t files[3]; /* by status */
    int64_t rows[3];
    int64_t min_sequence; /* of live entries; -1: none has one */
} totals;

static tarn_code wrong_count(checker *c, const tarn_manifest *m, const char *what, int64_t listed,
                             int64_t found, tarn_error *err) {
    return listed < 0 || listed == found
               ? TARN_OK
               : check_found(c, CHECK_MANIFEST_COUNTS, m->path, err,
                             "%s was %lld in the manifest list and the manifest has %lld", what,
                             (long long)listed, (long long)found);
}

static tarn_code check_totals(checker *c, const tarn_manifest *m, const totals *t,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(wrong_count(c, m, "added_files_count", m->added_files, t->files[TARN_ENTRY_ADDED], err));
    TRY(wrong_count(c, m, "existing_files_count", m->existing_files, t->files[TARN_ENTRY_EXISTING],
                    err));
    TRY(wrong_count(c, m, "deleted_files_count", m->deleted_files, t->files[TARN_ENTRY_DELETED],
                    err));
    TRY(wrong_count(c, m, "added_rows_count", m->added_rows, t->rows[TARN_ENTRY_ADDED], err));
    TRY(wrong_count(c, m, "existing_rows_count", m->existing_rows, t->rows[TARN_ENTRY_EXISTING],
                    err));
    TRY(wrong_count(c, m, "deleted_rows_count", m->deleted_rows, t->rows[TARN_ENTRY_DELETED], err));
    /* Deletes of a higher number than it are not looked for in the manifest. */
    if (t->min_sequence >= 0 && m->min_sequence_number > t->min_sequence) {
        TRY(check_found(c, CHECK_SEQUENCE, m->path, err,
                        "min_sequence_number was %lld in the manifest list and a live entry has "
                        "%lld",
                        (long long)m->min_sequence_number, (long long)t->min_sequence));
    }
done:
    return code;
}

/* ---- one entry ---- */

static tarn_code check_sequence(checker *c, const tarn_manifest *m, const tarn_entry *e,
                                tarn_error *err) {
    const tarn_str path = e->file.path;
    if (m->sequence_number < 0) {
        return TARN_OK;
    }
    if (e->sequence_number < 0) {
        return check_found(c, CHECK_SEQUENCE, m->path, err,
                           "file %.*s of status %d had no sequence number, which only added "
                           "entries inherit",
                           STR_ARG(path), (int)e->status);
    }
    if (e->sequence_number > m->sequence_number) {
        return check_found(c, CHECK_SEQUENCE, m->path, err,
                           "file %.*s had sequence number %lld in a manifest of %lld",
                           STR_ARG(path), (long long)e->sequence_number,
                           (long long)m->sequence_number);
    }
    return TARN_OK;
}

static tarn_code check_vector(checker *c, const tarn_manifest *m, const tarn_file *f,
                              tarn_error *err) {
    if (f->content != TARN_CONTENT_POSITION_DELETES) {
        return check_found(c, CHECK_ENTRY, m->path, err, "file %.*s was Puffin and no vector",
                           STR_ARG(f->path));
    }
    if (c->m->format_version < 3) {
        return check_found(c, CHECK_ENTRY, m->path, err,
                           "file %.*s was a deletion vector in a table of version %d",
                           STR_ARG(f->path), c->m->format_version);
    }
    if (f->referenced_data_file.len == 0 || f->content_offset < 0 || f->content_size < 0) {
        return check_found(c, CHECK_ENTRY, m->path, err,
                           "deletion vector %.*s lacked referenced_data_file, content_offset or "
                           "content_size_in_bytes",
                           STR_ARG(f->path));
    }
    return f->size_bytes >= 0 && f->content_size > f->size_bytes - f->content_offset
               ? check_found(c, CHECK_ENTRY, m->path, err,
                             "deletion vector at %lld of %lld bytes lay outside %.*s of %lld bytes",
                             (long long)f->content_offset, (long long)f->content_size,
                             STR_ARG(f->path), (long long)f->size_bytes)
               : TARN_OK;
}

static tarn_code check_content(checker *c, const tarn_manifest *m, const tarn_file *f,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    const bool is_data = f->content == TARN_CONTENT_DATA;
    if (is_data == m->is_deletes) {
        TRY(check_found(c, CHECK_MANIFEST_CONTENT, m->path, err,
                        "file %.*s was a %s file in a manifest of %s", STR_ARG(f->path),
                        is_data ? "data" : "delete", m->is_deletes ? "deletes" : "data"));
    }
    if (f->format == TARN_FORMAT_PUFFIN) {
        TRY(check_vector(c, m, f, err));
    }
    if (f->format == TARN_FORMAT_OTHER) {
        TRY(check_found(c, CHECK_ENTRY, m->path, err, "file %.*s was of an unknown format",
                        STR_ARG(f->path)));
    }
    if (f->content == TARN_CONTENT_EQUALITY_DELETES && f->n_equality_ids == 0) {
        TRY(check_found(c, CHECK_ENTRY, m->path, err,
                        "equality delete file %.*s had no equality_ids", STR_ARG(f->path)));
    }
    for (int32_t i = 0; i < f->n_equality_ids; i++) {
        if (check_column(c, f->equality_ids[i], NULL) == NULL) {
            TRY(check_found(c, CHECK_ENTRY, m->path, err,
                            "equality id %d of file %.*s was in no schema", f->equality_ids[i],
                            STR_ARG(f->path)));
        }
    }
done:
    return code;
}

static bool has_order(const tarn_metadata *m, int32_t id) {
    for (int32_t i = 0; i < m->n_sort_orders; i++) {
        if (m->sort_orders[i]->order_id == id) {
            return true;
        }
    }
    return id <= 0; /* none, or unsorted */
}

static tarn_code check_details(checker *c, const tarn_manifest *m, const tarn_file *f,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    if (f->size_bytes <= 0) {
        TRY(check_found(c, CHECK_ENTRY_DETAIL, m->path, err,
                        "file %.*s had file_size_in_bytes %lld", STR_ARG(f->path),
                        (long long)f->size_bytes));
    }
    if (!has_order(c->m, f->sort_order_id)) {
        TRY(check_found(c, CHECK_ENTRY_DETAIL, m->path, err,
                        "sort order %d of file %.*s was missing from the sort orders",
                        f->sort_order_id, STR_ARG(f->path)));
    }
    for (int32_t i = 0; i < f->n_split_offsets; i++) {
        if (f->split_offsets[i] < 0 ||
            (f->size_bytes > 0 && f->split_offsets[i] >= f->size_bytes) ||
            (i > 0 && f->split_offsets[i] <= f->split_offsets[i - 1])) {
            code = check_found(c, CHECK_ENTRY_DETAIL, m->path, err,
                               "split offset %d of file %.*s was %lld: out of order or of the "
                               "file",
                               i, STR_ARG(f->path), (long long)f->split_offsets[i]);
            break;
        }
    }
done:
    return code;
}

static tarn_code check_entry(checker *c, const tarn_manifest *m, const tarn_spec *spec,
                             const tarn_entry *e, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (e->status == TARN_ENTRY_DELETED) {
        return TARN_OK; /* of the past; nothing reads it */
    }
    TRY(check_sequence(c, m, e, err));
    TRY(check_content(c, m, &e->file, err));
    TRY(check_details(c, m, &e->file, err));
    TRY(check_partition(c, m->path, spec, &e->file, err));
    TRY(check_metrics(c, m->path, &e->file, err));
done:
    return code;
}

/* ---- summaries of partitions ---- */

static bool is_nan(const tarn_value *v) {
    return (v->type->kind == TARN_FLOAT && v->as.f32 != v->as.f32) ||
           (v->type->kind == TARN_DOUBLE && v->as.f64 != v->as.f64);
}

/* What the summary says of a value that is there; NULL: nothing is wrong. */
static const char *against_summary(const tarn_field_summary *s, const tarn_value *v) {
    tarn_value bound;
    tarn_error why = TARN_ERROR_INIT;
    if (v->is_null) {
        return s->contains_null ? NULL : "contains_null was false and a file has null";
    }
    if (is_nan(v)) {
        return s->contains_nan == 0 ? "contains_nan was false and a file has NaN" : NULL;
    }
    if (s->has_lower && value_from_binary(v->type, s->lower, &bound, &why) == TARN_OK &&
        value_cmp(&bound, v) > 0) {
        return "lower_bound was above the value of a file";
    }
    if (s->has_upper && value_from_binary(v->type, s->upper, &bound, &why) == TARN_OK &&
        value_cmp(&bound, v) < 0) {
        return "upper_bound was below the value of a file";
    }
    return NULL;
}

static tarn_code check_summary(checker *c, const tarn_manifest *m, const tarn_spec *spec, int32_t k,
                               const manifest_entries *entries, tarn_error *err) {
    for (int64_t i = 0; i < entries->count; i++) {
        const tarn_file *f = &entries->items[i].file;
        if (entries->items[i].status == TARN_ENTRY_DELETED || f->partition[k].type == NULL ||
            f->partition[k].type->kind == TARN_UNKNOWN) {
            continue;
        }
        const char *problem = against_summary(&m->partitions[k], &f->partition[k]);
        if (problem != NULL) {
            return check_found(c, CHECK_PARTITION_SUMMARY, m->path, err,
                               "partition field \"%.*s\" in the manifest list: %s (%.*s)",
                               STR_ARG(spec->fields[k].name), problem, STR_ARG(f->path));
        }
    }
    return TARN_OK;
}

static tarn_code check_summaries(checker *c, const tarn_manifest *m, const tarn_spec *spec,
                                 const manifest_entries *entries, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (m->partitions == NULL || spec == NULL) {
        return TARN_OK;
    }
    if (m->n_partitions != spec->n_fields) {
        return check_found(c, CHECK_PARTITION_SUMMARY, m->path, err,
                           "the manifest list had %d partition summaries for the %d fields of "
                           "spec %d",
                           m->n_partitions, spec->n_fields, spec->spec_id);
    }
    for (int32_t k = 0; k < spec->n_fields && code == TARN_OK; k++) {
        code = check_summary(c, m, spec, k, entries, err);
    }
    return code;
}

tarn_code check_entries(checker *c, const tarn_manifest *manifest, const tarn_spec *spec,
                        const manifest_entries *entries, tarn_error *err) {
    tarn_code code = TARN_OK;
    totals t = {.min_sequence = -1};
    for (int64_t i = 0; i < entries->count; i++) {
        const tarn_entry *e = &entries->items[i];
        t.files[e->status]++;
        t.rows[e->status] += e->file.record_count;
        if (e->status != TARN_ENTRY_DELETED && e->sequence_number >= 0 &&
            (t.min_sequence < 0 || e->sequence_number < t.min_sequence)) {
            t.min_sequence = e->sequence_number;
        }
        if (spec != NULL) {
            TRY(check_entry(c, manifest, spec, e, err));
        }
    }
    TRY(check_totals(c, manifest, &t, err));
    TRY(check_summaries(c, manifest, spec, entries, err));
done:
    return code;
}
