/* dml/import_files.c - the files below a folder, with what their folders' names say of them. */
#include "base/limits.h"
#include "dml/import_int.h"

#define HIVE_NULL "__HIVE_DEFAULT_PARTITION__"

/* Hive escapes as %XX and nothing else ("+" is a plus); a percent sign that begins no escape stays.
 * Once: "100%2525" is "100%25" (B04). */
static tarn_code decode(tarn_arena *arena, tarn_str text, tarn_str *out, tarn_error *err) {
    char *bytes = arena_alloc(arena, text.len + 1);
    size_t n = 0;
    if (bytes == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < text.len; i++) {
        const int high =
            text.data[i] == '%' && i + 2 < text.len ? str_hex_digit(text.data[i + 1]) : -1;
        const int low = high >= 0 ? str_hex_digit(text.data[i + 2]) : -1;
        bytes[n++] = (char)(low >= 0 ? high << 4 | low : text.data[i]);
        i += low >= 0 ? 2 : 0;
    }
    bytes[n] = '\0';
    *out = str_make(bytes, n);
    return str_utf8_valid(*out)
               ? TARN_OK
               : err_set(err, TARN_INVALID, "folder name \"%.*s\" was not UTF-8", STR_ARG(text));
}

static tarn_code read_keys(importer *im, tarn_str below, import_file *file, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str rest = below, piece;
    int32_t n = 0;
    size_t slash = 0;
    for (size_t i = 0; i < below.len; i++) {
        n += below.data[i] == '/';
    }
    import_key *keys = ARENA_ARRAY(&im->arena, import_key, (size_t)n + 1);
    if (keys == NULL) {
        return err_nomem(err);
    }
    n = 0;
    while (str_find_char(rest, '/', &slash) && str_split(&rest, '/', &piece)) {
        size_t equals = 0;
        if (!str_find_char(piece, '=', &equals) || equals == 0) {
            continue; /* a folder that says nothing */
        }
        import_key *key = &keys[n++];
        const tarn_str value = str_from(piece, equals + 1);
        TRY(decode(&im->arena, str_sub(piece, 0, equals), &key->name, err));
        key->is_null = str_is(value, HIVE_NULL);
        TRY(decode(&im->arena, value, &key->value, err));
        for (int32_t k = 0; k + 1 < n; k++) {
            if (str_eq(keys[k].name, key->name)) {
                TRY(err_set(err, TARN_INVALID, "folder key \"%.*s\" was there twice in %.*s",
                            STR_ARG(key->name), STR_ARG(file->path)));
            }
        }
    }
    file->keys = keys;
    file->n_keys = n;
done:
    return code;
}

/* As other readers of such folders: names that begin with "_" or "." are no data, but for keys that
 * begin so ("_day=1"). */
static bool is_hidden(tarn_str below) {
    tarn_str piece;
    while (str_split(&below, '/', &piece)) {
        size_t equals = 0;
        if (piece.len > 0 && (piece.data[0] == '.' ||
                              (piece.data[0] == '_' && !str_find_char(piece, '=', &equals)))) {
            return true;
        }
    }
    return false;
}

static tarn_code on_file(void *ctx, tarn_str path, const store_stat_info *info, tarn_error *err) {
    importer *im = ctx;
    tarn_str below = str_from(path, im->options->folder.len);
    while (below.len > 0 && below.data[0] == '/') {
        below = str_from(below, 1);
    }
    if (info->size_bytes == 0 || is_hidden(below)) {
        return TARN_OK;
    }
    if (im->n_files == INT32_MAX - 1) {
        return err_set(err, TARN_LIMIT, "folder %.*s had more than %d files",
                       STR_ARG(im->options->folder), INT32_MAX - 1);
    }
    if (im->n_files == im->files_cap) {
        const int64_t cap = im->files_cap * 2 + 64;
        import_file *files =
            arena_grow(&im->arena, im->files, (size_t)im->files_cap * sizeof *files,
                       (size_t)cap * sizeof *files);
        if (files == NULL) {
            return err_nomem(err);
        }
        im->files = files;
        im->files_cap = cap;
    }
    import_file *file = &im->files[im->n_files];
    *file = (import_file){arena_str(&im->arena, path), info->size_bytes, 0, NULL};
    if (file->path.data == NULL) {
        return err_nomem(err);
    }
    im->n_files++;
    return read_keys(im, below, file, err);
}

