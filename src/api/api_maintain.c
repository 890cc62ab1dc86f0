/* api/api_maintain.c - include/tarn/maintain.h. */
#include <tarn/maintain.h>

#include "api/handles.h"
#include "maintain/check.h"

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
