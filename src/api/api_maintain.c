/* api/api_maintain.c - include/tarn/maintain.h. */
#include <tarn/maintain.h>

#include "api/api_outcome.h"
#include "dml/import.h"
#include "maintain/check.h"
#include "store/store_path.h"

typedef struct check_call {
    const tarn_check_options *options;
    tarn_env *env;
} check_call;

static tarn_code pass_finding(void *ctx, const check_finding *f, tarn_error *err) {
    const check_call *call = ctx;
    tarn_arena arena;
    arena_init(&arena, call->env);
    const tarn_str place = arena_str(&arena, f->place), message = arena_str(&arena, f->message);
    tarn_code code = TARN_OK;
    if (place.data == NULL || message.data == NULL) {
        code = err_nomem(err);
    } else {
        const tarn_finding finding = {sizeof finding, f->severity == CHECK_ERROR,
                                      f->rule,        f->section,
                                      place.data,     message.data};
        if (call->options->found(call->options->ctx, &finding) != 0) {
            code = err_set(err, TARN_CANCELLED, "the check was ended by its caller");
        }
    }
    arena_release(&arena);
    return code;
}

static void fill_report(tarn_check_report *out, const check_counts *from) {
    out->errors = from->errors;
    out->warnings = from->warnings;
    out->snapshots = from->snapshots;
    out->manifests = from->manifests;
    out->entries = from->entries;
    out->files = from->files;
    out->opened = from->opened;
}

static void pass_progress(void *ctx, const check_counts *so_far) {
    const check_call *call = ctx;
    tarn_check_report report = TARN_CHECK_REPORT_INIT;
    fill_report(&report, so_far);
    call->options->progress(call->options->ctx, &report);
}

tarn_code tarn_table_check(tarn_table *table, const tarn_check_options *options,
                           tarn_check_report *report, tarn_error *err) {
    API_ERROR(err);
    const tarn_check_options defaults = TARN_CHECK_OPTIONS_INIT;
    check_call call = {options != NULL ? options : &defaults, table->env};
    check_counts counts;
    const check_options inner = {
        .deep = call.options->deep,
        .found = call.options->found != NULL ? pass_finding : NULL,
        .progress = call.options->progress != NULL ? pass_progress : NULL,
        .ctx = &call,
    };
    tarn_code code =
        check_table(table->env, table->catalog->catalog->store, table->version->metadata,
                    table->version->metadata_location, &inner, &counts, err);
    fill_report(report, &counts);
    return code;
}

tarn_code tarn_table_import(tarn_catalog_handle *catalog, const char *table, const char *folder,
                            const tarn_import_options *options, tarn_import_report *report,
                            tarn_outcome *outcome, tarn_error *err) {
    API_ERROR(err);
    const tarn_import_options defaults = TARN_IMPORT_OPTIONS_INIT;
    const tarn_import_options *o = options != NULL ? options : &defaults;
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_ident ident;
    import_result result;
    import_options inner = {.create = o->create,
                            .partition_by = str_of(o->partition_by),
                            .format_version = o->format_version,
                            .dry_run = o->dry_run,
                            .skip_existing = o->skip_existing,
                            .merge = o->merge_append,
                            .progress = o->progress,
                            .ctx = o->progress_ctx};
    memset(&result, 0, sizeof result);
    arena_init(&arena, catalog->env);
    api_reset_outcome(outcome);
    TRY(ident_parse(&arena, str_of(table), false, &ident, err));
    TRY(store_absolute(&arena, str_of(folder), &inner.folder, err));
    if (o->key_types != NULL) {
        TRY(type_columns_from_text(&arena, str_of(o->key_types), &inner.key_types, err));
    }
    TRY(api_properties(&arena, o->properties_json, "properties", &inner.properties, err));
    code = dml_import(catalog->env, catalog->catalog, &ident, &inner, &result, err);
    api_fill_outcome(outcome, &result.outcome);
    outcome->rows = code == TARN_OK ? result.rows : 0;
    outcome->files_added = code == TARN_OK ? (int32_t)result.files : 0;
    report->files = result.files;
    report->skipped = result.skipped;
    report->rows = result.rows;
    report->bytes = result.bytes;
    report->created = result.created;
done:
    table_version_release(result.outcome.version);
    arena_release(&arena);
    return code;
}
