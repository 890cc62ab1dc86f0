/* iceberg/location.c - see location.h. */
#include "iceberg/location.h"

#include "base/num.h"

#define HASH_BITS     20
#define HASH_DIR_BITS 4
#define HASH_DIRS     3

static tarn_str without_end_slash(tarn_str s) {
    while (s.len > 1 && s.data[s.len - 1] == '/') {
        s.len--;
    }
    return s;
}

/* The folder that a property names, or the table's own below its location. */
static tarn_str folder(tarn_arena *arena, const tarn_metadata *m, const char *const *keys,
                       size_t n_keys, const char *below) {
    tarn_str value;
    for (size_t i = 0; i < n_keys; i++) {
        if (properties_get(&m->properties, keys[i], &value) && value.len > 0) {
            return without_end_slash(value);
        }
    }
    tarn_str location = without_end_slash(m->location);
    char *text = arena_printf(arena, "%.*s/%s", (int)location.len, location.data, below);
    return str_of(text);
}

/* "0101/1100/0011/11110000": bits of the name's hash as directories, so that an object store
 * spreads the keys. */
static void hash_dirs(tarn_str name, char out[HASH_BITS + HASH_DIRS + 1]) {
    uint32_t hash = num_murmur3(name.data, name.len);
    size_t at = 0;
    for (int bit = 0; bit < HASH_BITS; bit++) {
        if (bit > 0 && bit % HASH_DIR_BITS == 0 && bit / HASH_DIR_BITS <= HASH_DIRS) {
            out[at++] = '/';
        }
        out[at++] = (hash >> (HASH_BITS - 1 - bit)) & 1 ? '1' : '0';
    }
    out[at] = '\0';
}

/* "namespace/table": the last two folders of the table's location, where its data lie elsewhere, so
 * that tables which share a data path can be told apart; else empty. */
static tarn_str table_context(const tarn_metadata *m, tarn_str base) {
    tarn_str location = without_end_slash(m->location);
    size_t slash;
    if (str_starts_with(base, location)) {
        return STR("");
    }
    size_t start = 0;
    if (str_find_last_char(location, '/', &slash)) {
        bool two = str_find_last_char(str_sub(location, 0, slash), '/', &start);
        start = two || slash == 0 ? start + 1 : 0;
    }
    return str_from(location, start);
}

tarn_code location_data_file(tarn_arena *arena, const tarn_metadata *m, const tarn_spec *spec,
                             const tarn_value *partition, tarn_str name, tarn_str *out,
                             tarn_error *err) {
    static const char *const keys[] = {"write.data.path", "write.object-storage.path",
                                       "write.folder-storage.path"};
    tarn_code code = TARN_OK;
    tarn_buf path;
    bool hashed = false;
    bool with_partition = true;
    buf_init(&path, arena->env, 0);
    tarn_str base = folder(arena, m, keys, 3, "data");
    if (base.data == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(properties_bool(&m->properties, "write.object-storage.enabled", false, &hashed, err));
    if (hashed) {
        TRY(properties_bool(&m->properties, "write.object-storage.partitioned-paths", true,
                            &with_partition, err));
    }
    if (with_partition && spec->n_fields > 0) {
        TRY(spec_partition_path(spec, partition, &path, err));
        TRY(buf_append_char(&path, '/', err));
    }
    TRY(buf_append_str(&path, name, err));
    if (hashed) {
        char dirs[HASH_BITS + HASH_DIRS + 1];
        tarn_str table = table_context(m, base);
        hash_dirs(buf_str(&path), dirs);
        *out = str_of(arena_printf(arena, "%.*s/%s%s%.*s%c%.*s", (int)base.len, base.data, dirs,
                                   table.len > 0 ? "/" : "", (int)table.len, table.data,
                                   table.len > 0 || with_partition ? '/' : '-', (int)path.len,
                                   (char *)path.data));
    } else {
        *out = str_of(arena_printf(arena, "%.*s/%.*s", (int)base.len, base.data, (int)path.len,
                                   (char *)path.data));
    }
    if (out->data == NULL) {
        code = err_nomem(err);
    }
done:
    buf_release(&path);
    return code;
}

tarn_code location_metadata_file(tarn_arena *arena, const tarn_metadata *m, tarn_str name,
                                 tarn_str *out, tarn_error *err) {
    static const char *const keys[] = {"write.metadata.path"};
    tarn_str base = folder(arena, m, keys, 1, "metadata");
    if (base.data == NULL) {
        return err_nomem(err);
    }
    tarn_str path = str_of(
        arena_printf(arena, "%.*s/%.*s", (int)base.len, base.data, (int)name.len, name.data));
    if (path.data == NULL) {
        return err_nomem(err);
    }
    *out = path;
    return TARN_OK;
}