typedef struct name_search {
    tarn_str name;
    bool found;
} name_search;

static tarn_code see_name(void *ctx, tarn_str name, const store_stat_info *info, tarn_error *err) {
    name_search *search = ctx;
    (void)info;
    (void)err;
    search->found |= str_eq(name, search->name);
    return TARN_OK;
}

/* Of a folder without files: whether its parent has it at all. */
static tarn_code nothing_below(importer *im, tarn_error *err) {
    tarn_str folder = im->options->folder;
    size_t slash = 0;
    name_search search = {folder, true};
    if (str_find_last_char(folder, '/', &slash) && slash + 1 < folder.len) {
        search = (name_search){str_from(folder, slash + 1), false};
        tarn_code code = store_list_folder(im->catalog->store, str_sub(folder, 0, slash + 1),
                                           see_name, &search, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    return search.found
               ? err_set(err, TARN_NOT_FOUND, "there were no files below %.*s", STR_ARG(folder))
               : err_set(err, TARN_NOT_FOUND, "folder %.*s did not exist", STR_ARG(folder));
}

tarn_code import_list(importer *im, tarn_error *err) {
    tarn_code code = store_list(im->catalog->store, im->options->folder, on_file, im, err);
    return code != TARN_OK || im->n_files > 0 ? code : nothing_below(im, err);
}

/* ---- opening ---- */

static tarn_code find_format(const import_file *file, io_source *source, tarn_file_format *out,
                             tarn_error *err) {
    char magic[4] = {0};
    tarn_code code = source->size_bytes >= 4 ? io_read_at(source, 0, magic, 4, err) : TARN_OK;
    if (code != TARN_OK) {
        return code;
    }
    if (memcmp(magic, "PAR1", 4) == 0 || memcmp(magic, "PARE", 4) == 0) {
        *out = TARN_FORMAT_PARQUET;
    } else if (memcmp(magic, "Obj\1", 4) == 0) {
        *out = TARN_FORMAT_AVRO;
    } else if (memcmp(magic, "ORC", 3) == 0) {
        code =
            err_set(err, TARN_UNSUPPORTED, "%.*s was ORC, which is not read", STR_ARG(file->path));
    } else {
        code = err_set(err, TARN_INVALID, "%.*s was neither Parquet nor Avro", STR_ARG(file->path));
    }
    return code;
}

tarn_code import_open_file(importer *im, const import_file *file, import_open *out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(out, 0, sizeof *out);
    out->env = im->env;
    out->file = file;
    TRY(store_open(im->catalog->store, file->path, file->size_bytes, &out->source, err));
    TRY(find_format(file, out->source, &out->format, err));
    if (out->format == TARN_FORMAT_PARQUET) {
        TRY(parquet_open(im->env, out->source, NULL, &out->parquet, err));
        out->root = parquet_file_schema(out->parquet)->root;
    } else {
        TRY(avro_open(im->env, out->source, &out->avro, err));
        out->source = NULL; /* the file's now */
        out->root = avro_file_type(out->avro);
    }
done:
    if (code != TARN_OK) {
        code = err_add(err, code, "file %.*s", STR_ARG(file->path));
        import_close_file(out);
    }
    return code;
}

void import_close_file(import_open *open) {
    parquet_close(open->parquet);
    avro_close(open->avro);
    if (open->source != NULL) {
        open->source->close(open->source);
    }
    memset(open, 0, sizeof *open);
}
