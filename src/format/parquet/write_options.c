/* write_options.c - Iceberg's table properties as options of the Parquet writer. Keys and defaults
 * are those of Iceberg's TableProperties; a value that cannot be meant is refused here, before a
 * row is written. */
#include "format/parquet/parquet_write.h"

#include <stdio.h>

#define PREFIX        "write.parquet."
#define DELETE_PREFIX "write.delete.parquet."
#define METRICS       "write.metadata.metrics."
#define BYTES_MAX     (INT64_C(1) << 40)

void parquet_write_options_init(parquet_write_options *options) {
    memset(options, 0, sizeof *options);
    options->row_group_bytes = INT64_C(128) << 20;
    options->row_group_rows = INT64_MAX;
    options->page_bytes = INT64_C(1) << 20;
    options->page_rows = 20000;
    options->page_values = INT64_C(1) << 20;
    options->dictionary_bytes = INT64_C(2) << 20;
    options->bloom_max_bytes = INT64_C(1) << 20;
    options->page_version = 1;
    options->codec = CODEC_ZSTD;
    options->level = CODEC_LEVEL_DEFAULT;
    options->metrics_default = (parquet_metrics){PARQUET_METRICS_TRUNCATE, 16};
    options->metrics_max_inferred = 100;
}

/* One run over the properties. */
typedef struct parse {
    tarn_arena *arena;
    parquet_write_options *options;
    parquet_column_options *columns;
    size_t n_columns;
    tarn_error *err;
} parse;

static tarn_code refuse(const parse *p, const parquet_property *property, const char *want) {
    return err_set(p->err, TARN_INVALID, "property %.*s was '%.*s': not %s", STR_ARG(property->key),
                   STR_ARG(property->value), want);
}

static tarn_code read_number(const parse *p, const parquet_property *property, int64_t min,
                             int64_t max, int64_t *out) {
    int64_t v = 0;
    if (!str_to_i64(str_trim(property->value), &v) || v < min || v > max) {
        char want[64];
        (void)snprintf(want, sizeof want, "a whole number from %lld to %lld", (long long)min,
                       (long long)max);
        return refuse(p, property, want);
    }
    *out = v;
    return TARN_OK;
}

static tarn_code read_bool(const parse *p, const parquet_property *property, bool *out) {
    return str_to_bool(str_trim(property->value), out) ? TARN_OK
                                                       : refuse(p, property, "true or false");
}

static tarn_code read_metrics(const parse *p, const parquet_property *property,
                              parquet_metrics *out) {
    tarn_str s = str_trim(property->value);
    int32_t n = 0;
    if (str_eq_nocase(s, STR("none"))) {
        *out = (parquet_metrics){PARQUET_METRICS_NONE, 0};
    } else if (str_eq_nocase(s, STR("counts"))) {
        *out = (parquet_metrics){PARQUET_METRICS_COUNTS, 0};
    } else if (str_eq_nocase(s, STR("full"))) {
        *out = (parquet_metrics){PARQUET_METRICS_FULL, 0};
    } else if (s.len > 10 && str_eq_nocase(str_sub(s, 0, 9), STR("truncate(")) &&
               s.data[s.len - 1] == ')' && str_to_i32(str_sub(s, 9, s.len - 10), &n) && n > 0) {
        *out = (parquet_metrics){PARQUET_METRICS_TRUNCATE, n};
    } else {
        return refuse(p, property, "none, counts, truncate(length) or full");
    }
    return TARN_OK;
}

static tarn_code read_encoding(const parse *p, const parquet_property *property,
                               parquet_write_encoding *out) {
    static const struct {
        const char *name;
        parquet_write_encoding encoding;
    } names[] = {{"auto", PARQUET_WRITE_AUTO},
                 {"plain", PARQUET_WRITE_PLAIN},
                 {"dictionary", PARQUET_WRITE_DICTIONARY},
                 {"delta", PARQUET_WRITE_DELTA},
                 {"delta-length", PARQUET_WRITE_DELTA_LENGTH},
                 {"byte-stream-split", PARQUET_WRITE_STREAM_SPLIT}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (str_eq_nocase(str_trim(property->value), str_of(names[i].name))) {
            *out = names[i].encoding;
            return TARN_OK;
        }
    }
    return refuse(p, property, "auto, plain, dictionary, delta, delta-length or byte-stream-split");
}

