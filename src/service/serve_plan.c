/* service/serve_plan.c - scans planned for clients (REST specification, "planTableScan",
 * "fetchPlanningResult", "cancelPlanning", "fetchScanTasks").
 *
 * Planning is done while the client waits, and nothing is kept: a plan's id is the request itself
 * with its snapshot fixed, and a plan task is the same with a range of tasks, so that any server on
 * the same catalog answers, also after a restart. */
#include "base/map.h"
#include "iceberg/scan_json.h"
#include "read/scan.h"
#include "service/service_int.h"

#define TASKS_A_REPLY 5000

/* What was asked for. */
typedef struct plan_request {
    const json_value *filter; /* NULL: all rows */
    scan_options options;
    bool exact;       /* the filter says no less than the JSON */
    int64_t from, to; /* of the tasks; to -1: a first part */
} plan_request;

static tarn_code read_names(service_request *r, const json_value *body, plan_request *out,
                            tarn_error *err) {
    const json_value *list = json_get(body, "select");
    if (list == NULL || list->kind == JSON_NULL) {
        return TARN_OK;
    }
    if (list->kind != JSON_ARRAY || list->count > INT32_MAX) {
        return err_set(err, TARN_INVALID, "member \"select\" is no array");
    }
    tarn_str *names = ARENA_ARRAY(&r->arena, tarn_str, list->count + 1);
    if (names == NULL) {
        return err_nomem(err);
    }
    for (const json_value *v = list->first; v != NULL; v = v->next) {
        if (!json_str(v, &names[out->options.n_columns++])) {
            return err_set(err, TARN_INVALID, "a name of \"select\" is no string");
        }
    }
    out->options.columns = list->count > 0 ? names : NULL;
    return TARN_OK;
}

static tarn_code want_i64(const json_value *body, const char *name, int64_t fallback, int64_t *out,
                          tarn_error *err) {
    const json_value *v = json_get(body, name);
    *out = fallback;
    if (v == NULL || v->kind == JSON_NULL || json_i64(v, out)) {
        return TARN_OK;
    }
    return err_set(err, TARN_INVALID, "member \"%s\" is no whole number", name);
}

static tarn_code read_snapshots(const json_value *body, const tarn_metadata *m, plan_request *out,
                                tarn_error *err) {
    scan_options *o = &out->options;
    int64_t start, end;
    tarn_code code = TARN_OK;
    TRY(want_i64(body, "snapshot-id", TARN_NO_SNAPSHOT, &o->snapshot_id, err));
    TRY(want_i64(body, "start-snapshot-id", TARN_NO_SNAPSHOT, &start, err));
    TRY(want_i64(body, "end-snapshot-id", TARN_NO_SNAPSHOT, &end, err));
    if (start != TARN_NO_SNAPSHOT || end != TARN_NO_SNAPSHOT) {
        if (end == TARN_NO_SNAPSHOT || o->snapshot_id != TARN_NO_SNAPSHOT) {
            TRY(err_set(err, TARN_INVALID,
                        "an incremental scan has an end-snapshot-id and no snapshot-id"));
        }
        o->snapshot_id = end;
        o->appends = true;
        o->from_snapshot_id = start;
    }
    if (o->snapshot_id == TARN_NO_SNAPSHOT) {
        o->snapshot_id = m->current_snapshot_id;
    } else if (metadata_snapshot_by_id(m, o->snapshot_id) == NULL) {
        TRY(err_set(err, TARN_INVALID, "there is no snapshot %lld", (long long)o->snapshot_id));
    }
done:
    return code;
}

static tarn_code read_request(service_request *r, const json_value *body, const tarn_metadata *m,
                              plan_request *out, tarn_error *err) {
    scan_options *o = &out->options;
    bool case_sensitive = true;
    tarn_code code = TARN_OK;
    memset(out, 0, sizeof *out);
    *o = (scan_options){.metadata = m, .limit = -1, .from_snapshot_id = TARN_NO_SNAPSHOT};
    TRY(read_snapshots(body, m, out, err));
    (void)json_bool(json_get(body, "case-sensitive"), &case_sensitive);
    (void)json_bool(json_get(body, "use-snapshot-schema"), &o->snapshot_schema);
    o->case_insensitive = !case_sensitive;
    TRY(read_names(r, body, out, err));
    TRY(want_i64(body, "tarn-from", 0, &out->from, err));
    TRY(want_i64(body, "tarn-to", -1, &out->to, err));
    out->exact = true;
    out->filter = json_get(body, "filter");
    if (out->filter != NULL && out->filter->kind == JSON_NULL) {
        out->filter = NULL;
    }
    const tarn_snapshot *snapshot = metadata_snapshot_by_id(m, o->snapshot_id);
    const tarn_schema *schema = o->snapshot_schema && snapshot != NULL
                                    ? metadata_snapshot_schema(m, snapshot)
                                    : metadata_schema(m);
    if (out->filter != NULL) {
        TRY(filter_from_json(&r->arena, out->filter, schema->root, case_sensitive, &o->filter,
                             &out->exact, err));
    }
done:
    return code;
}

