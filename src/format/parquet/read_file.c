/* format/parquet/read_file.c - opening: magic, footer, schema, and the checks that make the rest of
 * the reader simple.
 *
 * After parquet_open: every row group has one chunk a leaf; counts of rows are not negative and
 * their sum fits; chunks have metadata and lie in this file. */
#include "format/parquet/parquet_read_int.h"

/* The footer's length and magic are read with a guess of the footer itself, to save a request. */
#define TAIL_GUESS_BYTES (64 << 10)

static tarn_code check_magic(const parquet_file *file, const uint8_t *tail, tarn_error *err) {
    const char *name = file->source->name;
    if (memcmp(tail + 4, "PARE", 4) == 0) {
        return err_set(err, TARN_UNSUPPORTED, "%s: the Parquet footer was encrypted", name);
    }
    if (memcmp(tail + 4, "PAR1", 4) != 0) {
        return err_set(err, TARN_CORRUPT, "%s: not a Parquet file (no PAR1 at its end)", name);
    }
    return TARN_OK;
}

static tarn_code read_footer(parquet_file *file, tarn_error *err) {
    io_source *source = file->source;
    const int64_t size = source->size_bytes;
    if (size < 12) {
        return err_set(err, TARN_CORRUPT, "%s: %lld bytes are too few for a Parquet file",
                       source->name, (long long)size);
    }
    const int64_t tail = size < TAIL_GUESS_BYTES ? size : TAIL_GUESS_BYTES;
    uint8_t *bytes = arena_alloc(&file->arena, (size_t)tail);
    if (bytes == NULL) {
        return err_nomem(err);
    }
    tarn_code code = io_read_at(source, size - tail, bytes, (size_t)tail, err);
    if (code == TARN_OK) {
        code = check_magic(file, bytes + tail - 8, err);
    }
    if (code != TARN_OK) {
        return code;
    }
    file->tail = bytes;
    file->tail_start = size - tail;
    const int64_t len = num_load_u32(bytes + tail - 8);
    if (len > size - 12) {
        return err_set(err, TARN_CORRUPT, "%s: a footer of %lld bytes in a file of %lld",
                       source->name, (long long)len, (long long)size);
    }
    const uint8_t *footer = bytes + tail - 8 - len;
    if (len > tail - 8) {
        uint8_t *more = arena_alloc(&file->arena, (size_t)len);
        if (more == NULL) {
            return err_nomem(err);
        }
        code = io_read_at(source, size - 8 - len, more, (size_t)len, err);
        footer = more;
    }
    if (code == TARN_OK) {
        code = thrift_decode(&file->arena, &parquet_footer_thrift, str_make(footer, (size_t)len),
                             "Parquet footer", &file->footer, NULL, err);
    }
    return code;
}

static tarn_code check_chunk(const parquet_file *file, int32_t group, int32_t leaf,
                             tarn_error *err) {
    const parquet_chunk *chunk = &file->footer.row_groups[group].columns[leaf];
    tarn_str path = file->schema->leaves[leaf].path;
    if (!THRIFT_HAS(chunk, PARQUET_CHUNK_META) && !THRIFT_HAS(chunk, PARQUET_CHUNK_CRYPTO)) {
        return err_set(err, TARN_CORRUPT, "column %.*s of row group %d had no metadata",
                       STR_ARG(path), group);
    }
    if (THRIFT_HAS(chunk, PARQUET_CHUNK_META) && chunk->meta.num_values < 0) {
        return err_set(err, TARN_CORRUPT, "column %.*s of row group %d had %lld values",
                       STR_ARG(path), group, (long long)chunk->meta.num_values);
    }
    return TARN_OK;
}

