/* source/file_kind.c - which format a file has, by option, name or first bytes, and what the
 * options of text formats mean. */
#include "source/file_reader.h"

static const char *const kind_names[] = {"parquet", "avro", "ndjson", "csv", "json", "table"};

const char *file_kind_name(file_kind kind) {
    return kind_names[kind];
}

tarn_code file_kind_by_option(const char *name, file_kind *out, tarn_error *err) {
    for (int i = 0; i < 6; i++) {
        if (str_eq_nocase(str_of(name), str_of(kind_names[i]))) {
            *out = (file_kind)i;
            return TARN_OK;
        }
    }
    if (str_eq_nocase(str_of(name), STR("debezium-json"))) {
        *out = FILE_NDJSON;
        return TARN_OK;
    }
    return err_set(err, TARN_INVALID,
                   "\"%s\" is no file format; known are parquet, avro, ndjson, csv, json, "
                   "debezium-json",
                   name);
}

bool file_kind_by_name(tarn_str name, file_kind *kind, codec_kind *codec) {
    static const struct {
        const char *ending;
        file_kind kind;
    } endings[] = {{".parquet", FILE_PARQUET},
                   {".avro", FILE_AVRO},
                   {".ndjson", FILE_NDJSON},
                   {".jsonl", FILE_NDJSON},
                   {".metadata.json", FILE_JSON},
                   {".puffin", FILE_JSON}, /* its footer */
                   {".json", FILE_NDJSON},
                   {".csv", FILE_CSV},
                   {".tsv", FILE_CSV}};
    *codec = CODEC_NONE;
    if (str_ends_with(name, STR(".gz"))) {
        *codec = CODEC_GZIP;
        name.len -= 3;
    } else if (str_ends_with(name, STR(".zst"))) {
        *codec = CODEC_ZSTD;
        name.len -= 4;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (str_ends_with(name, str_of(endings[i].ending))) {
            *kind = endings[i].kind;
            return true;
        }
    }
    return false;
}

file_kind file_kind_by_content(tarn_str head) {
    if (str_starts_with(head, STR("PAR1")) || str_starts_with(head, STR("PARE"))) {
        return FILE_PARQUET;
    }
    if (str_starts_with(head, STR("Obj\1"))) {
        return FILE_AVRO;
    }
    if (str_starts_with(head, STR("PFA1"))) {
        return FILE_JSON;
    }
    head = str_trim(head);
    return head.len > 0 && head.data[0] == '{' ? FILE_NDJSON : FILE_CSV;
}

/* Anything is CSV of one column: without a name that says so, its first line has several, or is a
 * word, as names of columns are. Nothing at all is as good as CSV. */
static bool looks_like_csv(tarn_str head, const tarn_file_options *o) {
    char delimiter = o->csv_delimiter != NULL ? o->csv_delimiter[0] : ',';
    bool several = o->csv_delimiter != NULL || o->csv_quote != NULL || o->csv_no_header;
    bool word = true;
    tarn_str text = str_trim(head);
    bool ended = head.len < 64 || text.len == 0; /* the file, with this line */
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '\n') {
            ended = true;
            break;
        }
        if ((unsigned char)c < ' ' && c != '\t' && c != '\r') {
            return false;
        }
        several = several || c == delimiter;
        word = word && strchr(" \t<>[](){};|=/\\", c) == NULL;
    }
    return (several || (word && ended)) && (text.len == 0 || strchr("<[", text.data[0]) == NULL);
}

tarn_code file_tell_reject(const tarn_file_options *o, const char *name, int64_t line, tarn_str raw,
                           tarn_str reason, tarn_error *err) {
    char text[512];
    size_t len = reason.len < sizeof text - 1 ? reason.len : sizeof text - 1;
    memcpy(text, reason.data, len);
    text[len] = '\0';
    if (o->reject != NULL &&
        o->reject(o->reject_ctx, line, raw.data != NULL ? raw.data : "", raw.len, text) == 0) {
        return TARN_OK;
    }
    return err_set(err, TARN_INVALID, "%s line %lld: %s", name, (long long)line, text);
}

bool file_kind_is_text(file_kind kind) {
    return kind == FILE_NDJSON || kind == FILE_CSV || kind == FILE_JSON;
}

tarn_code file_kind_choose(tarn_str path, const tarn_file_options *o, tarn_str head,
                           file_kind *kind, codec_kind *codec, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool named = file_kind_by_name(path, kind, codec);
    if (o->format != NULL) {
        TRY(file_kind_by_option(o->format, kind, err));
        named = true;
    }
    codec_kind sniffed = codec_sniff(head.data, head.len);
    if (!named && sniffed != CODEC_NONE) {
        return err_set(err, TARN_INVALID,
                       "%.*s is compressed, and nothing says what it holds; give a format "
                       "(--format)",
                       STR_ARG(str_is(path, "-") ? STR("standard input") : path));
    }
    if (!named) {
        *kind = file_kind_by_content(head);
        if (*kind == FILE_CSV && !looks_like_csv(head, o)) {
            return err_set(err, TARN_INVALID,
                           "neither the name of %.*s nor its first bytes say what it holds; give a "
                           "format (--format)",
                           STR_ARG(str_is(path, "-") ? STR("standard input") : path));
        }
    }
    if (file_kind_is_text(*kind)) {
        *codec = sniffed != CODEC_NONE ? sniffed : *codec;
    }
    if (o->compression != NULL && !codec_from_name(str_of(o->compression), codec)) {
        return err_set(err, TARN_INVALID, "\"%s\" is no compression", o->compression);
    }
done:
    return code;
}

tarn_code file_kind_for_writing(const char *path, const tarn_file_options *o, file_kind *kind,
                                codec_kind *codec, tarn_error *err) {
    bool named = file_kind_by_name(str_of(path), kind, codec);
    if (o->format != NULL) {
        return file_kind_by_option(o->format, kind, err);
    }
    return named && *kind != FILE_JSON
               ? TARN_OK
               : err_set(err, TARN_INVALID, "the name %s does not say a format; give one", path);
}

static tarn_code one_char(const char *text, const char *what, char *out, tarn_error *err) {
    if (text == NULL) {
        return TARN_OK;
    }
    if (strcmp(text, "\\t") == 0) {
        *out = '\t';
        return TARN_OK;
    }
    if (strlen(text) != 1) {
        return err_set(err, TARN_INVALID, "the CSV %s was \"%s\", not one character", what, text);
    }
    *out = text[0];
    return TARN_OK;
}

tarn_code file_text_options(tarn_arena *arena, const tarn_file_options *o, file_kind kind,
                            text_options *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(out, 0, sizeof *out);
    out->kind = kind == FILE_CSV ? TEXT_CSV : kind == FILE_TABLE ? TEXT_TABLE : TEXT_NDJSON;
    TRY(one_char(o->csv_delimiter, "delimiter", &out->delimiter, err));
    TRY(one_char(o->csv_quote, "quote", &out->quote, err));
    out->no_header = o->csv_no_header;
    out->ignore_unknown = o->ignore_unknown;
    out->batch_rows = o->batch_rows;
    if (o->null_text != NULL) {
        tarn_str *texts = ARENA_ARRAY(arena, tarn_str, 2);
        if (texts == NULL) {
            return err_nomem(err);
        }
        texts[0] = arena_str(arena, str_of(o->null_text));
        texts[1] = STR("");
        out->null_texts = texts;
        out->n_null_texts = 2;
    }
done:
    return code;
}