/* ---- the answer ---- */

/* The request with its snapshot fixed and, with to, a range of its tasks. */
static tarn_code put_request(const plan_request *p, int64_t from, int64_t to, tarn_buf *out,
                             tarn_error *err) {
    const scan_options *o = &p->options;
    json_writer w;
    json_begin(&w, out, false, err);
    json_put_object(&w);
    if (o->appends) {
        json_member_i64(&w, "end-snapshot-id", o->snapshot_id);
        if (o->from_snapshot_id != TARN_NO_SNAPSHOT) {
            json_member_i64(&w, "start-snapshot-id", o->from_snapshot_id);
        }
    } else if (o->snapshot_id != TARN_NO_SNAPSHOT) {
        json_member_i64(&w, "snapshot-id", o->snapshot_id);
    }
    json_member_bool(&w, "case-sensitive", !o->case_insensitive);
    json_member_bool(&w, "use-snapshot-schema", o->snapshot_schema);
    if (p->filter != NULL) {
        json_put_name(&w, STR("filter"));
        json_put_value(&w, p->filter);
    }
    if (to >= 0) {
        json_member_i64(&w, "tarn-from", from);
        json_member_i64(&w, "tarn-to", to);
    }
    json_end_object(&w);
    return json_end(&w);
}

/* Delete files of the tasks, each once: its number by its entry. */
typedef struct delete_list {
    tarn_map numbers;
    json_writer *w;
} delete_list;

static tarn_code put_delete_files(const tarn_plan *plan, int64_t from, int64_t to,
                                  delete_list *list, tarn_error *err) {
    json_put_name(list->w, STR("delete-files"));
    json_put_array(list->w);
    for (int64_t i = from; i < to; i++) {
        const scan_task *task = &plan->tasks[i];
        for (int32_t d = 0; d < task->n_deletes; d++) {
            bool added;
            int64_t n = (int64_t)list->numbers.count;
            map_entry *e = map_put(
                &list->numbers, str_make((const char *)&task->deletes[d], sizeof(void *)), &added);
            if (e == NULL) {
                return err_nomem(err);
            }
            if (added) {
                e->value.i64 = n;
                content_file_put_json(&task->deletes[d]->file, list->w);
            }
        }
    }
    json_end_array(list->w);
    return TARN_OK;
}

static void put_task(const plan_request *p, const scan_task *task, const delete_list *list) {
    json_writer *w = list->w;
    json_put_object(w);
    json_put_name(w, STR("data-file"));
    content_file_put_json(&task->file, w);
    if (task->n_deletes > 0) {
        json_put_name(w, STR("delete-file-references"));
        json_put_array(w);
        for (int32_t d = 0; d < task->n_deletes; d++) {
            json_put_i64(w, map_find(&list->numbers,
                                     str_make((const char *)&task->deletes[d], sizeof(void *)))
                                ->value.i64);
        }
        json_end_array(w);
    }
    json_put_name(w, STR("residual-filter"));
    if (!p->exact) {
        json_put_value(w, p->filter);
    } else if (task->residual != NULL) {
        filter_put_json(task->residual, w);
    } else {
        json_put_bool(w, true);
    }
    json_end_object(w);
}

/* The tasks that this answer leaves for later, as tokens. */
static tarn_code put_plan_tasks(const plan_request *p, int64_t from, int64_t n_tasks,
                                json_writer *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf token;
    buf_init(&token, w->out->env, 0);
    json_put_name(w, STR("plan-tasks"));
    json_put_array(w);
    for (; from < n_tasks; from += TASKS_A_REPLY) {
        int64_t to = from + TASKS_A_REPLY < n_tasks ? from + TASKS_A_REPLY : n_tasks;
        buf_reset(&token);
        TRY(put_request(p, from, to, &token, err));
        json_put_string(w, buf_str(&token));
    }
    json_end_array(w);
done:
    buf_release(&token);
    return code;
}

static tarn_code put_tasks(service_request *r, const plan_request *p, const tarn_plan *plan,
                           json_writer *w, tarn_error *err) {
    delete_list list = {.w = w};
    bool whole = p->to < 0;
    int64_t to = whole ? TASKS_A_REPLY : p->to;
    int64_t from = p->from;
    tarn_code code = TARN_OK;
    map_init(&list.numbers, &r->arena);
    to = to < plan->n_tasks ? to : plan->n_tasks;
    from = from < 0 ? 0 : from < to ? from : to;
    if (whole) {
        TRY(put_plan_tasks(p, to, plan->n_tasks, w, err));
    }
    TRY(put_delete_files(plan, from, to, &list, err));
    json_put_name(w, STR("file-scan-tasks"));
    json_put_array(w);
    for (int64_t i = from; i < to; i++) {
        put_task(p, &plan->tasks[i], &list);
    }
    json_end_array(w);
done:
    return code;
}