static tarn_code check_groups(parquet_file *file, tarn_error *err) {
    const parquet_footer *footer = &file->footer;
    int64_t *first = ARENA_ARRAY(&file->arena, int64_t, (size_t)footer->n_row_groups + 1);
    if (first == NULL) {
        return err_nomem(err);
    }
    for (int32_t g = 0; g < footer->n_row_groups; g++) {
        const parquet_row_group *group = &footer->row_groups[g];
        if (group->n_columns != file->schema->n_leaves) {
            return err_set(err, TARN_CORRUPT, "row group %d had %d columns, the schema has %d", g,
                           group->n_columns, file->schema->n_leaves);
        }
        if (group->num_rows < 0 || !num_add_i64(first[g], group->num_rows, &first[g + 1])) {
            return err_set(err, TARN_CORRUPT, "row group %d had %lld rows", g,
                           (long long)group->num_rows);
        }
        for (int32_t i = 0; i < group->n_columns; i++) {
            tarn_code code = check_chunk(file, g, i, err);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    file->group_first_rows = first;
    return TARN_OK;
}

tarn_code parquet_open(tarn_env *env, io_source *source, const parquet_options *options,
                       parquet_file **out, tarn_error *err) {
    parquet_file *file = env_calloc(env, 1, sizeof *file);
    if (file == NULL) {
        return err_nomem(err);
    }
    tarn_code code = TARN_OK;
    file->env = env;
    file->source = source;
    file->options = options != NULL ? *options : (parquet_options){0};
    arena_init(&file->arena, env);
    TRY(read_footer(file, err));
    if (THRIFT_HAS(&file->footer, PARQUET_FOOTER_ENCRYPTION)) {
        /* A readable footer; columns with keys are refused when they are read. */
        env_log(env, TARN_LOG_DEBUG, "format", "parquet.encrypted", "file=%s", source->name);
    }
    TRY(parquet_schema_from_elements(&file->arena, file->footer.schema, file->footer.n_schema,
                                     file->options.int96_zoned, &file->schema, err));
    TRY(check_groups(file, err));
    *out = file;
    file = NULL;
done:
    if (code != TARN_OK) {
        code = err_add(err, code, "file %s", source->name);
    }
    parquet_close(file);
    return code;
}

void parquet_close(parquet_file *file) {
    if (file != NULL) {
        arena_release(&file->arena);
        env_free(file->env, file);
    }
}

const parquet_schema *parquet_file_schema(const parquet_file *file) {
    return file->schema;
}

const parquet_footer *parquet_file_footer(const parquet_file *file) {
    return &file->footer;
}

bool parquet_file_metadata(const parquet_file *file, const char *key, tarn_str *out) {
    for (int32_t i = 0; i < file->footer.n_key_values; i++) {
        const parquet_key_value *kv = &file->footer.key_values[i];
        if (str_is(kv->key, key) && THRIFT_HAS(kv, PARQUET_KEY_VALUE_VALUE)) {
            *out = kv->value;
            return true;
        }
    }
    return false;
}

int64_t parquet_file_rows(const parquet_file *file) {
    return file->group_first_rows[file->footer.n_row_groups];
}

int32_t parquet_group_count(const parquet_file *file) {
    return file->footer.n_row_groups;
}

int64_t parquet_group_rows(const parquet_file *file, int32_t group) {
    return file->footer.row_groups[group].num_rows;
}

int64_t parquet_group_first_row(const parquet_file *file, int32_t group) {
    return file->group_first_rows[group];
}

int64_t parquet_group_start(const parquet_file *file, int32_t group) {
    const parquet_row_group *g = &file->footer.row_groups[group];
    int64_t start = -1;
    for (int32_t i = 0; i < g->n_columns; i++) {
        const parquet_column_meta *meta = &g->columns[i].meta;
        int64_t at = meta->data_page_offset;
        if (THRIFT_HAS(meta, PARQUET_COLUMN_DICTIONARY_PAGE_OFFSET) &&
            meta->dictionary_page_offset >= 4 && meta->dictionary_page_offset < at) {
            at = meta->dictionary_page_offset;
        }
        start = start < 0 || at < start ? at : start;
    }
    return start;
}

void parquet_groups_within(const parquet_file *file, int64_t start, int64_t end, uint8_t *groups) {
    for (int32_t g = 0; g < file->footer.n_row_groups; g++) {
        const int64_t at = parquet_group_start(file, g);
        groups[g] = at >= start && at < end;
    }
}
