/* catalog/catalog_folder.c - metadata documents by their file names: which versions a folder holds
 * and which is current. The hint is only a hint: it is followed forward, and when it is missing,
 * unreadable or points to nothing, the folder is listed. */
#include "catalog/catalog_int.h"

#define HINT_BYTES_MAX 1024
#define FIND_TRIES     5
#define LOAD_TRIES     5
#define STEPS_MAX      8

/* Digits of s up to 18 (so that nothing overflows); returns how many. */
static size_t parse_digits(tarn_str s, int64_t *number) {
    size_t i = 0;
    *number = 0;
    while (i < s.len && i < 18 && s.data[i] >= '0' && s.data[i] <= '9') {
        *number = *number * 10 + (s.data[i] - '0');
        i++;
    }
    return i;
}

static bool is_document_suffix(tarn_str s) {
    return str_is(s, ".metadata.json") || str_is(s, ".gz.metadata.json") ||
           str_is(s, ".metadata.json.gz");
}

bool folder_parse_version(tarn_str file_name, int64_t *number) {
    if (file_name.len < 2 || file_name.data[0] != 'v') {
        return false;
    }
    tarn_str rest = str_from(file_name, 1);
    size_t digits = parse_digits(rest, number);
    return digits > 0 && *number > 0 && is_document_suffix(str_from(rest, digits));
}

bool folder_parse_sequence(tarn_str file_name, int64_t *number) {
    size_t digits = parse_digits(file_name, number);
    tarn_str rest = str_from(file_name, digits);
    return digits > 0 && rest.len > 0 && rest.data[0] == '-' &&
           (str_ends_with(rest, STR(".metadata.json")) ||
            str_ends_with(rest, STR(".metadata.json.gz")));
}

tarn_str folder_file_name(tarn_str path) {
    size_t slash;
    return str_find_last_char(path, '/', &slash) ? str_from(path, slash + 1) : path;
}

const char *folder_version_name(tarn_arena *arena, int64_t number, bool gzip) {
    return arena_printf(arena, "v%lld%s.metadata.json", (long long)number, gzip ? ".gz" : "");
}

tarn_code folder_find_version(tarn_store *store, tarn_arena *arena, tarn_str folder, int64_t number,
                              tarn_str *location, tarn_error *err) {
    static const char *const SPELLINGS[] = {"v%lld.metadata.json", "v%lld.gz.metadata.json",
                                            "v%lld.metadata.json.gz"};
    *location = STR_NULL;
    for (size_t i = 0; i < sizeof SPELLINGS / sizeof SPELLINGS[0]; i++) {
        char name[64];
        store_stat_info info;
        const char *pattern = SPELLINGS[i];
        const char *tail = pattern + strlen("v%lld");
        size_t len = 1 + str_from_i64(number, name + 1);
        name[0] = 'v';
        memcpy(name + len, tail, strlen(tail) + 1);
        const char *path = store_join(arena, folder, str_of(name));
        if (path == NULL) {
            return err_nomem(err);
        }
        tarn_code code = store_stat(store, str_of(path), &info, err);
        if (code == TARN_OK) {
            *location = str_of(path);
        }
        if (code != TARN_NOT_FOUND) {
            return code;
        }
    }
    err_reset(err);
    return TARN_OK;
}

/* The number that the hint says; 0 when it says none. */
static tarn_code read_hint(tarn_store *store, tarn_arena *arena, tarn_str folder, int64_t *number,
                           tarn_error *err) {
    tarn_buf text;
    buf_init(&text, store->env, HINT_BYTES_MAX);
    *number = 0;
    const char *path = store_join(arena, folder, STR(FOLDER_HINT_NAME));
    if (path == NULL) {
        return err_nomem(err);
    }
    tarn_code code = store_get(store, str_of(path), HINT_BYTES_MAX, &text, NULL);
    if (code == TARN_OK &&
        (!str_to_i64(str_trim(buf_str(&text)), number) || *number < 0 || *number > INT64_MAX / 2)) {
        *number = 0;
    }
    buf_release(&text);
    return code == TARN_NOMEM       ? err_nomem(err)
           : code == TARN_CANCELLED ? env_check_cancel(store->env, err)
                                    : TARN_OK;
}

