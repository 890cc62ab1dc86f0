/* service/intake_reject.c - acknowledged rows that their table does not take any more (it is gone,
 * or its schema has changed): told, and kept as NDJSON in the log's folder. After a kill some may
 * be there twice. */
#include "base/json.h"
#include "service/intake_int.h"

tarn_code intake_reject_row(void *ctx, int64_t line, tarn_str raw, tarn_str reason,
                            tarn_error *err) {
    intake_rejects *r = ctx;
    json_writer w;
    tarn_code code = TARN_OK;
    json_begin(&w, &r->text, false, err);
    json_put_object(&w);
    json_member_str(&w, "table", str_of(r->ident));
    json_member_i64(&w, "position", r->position);
    json_member_i64(&w, "line", line);
    json_member_str(&w, "reason", r->reason.len > 0 ? r->reason : reason);
    json_member_str(&w, "row", raw);
    json_end_object(&w);
    TRY(json_end(&w));
    TRY(buf_append_char(&r->text, '\n', err));
    r->n++;
done:
    return code;
}

tarn_code intake_reject_body(intake_rejects *r, tarn_str body, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str line;
    int64_t number = 0;
    while (code == TARN_OK && body.len > 0 && str_split(&body, '\n', &line)) {
        number++;
        if (str_trim(line).len > 0) {
            code = intake_reject_row(r, number, str_trim(line), STR(""), err);
        }
    }
    return code;
}

void intake_rejects_begin(intake_rejects *r, const intake_table *t, const char *ident) {
    memset(r, 0, sizeof *r);
    r->in = t->in;
    r->ident = ident;
    r->first = t->work.first;
    buf_init(&r->text, t->in->env, 0);
}

tarn_code intake_rejects_end(intake_rejects *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf path;
    if (r->n == 0) {
        return TARN_OK;
    }
    buf_init(&path, r->in->env, 0);
    TRY(buf_printf(&path, err, "%s/rejected-%012lld.ndjson", r->in->options.dir,
                   (long long)r->first));
    TRY(store_put(r->in->folder, buf_str(&path), STORE_REPLACE, buf_str(&r->text), err));
    (void)atomic_fetch_add(&r->in->counters.rejected, r->n);
    env_log(r->in->env, TARN_LOG_WARN, "service", "intake",
            "%lld rows of table %s were not taken and are in %.*s", (long long)r->n, r->ident,
            STR_ARG(buf_str(&path)));
done:
    buf_release(&path);
    return code;
}
