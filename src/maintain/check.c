/* maintain/check.c - the walk: the document, then snapshots, their lists and manifests. Snapshots
 * that references point to come first, and their live files are looked at together; a manifest's
 * entries are checked once, whichever snapshots share it. */
#include <stdarg.h>
#include <stdio.h>

#include "maintain/check_int.h"
#include "read/scan.h"

static const struct {
    const char *name;
    check_severity severity;
    const char *section;
} rules[] = {
#define CHECK_RULE_ROW(name, text, severity, section) {text, CHECK_##severity, section},
    CHECK_RULES(CHECK_RULE_ROW)
#undef CHECK_RULE_ROW
};

tarn_code check_found(checker *c, check_rule rule, tarn_str place, tarn_error *err, const char *fmt,
                      ...) {
    char text[1500];
    va_list args;
    va_start(args, fmt);
    const int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (rules[rule].severity == CHECK_ERROR) {
        c->counts->errors++;
    } else {
        c->counts->warnings++;
    }
    if (c->options->found == NULL) {
        return TARN_OK;
    }
    const size_t most = sizeof text - 1;
    const check_finding finding = {rules[rule].severity, rules[rule].name, rules[rule].section,
                                   place,
                                   str_make(text, len < 0              ? 0
                                                  : (size_t)len < most ? (size_t)len
                                                                       : most)};
    return c->options->found(c->options->ctx, &finding, err);
}

bool check_is_finding(tarn_code code) {
    return code != TARN_OK && code != TARN_NOMEM && code != TARN_CANCELLED && code != TARN_INTERNAL;
}

static void show_progress(checker *c) {
    if (c->options->progress != NULL) {
        c->options->progress(c->options->ctx, c->counts);
    }
}

/* ---- one manifest ---- */

static tarn_code read_entries(checker *c, tarn_arena *arena, const tarn_manifest *manifest,
                              manifest_entries *out, tarn_error *err) {
    const manifest_read_options all = {.want = MANIFEST_WANT_ALL};
    io_source *source = NULL;
    tarn_code code = store_open(c->store, manifest->path, -1, &source, err);
    if (code == TARN_OK) {
        code = manifest_read(arena, source, c->m, manifest, &all, out, err);
        source->close(source);
    }
    return code;
}

static tarn_code check_length(checker *c, const tarn_manifest *manifest, bool *there,
                              tarn_error *err) {
    store_stat_info info;
    tarn_error why = TARN_ERROR_INIT;
    tarn_code code = store_stat(c->store, manifest->path, &info, &why);
    *there = code == TARN_OK;
    if (code != TARN_OK) {
        return check_is_finding(code)
                   ? check_found(c, CHECK_MANIFEST_MISSING, manifest->path, err,
                                 "the manifest could not be found: %s", why.message)
                   : err_set(err, code, "%s", why.message);
    }
    return info.size_bytes == manifest->length
               ? TARN_OK
               : check_found(c, CHECK_MANIFEST_LENGTH, manifest->path, err,
                             "manifest_length was %lld and the file has %lld bytes",
                             (long long)manifest->length, (long long)info.size_bytes);
}

/* Digests, not paths, are kept: their number is the table's, their length is not. */
static tarn_code mark_seen(checker *c, tarn_str path, bool *first, tarn_error *err) {
    uint8_t digest[16];
    str_digest(path, digest);
    const tarn_str key = str_make(digest, sizeof digest);
    *first = map_find(&c->seen, key) == NULL;
    if (!*first) {
        return TARN_OK;
    }
    const tarn_str kept = arena_str(&c->arena, key);
    return kept.data != NULL && map_put(&c->seen, kept, NULL) != NULL ? TARN_OK : err_nomem(err);
}

/* live NULL: only what was not seen before. *whole becomes false when it could not be read. */
static tarn_code check_manifest(checker *c, const tarn_manifest *manifest, check_live *live,
                                bool *whole, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    manifest_entries entries = {0};
    tarn_error why = TARN_ERROR_INIT;
    bool first = false, there = true;
    arena_init(&arena, c->env);
    TRY(env_check_cancel(c->env, err));
    TRY(mark_seen(c, manifest->path, &first, err));
    if (!first && live == NULL) {
        goto done;
    }
    if (first) {
        c->counts->manifests++;
        TRY(check_length(c, manifest, &there, err));
    }
    if (first && there) {
        TRY(check_manifest_header(c, manifest, err));
    }
    code = there ? read_entries(c, &arena, manifest, &entries, &why) : TARN_NOT_FOUND;
    if (code != TARN_OK) {
        *whole = false;
        code = !check_is_finding(code) ? err_set(err, code, "%s", why.message)
               : first && there
                   ? check_found(c, CHECK_MANIFEST_UNREADABLE, manifest->path, err,
                                 "the manifest could not be read: %s (%s)", why.message, why.detail)
                   : TARN_OK;
        goto done;
    }
    if (first) {
        const int32_t spec_id =
            entries.count > 0 ? entries.items[0].file.spec_id : manifest->spec_id;
        c->counts->entries += entries.count;
        TRY(check_entries(c, manifest, metadata_spec_by_id(c->m, spec_id), &entries, err));
    }
    if (live != NULL) {
        TRY(check_live_add(live, manifest, &entries, err));
    }
    show_progress(c);
done:
    arena_release(&arena);
    return code;
}