static tarn_code note_highest(void *ctx, tarn_str name, const store_stat_info *info,
                              tarn_error *err) {
    int64_t *highest = ctx;
    int64_t number;
    (void)err;
    if (info != NULL && folder_parse_version(name, &number) && number > *highest) {
        *highest = number;
    }
    return TARN_OK;
}

tarn_code folder_highest_version(tarn_store *store, tarn_str folder, int64_t *number,
                                 tarn_error *err) {
    *number = 0;
    return store_list_folder(store, folder, note_highest, number, err);
}

/* The highest version by listing, and where it is. What was listed may be removed as an old version
 * before it is looked at; then it is listed again. */
static tarn_code find_highest(tarn_store *store, tarn_arena *arena, tarn_str folder, int64_t *at,
                              tarn_str *found, tarn_error *err) {
    tarn_code code = TARN_OK;
    *found = STR_NULL;
    for (int tries = 0; tries < FIND_TRIES && found->data == NULL; tries++) {
        TRY(folder_highest_version(store, folder, at, err));
        if (*at == 0) {
            break;
        }
        TRY(folder_find_version(store, arena, folder, *at, found, err));
    }
done:
    return code;
}

tarn_code folder_current_version(tarn_store *store, tarn_arena *arena, tarn_str folder,
                                 const char *what, int64_t *number, tarn_str *location,
                                 tarn_error *err) {
    tarn_str found = STR_NULL;
    tarn_str next = STR_NULL;
    int64_t at = 0;
    tarn_code code;
    TRY(read_hint(store, arena, folder, &at, err));
    if (at > 0) {
        TRY(folder_find_version(store, arena, folder, at, &found, err));
    }
    if (found.data == NULL) {
        TRY(find_highest(store, arena, folder, &at, &found, err));
    }
    for (int steps = 1; found.data != NULL; steps++) {
        TRY(folder_find_version(store, arena, folder, at + 1, &next, err));
        if (next.data == NULL) {
            break;
        }
        found = next;
        at++;
        if (steps == STEPS_MAX) { /* the hint is far behind: one listing is cheaper */
            TRY(find_highest(store, arena, folder, &at, &found, err));
        }
    }
    if (found.data == NULL) {
        code =
            err_set(err, TARN_NOT_FOUND, "table %s had no metadata in %.*s", what, STR_ARG(folder));
        goto done;
    }
    *number = at;
    *location = found;
done:
    return code;
}

tarn_code folder_prefer_highest(tarn_store *store, tarn_arena *arena, tarn_str folder,
                                int64_t *number, tarn_str *location, tarn_error *err) {
    int64_t highest = 0;
    tarn_str found = STR_NULL;
    tarn_code code;
    TRY(folder_highest_version(store, folder, &highest, err));
    if (highest > *number) {
        TRY(folder_find_version(store, arena, folder, highest, &found, err));
    }
    if (found.data != NULL) {
        *number = highest;
        *location = found;
    }
done:
    return code;
}

void folder_write_hint(tarn_store *store, tarn_arena *arena, tarn_str folder, int64_t number) {
    tarn_error err = TARN_ERROR_INIT;
    char text[24];
    size_t len = str_from_i64(number, text);
    const char *path = store_join(arena, folder, STR(FOLDER_HINT_NAME));
    /* Hadoop's local file system checks a file by the sum beside it, if there is one; the sum of
     * the hint that is replaced would make the new one unreadable there. */
    const char *sum = store_join(arena, folder, STR("." FOLDER_HINT_NAME ".crc"));
    if (sum != NULL) {
        store_discard(store, str_of(sum));
    }
    if (path == NULL ||
        store_put(store, str_of(path), STORE_REPLACE, str_make(text, len), &err) != TARN_OK) {
        env_log(store->env, TARN_LOG_WARN, "catalog", "hint-kept", "%s", err.message);
    }
}