static tarn_code read_codec(const parse *p, const parquet_property *property) {
    codec_kind kind = CODEC_NONE;
    tarn_str name = str_trim(property->value);
    bool known = codec_from_name(name, &kind) || str_eq_nocase(name, STR("lz4raw"));
    kind = str_eq_nocase(name, STR("lz4")) || str_eq_nocase(name, STR("lz4raw")) ? CODEC_LZ4_RAW
                                                                                 : kind;
    if (!known || kind == CODEC_DEFLATE || kind == CODEC_ZLIB || kind == CODEC_LZ4_HADOOP) {
        return refuse(p, property, "one of zstd, none, uncompressed, snappy, gzip, lz4, brotli");
    }
    p->options->codec = kind;
    return TARN_OK;
}

/* The options of the column named; NULL: no memory. */
static parquet_column_options *column_of(parse *p, tarn_str name) {
    for (size_t i = 0; i < p->n_columns; i++) {
        if (str_eq(p->columns[i].name, name)) {
            return &p->columns[i];
        }
    }
    tarn_str copy = arena_str(p->arena, name);
    parquet_column_options *grown = arena_grow(p->arena, p->columns, p->n_columns * sizeof *grown,
                                               (p->n_columns + 1) * sizeof *grown);
    if (copy.data == NULL || grown == NULL) {
        return NULL;
    }
    p->columns = grown;
    memset(&grown[p->n_columns], 0, sizeof *grown);
    grown[p->n_columns].name = copy;
    grown[p->n_columns].stats = true;
    return &grown[p->n_columns++];
}

typedef enum column_word {
    COLUMN_METRICS,
    COLUMN_STATS,
    COLUMN_BLOOM,
    COLUMN_BLOOM_FPP,
    COLUMN_ENCODING
} column_word;

static tarn_code read_column(parse *p, const parquet_property *property, column_word word,
                             tarn_str name) {
    tarn_code code = TARN_OK;
    parquet_column_options *column = column_of(p, name);
    if (column == NULL) {
        return err_nomem(p->err);
    }
    switch (word) {
    case COLUMN_METRICS:
        TRY(read_metrics(p, property, &column->metrics));
        column->has_metrics = true;
        break;
    case COLUMN_STATS:
        TRY(read_bool(p, property, &column->stats));
        column->has_stats = true;
        break;
    case COLUMN_BLOOM:
        TRY(read_bool(p, property, &column->bloom));
        column->has_bloom = true;
        break;
    case COLUMN_BLOOM_FPP: {
        double fpp = 0;
        if (!str_to_f64(str_trim(property->value), &fpp) || !(fpp > 0 && fpp < 1)) {
            return refuse(p, property, "a number between 0 and 1");
        }
        column->bloom_fpp = fpp;
        break;
    }
    case COLUMN_ENCODING:
        TRY(read_encoding(p, property, &column->encoding));
        column->has_encoding = true;
        break;
    }
done:
    return code;
}