/* ---- one snapshot ---- */

static tarn_code check_list_row(checker *c, const tarn_snapshot *s, const tarn_manifest *manifest,
                                tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_str place = s->manifest_list;
    if (manifest->spec_id >= 0 && metadata_spec_by_id(c->m, manifest->spec_id) == NULL) {
        TRY(check_found(c, CHECK_SPEC, place, err,
                        "manifest %.*s was of partition spec %d, which "
                        "the table has not",
                        STR_ARG(manifest->path), manifest->spec_id));
    }
    if (c->m->format_version == 1 && manifest->is_deletes) {
        TRY(check_found(c, CHECK_MANIFEST_CONTENT, place, err,
                        "manifest %.*s held deletes in a table of version 1",
                        STR_ARG(manifest->path)));
    }
    if (manifest->sequence_number > s->sequence_number) {
        TRY(check_found(c, CHECK_SEQUENCE, place, err,
                        "manifest %.*s had sequence number %lld in a snapshot of %lld",
                        STR_ARG(manifest->path), (long long)manifest->sequence_number,
                        (long long)s->sequence_number));
    }
    if (manifest->min_sequence_number > manifest->sequence_number) {
        TRY(check_found(c, CHECK_SEQUENCE, place, err,
                        "manifest %.*s had min_sequence_number %lld above its sequence number %lld",
                        STR_ARG(manifest->path), (long long)manifest->min_sequence_number,
                        (long long)manifest->sequence_number));
    }
done:
    return code;
}

static tarn_code check_manifests(checker *c, const tarn_snapshot *s, const tarn_manifest *list,
                                 int32_t n, check_live *live, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool whole = true;
    for (int32_t i = 0; i < n; i++) {
        TRY(check_list_row(c, s, &list[i], err));
    }
    for (int deletes = 0; deletes < 2; deletes++) {
        for (int32_t i = 0; i < n; i++) {
            if (list[i].is_deletes == (deletes == 1)) {
                TRY(check_manifest(c, &list[i], live, &whole, err));
            }
        }
    }
    if (live != NULL) {
        TRY(check_live_end(live, whole, err));
    }
done:
    return code;
}

static tarn_code check_snapshot(checker *c, const tarn_snapshot *s, bool is_head, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    const tarn_manifest *list = NULL;
    int32_t n = 0;
    check_live *live = NULL;
    tarn_error why = TARN_ERROR_INIT;
    arena_init(&arena, c->env);
    c->counts->snapshots++;
    code = snapshot_manifests(&arena, c->store, s, &list, &n, &why);
    if (code != TARN_OK) {
        code = check_is_finding(code)
                   ? check_found(c, CHECK_LIST_UNREADABLE,
                                 s->manifest_list.len > 0 ? s->manifest_list : c->location, err,
                                 "the manifest list of snapshot %lld could not be read: %s (%s)",
                                 (long long)s->snapshot_id, why.message, why.detail)
                   : err_set(err, code, "%s", why.message);
        goto done;
    }
    if (s->manifest_list.len > 0) {
        TRY(check_list_header(c, s->manifest_list, err));
    }
    if (is_head) {
        TRY(check_live_new(c, s, &live, err));
    }
    TRY(check_manifests(c, s, list, n, live, err));
    show_progress(c);
done:
    check_live_free(live);
    arena_release(&arena);
    return code;
}

static bool is_head(const tarn_metadata *m, int64_t snapshot_id) {
    for (int32_t i = 0; i < m->n_refs; i++) {
        if (m->refs[i].snapshot_id == snapshot_id) {
            return true;
        }
    }
    return false;
}

tarn_code check_table(tarn_env *env, tarn_store *store, const tarn_metadata *metadata,
                      tarn_str location, const check_options *options, check_counts *out,
                      tarn_error *err) {
    tarn_code code = TARN_OK;
    checker c = {.env = env,
                 .store = store,
                 .m = metadata,
                 .location = location,
                 .options = options,
                 .counts = out};
    memset(out, 0, sizeof *out);
    arena_init(&c.arena, env);
    map_init(&c.seen, &c.arena);
    TRY(check_columns_find(&c, err));
    TRY(check_metadata(&c, err));
    for (int heads = 1; heads >= 0; heads--) {
        for (int32_t i = 0; i < metadata->n_snapshots; i++) {
            const tarn_snapshot *s = metadata->snapshots[i];
            if (is_head(metadata, s->snapshot_id) == (heads == 1)) {
                TRY(check_snapshot(&c, s, heads == 1, err));
            }
        }
    }
done:
    arena_release(&c.arena);
    return code;
}