/* A plan's id stands in paths: the request as hex. */
static tarn_code put_plan_id(const plan_request *p, json_writer *w, tarn_error *err) {
    static const char digits[] = "0123456789abcdef";
    tarn_buf text, hex;
    tarn_code code = TARN_OK;
    buf_init(&text, w->out->env, 0);
    buf_init(&hex, w->out->env, 0);
    TRY(put_request(p, 0, -1, &text, err));
    for (size_t i = 0; i < text.len; i++) {
        TRY(buf_append_char(&hex, digits[text.data[i] >> 4], err));
        TRY(buf_append_char(&hex, digits[text.data[i] & 15], err));
    }
    json_member_str(w, "plan-id", buf_str(&hex));
done:
    buf_release(&hex);
    buf_release(&text);
    return code;
}

/* Plans and answers; with status, as the result of planning, else as tasks alone. */
static tarn_code answer(service_request *r, service_reply *reply, const json_value *request,
                        bool status, tarn_error *err) {
    rest_service *s = r->service;
    tarn_table_version *version = NULL;
    tarn_plan *plan = NULL;
    plan_request p;
    json_writer w;
    tarn_code code = TARN_OK;
    TRY(catalog_load(s->catalog, &r->table, &version, err));
    TRY(read_request(r, request, version->metadata, &p, err));
    TRY(plan_new(s->env, s->catalog->store, &p.options, &plan, err));
    json_begin(&w, &reply->body, false, err);
    json_put_object(&w);
    if (status) {
        json_member_str(&w, "status", STR("completed"));
        TRY(put_plan_id(&p, &w, err));
    }
    TRY(put_tasks(r, &p, plan, &w, err));
    json_end_object(&w);
    TRY(json_end(&w));
    reply->status = 200;
done:
    if (code == TARN_NOT_FOUND && version != NULL) { /* the table is there; its file is not */
        err->code = code = TARN_IO;
    }
    plan_free(plan);
    table_version_release(version);
    return code;
}

tarn_code rest_plan_scan(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *body;
    tarn_code code = request_json(r, &body, err);
    return code == TARN_OK ? answer(r, reply, body, true, err) : code;
}

/* The request that an id or a plan task is; false: it is none of ours. */
static bool parse_token(service_request *r, tarn_str text, const json_value **out) {
    json_value *json = NULL;
    if (json_parse(&r->arena, text, "token", &json, NULL) != TARN_OK || json->kind != JSON_OBJECT) {
        return false;
    }
    *out = json;
    return json_get(json, "case-sensitive") != NULL;
}

static bool parse_plan_id(service_request *r, const json_value **out) {
    char *text = arena_alloc(&r->arena, r->id.len / 2 + 1);
    if (text == NULL || r->id.len % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < r->id.len; i++) {
        char c = r->id.data[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) {
            return false;
        }
        text[i / 2] = (char)(i % 2 == 0 ? digit << 4 : text[i / 2] | digit);
    }
    return parse_token(r, str_make(text, r->id.len / 2), out);
}

static bool need_plan_id(service_request *r, service_reply *reply, const json_value **out) {
    if (parse_plan_id(r, out)) {
        return true;
    }
    reply_refuse(r, reply, 404, "NoSuchPlanIdException", "There is no such plan");
    return false;
}

tarn_code rest_load_plan(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *request;
    return need_plan_id(r, reply, &request) ? answer(r, reply, request, true, err) : TARN_OK;
}

tarn_code rest_cancel_plan(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *request;
    tarn_table_version *version = NULL;
    tarn_code code = catalog_load(r->service->catalog, &r->table, &version, err);
    table_version_release(version);
    if (code == TARN_OK && need_plan_id(r, reply, &request)) {
        reply->status = 204; /* there is nothing to let go of */
    }
    return code;
}

tarn_code rest_scan_tasks(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *body;
    const json_value *request;
    tarn_str token;
    tarn_code code = TARN_OK;
    TRY(request_json(r, &body, err));
    TRY(request_member_str(body, "plan-task", true, &token, err));
    if (!parse_token(r, token, &request) || json_get(request, "tarn-to") == NULL) {
        reply_refuse(r, reply, 404, "NoSuchPlanTaskException", "There is no such plan task");
        goto done;
    }
    TRY(answer(r, reply, request, false, err));
done:
    return code;
}