/* A word after write.parquet. or write.delete.parquet. */
static tarn_code read_word(parse *p, const parquet_property *property, tarn_str word) {
    static const struct {
        const char *prefix;
        column_word word;
    } per_column[] = {{"stats-enabled.column.", COLUMN_STATS},
                      {"bloom-filter-enabled.column.", COLUMN_BLOOM},
                      {"bloom-filter-fpp.column.", COLUMN_BLOOM_FPP},
                      {"encoding.column.", COLUMN_ENCODING}};
    for (size_t i = 0; i < sizeof per_column / sizeof per_column[0]; i++) {
        tarn_str prefix = str_of(per_column[i].prefix);
        if (str_starts_with(word, prefix)) {
            return read_column(p, property, per_column[i].word, str_from(word, prefix.len));
        }
    }
    parquet_write_options *o = p->options;
    const struct {
        const char *name;
        int64_t *out;
        int64_t min, max;
    } numbers[] = {{"row-group-size-bytes", &o->row_group_bytes, 1, BYTES_MAX},
                   {"page-size-bytes", &o->page_bytes, 1, INT32_MAX / 2},
                   {"page-row-limit", &o->page_rows, 1, INT32_MAX},
                   {"dict-size-bytes", &o->dictionary_bytes, 0, INT32_MAX / 2},
                   {"bloom-filter-max-bytes", &o->bloom_max_bytes, 32, INT64_C(128) << 20}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (str_is(word, numbers[i].name)) {
            return read_number(p, property, numbers[i].min, numbers[i].max, numbers[i].out);
        }
    }
    if (str_is(word, "compression-codec")) {
        return read_codec(p, property);
    }
    if (str_is(word, "page-version")) {
        bool v2 = str_eq_nocase(property->value, STR("v2"));
        if (!v2 && !str_eq_nocase(property->value, STR("v1"))) {
            return refuse(p, property, "v1 or v2");
        }
        o->page_version = v2 ? 2 : 1;
    }
    if (str_is(word, "compression-level") && !str_is(property->value, "null")) {
        int64_t level = 0;
        tarn_code code = read_number(p, property, -131072, 22, &level);
        if (code != TARN_OK) {
            return code;
        }
        o->level = (int)level;
    }
    return TARN_OK;
}

static tarn_code read_metrics_word(parse *p, const parquet_property *property, tarn_str word) {
    tarn_code code = TARN_OK;
    if (str_starts_with(word, STR("column."))) {
        return read_column(p, property, COLUMN_METRICS, str_from(word, 7));
    }
    if (str_is(word, "default")) {
        TRY(read_metrics(p, property, &p->options->metrics_default));
        p->options->has_metrics_default = true;
    } else if (str_is(word, "max-inferred-column-defaults")) {
        int64_t max = 0;
        TRY(read_number(p, property, 0, INT32_MAX, &max));
        p->options->metrics_max_inferred = (int32_t)max;
    }
done:
    return code;
}

/* A level is a codec's own; one that the codec does not know is an error of the properties. */
static tarn_code check_level(const parquet_write_options *o, tarn_error *err) {
    int max = o->codec == CODEC_ZSTD ? 22 : o->codec == CODEC_BROTLI ? 11 : 9;
    int min = o->codec == CODEC_ZSTD ? -131072 : 0;
    bool has_levels = o->codec == CODEC_ZSTD || o->codec == CODEC_BROTLI || o->codec == CODEC_GZIP;
    if (o->level != CODEC_LEVEL_DEFAULT && has_levels && (o->level < min || o->level > max)) {
        return err_set(err, TARN_INVALID,
                       "property " PREFIX "compression-level was %d: %s has levels %d to %d",
                       o->level, codec_name(o->codec), min, max);
    }
    return TARN_OK;
}

tarn_code parquet_write_options_parse(tarn_arena *arena, const parquet_property *properties,
                                      size_t n, bool for_deletes, parquet_write_options *options,
                                      tarn_error *err) {
    parquet_write_options read = *options;
    parse p = {arena, &read, NULL, 0, err};
    tarn_code code = TARN_OK;
    for (size_t i = 0; i < n; i++) {
        if (str_starts_with(properties[i].key, STR(PREFIX))) {
            TRY(read_word(&p, &properties[i], str_from(properties[i].key, sizeof PREFIX - 1)));
        } else if (str_starts_with(properties[i].key, STR(METRICS))) {
            TRY(read_metrics_word(&p, &properties[i],
                                  str_from(properties[i].key, sizeof METRICS - 1)));
        }
    }
    for (size_t i = 0; for_deletes && i < n; i++) {
        if (str_starts_with(properties[i].key, STR(DELETE_PREFIX))) {
            TRY(read_word(&p, &properties[i],
                          str_from(properties[i].key, sizeof DELETE_PREFIX - 1)));
        }
    }
    TRY(check_level(&read, err));
    if (p.n_columns > 0) {
        read.columns = p.columns;
        read.n_columns = p.n_columns;
    }
    *options = read;
done:
    return code;
}
