/* format/parquet/parquet_meta.h - the structures of parquet.thrift that tarn reads and writes.
 *
 * Each begins with `has` (see thrift.h); the number after a member is its field id, and the enum
 * beside each struct names the ids of fields that may be absent. Strings and lists are borrowed or
 * in the arena given to the reading function. */
#ifndef FORMAT_PARQUET_META_H
#define FORMAT_PARQUET_META_H

#include "format/parquet/thrift.h"

typedef enum parquet_physical {
    PARQUET_BOOLEAN = 0,
    PARQUET_INT32 = 1,
    PARQUET_INT64 = 2,
    PARQUET_INT96 = 3,
    PARQUET_FLOAT = 4,
    PARQUET_DOUBLE = 5,
    PARQUET_BYTE_ARRAY = 6,
    PARQUET_FIXED_LEN_BYTE_ARRAY = 7
} parquet_physical;

typedef enum parquet_repetition {
    PARQUET_REQUIRED = 0,
    PARQUET_OPTIONAL = 1,
    PARQUET_REPEATED = 2
} parquet_repetition;

typedef enum parquet_converted {
    PARQUET_CONVERTED_UTF8 = 0,
    PARQUET_CONVERTED_MAP = 1,
    PARQUET_CONVERTED_MAP_KEY_VALUE = 2,
    PARQUET_CONVERTED_LIST = 3,
    PARQUET_CONVERTED_ENUM = 4,
    PARQUET_CONVERTED_DECIMAL = 5,
    PARQUET_CONVERTED_DATE = 6,
    PARQUET_CONVERTED_TIME_MILLIS = 7,
    PARQUET_CONVERTED_TIME_MICROS = 8,
    PARQUET_CONVERTED_TIMESTAMP_MILLIS = 9,
    PARQUET_CONVERTED_TIMESTAMP_MICROS = 10,
    PARQUET_CONVERTED_UINT_8 = 11,
    PARQUET_CONVERTED_UINT_16 = 12,
    PARQUET_CONVERTED_UINT_32 = 13,
    PARQUET_CONVERTED_UINT_64 = 14,
    PARQUET_CONVERTED_INT_8 = 15,
    PARQUET_CONVERTED_INT_16 = 16,
    PARQUET_CONVERTED_INT_32 = 17,
    PARQUET_CONVERTED_INT_64 = 18,
    PARQUET_CONVERTED_JSON = 19,
    PARQUET_CONVERTED_BSON = 20,
    PARQUET_CONVERTED_INTERVAL = 21
} parquet_converted;

typedef enum parquet_encoding {
    PARQUET_PLAIN = 0,
    PARQUET_PLAIN_DICTIONARY = 2,
    PARQUET_RLE = 3,
    PARQUET_BIT_PACKED = 4,
    PARQUET_DELTA_BINARY_PACKED = 5,
    PARQUET_DELTA_LENGTH_BYTE_ARRAY = 6,
    PARQUET_DELTA_BYTE_ARRAY = 7,
    PARQUET_RLE_DICTIONARY = 8,
    PARQUET_BYTE_STREAM_SPLIT = 9
} parquet_encoding;

typedef enum parquet_codec {
    PARQUET_UNCOMPRESSED = 0,
    PARQUET_SNAPPY = 1,
    PARQUET_GZIP = 2,
    PARQUET_LZO = 3,
    PARQUET_BROTLI = 4,
    PARQUET_LZ4 = 5, /* deprecated: Hadoop's framing */
    PARQUET_ZSTD = 6,
    PARQUET_LZ4_RAW = 7
} parquet_codec;

typedef enum parquet_page_type {
    PARQUET_DATA_PAGE = 0,
    PARQUET_INDEX_PAGE = 1,
    PARQUET_DICTIONARY_PAGE = 2,
    PARQUET_DATA_PAGE_V2 = 3
} parquet_page_type;

typedef enum parquet_boundary_order {
    PARQUET_UNORDERED = 0,
    PARQUET_ASCENDING = 1,
    PARQUET_DESCENDING = 2
} parquet_boundary_order;

/* ---- schema ---- */
typedef struct parquet_time_unit { /* a union */
    uint32_t has;
} parquet_time_unit;
enum { PARQUET_UNIT_MILLIS = 1, PARQUET_UNIT_MICROS = 2, PARQUET_UNIT_NANOS = 3 };

typedef struct parquet_logical_decimal {
    uint32_t has;
    int32_t scale;     /* 1 */
    int32_t precision; /* 2 */
} parquet_logical_decimal;

typedef struct parquet_logical_time { /* TIME and TIMESTAMP */
    uint32_t has;
    bool is_adjusted_to_utc; /* 1 */
    parquet_time_unit unit;  /* 2 */
} parquet_logical_time;

typedef struct parquet_logical_int {
    uint32_t has;
    int8_t bit_width; /* 1 */
    bool is_signed;   /* 2 */
} parquet_logical_int;

typedef struct parquet_logical_variant {
    uint32_t has;
    int8_t specification_version; /* 1, optional */
} parquet_logical_variant;
enum { PARQUET_VARIANT_VERSION = 1 };

typedef struct parquet_logical_geo { /* GEOMETRY and GEOGRAPHY */
    uint32_t has;
    tarn_str crs;      /* 1, optional */
    int32_t algorithm; /* 2, optional; geography: 0 spherical, vincenty, thomas, andoyer, karney */
} parquet_logical_geo;
enum { PARQUET_GEO_CRS = 1, PARQUET_GEO_ALGORITHM = 2 };

typedef struct parquet_logical { /* a union: exactly one bit */
    uint32_t has;
    parquet_logical_decimal decimal; /* 5 */
    parquet_logical_time time;       /* 7 */
    parquet_logical_time timestamp;  /* 8 */
    parquet_logical_int integer;     /* 10 */
    parquet_logical_variant variant; /* 16 */
    parquet_logical_geo geometry;    /* 17 */
    parquet_logical_geo geography;   /* 18 */
} parquet_logical;
enum {
    PARQUET_LOGICAL_STRING = 1,
    PARQUET_LOGICAL_MAP = 2,
    PARQUET_LOGICAL_LIST = 3,
    PARQUET_LOGICAL_ENUM = 4,
    PARQUET_LOGICAL_DECIMAL = 5,
    PARQUET_LOGICAL_DATE = 6,
    PARQUET_LOGICAL_TIME = 7,
    PARQUET_LOGICAL_TIMESTAMP = 8,
    PARQUET_LOGICAL_INTEGER = 10,
    PARQUET_LOGICAL_UNKNOWN = 11,
    PARQUET_LOGICAL_JSON = 12,
    PARQUET_LOGICAL_BSON = 13,
    PARQUET_LOGICAL_UUID = 14,
    PARQUET_LOGICAL_FLOAT16 = 15,
    PARQUET_LOGICAL_VARIANT = 16,
    PARQUET_LOGICAL_GEOMETRY = 17,
    PARQUET_LOGICAL_GEOGRAPHY = 18
};

typedef struct parquet_element {
    uint32_t has;
    int32_t type;            /* 1 */
    int32_t type_length;     /* 2 */
    int32_t repetition;      /* 3 */
    tarn_str name;           /* 4, required */
    int32_t num_children;    /* 5 */
    int32_t converted;       /* 6 */
    int32_t scale;           /* 7 */
    int32_t precision;       /* 8 */
    int32_t field_id;        /* 9 */
    parquet_logical logical; /* 10 */
} parquet_element;
enum {
    PARQUET_ELEMENT_TYPE = 1,
    PARQUET_ELEMENT_TYPE_LENGTH = 2,
    PARQUET_ELEMENT_REPETITION = 3,
    PARQUET_ELEMENT_NUM_CHILDREN = 5,
    PARQUET_ELEMENT_CONVERTED = 6,
    PARQUET_ELEMENT_SCALE = 7,
    PARQUET_ELEMENT_PRECISION = 8,
    PARQUET_ELEMENT_FIELD_ID = 9,
    PARQUET_ELEMENT_LOGICAL = 10
};

/* ---- statistics and indexes ---- */
typedef struct parquet_statistics {
    uint32_t has;
    tarn_str max;           /* 1, deprecated: signed comparison */
    tarn_str min;           /* 2, deprecated */
    int64_t null_count;     /* 3 */
    int64_t distinct_count; /* 4 */
    tarn_str max_value;     /* 5 */
    tarn_str min_value;     /* 6 */
    bool is_max_exact;      /* 7 */
    bool is_min_exact;      /* 8 */
    int64_t nan_count;      /* 9 */
} parquet_statistics;
enum {
    PARQUET_STATS_MAX = 1,
    PARQUET_STATS_MIN = 2,
    PARQUET_STATS_NULL_COUNT = 3,
    PARQUET_STATS_DISTINCT_COUNT = 4,
    PARQUET_STATS_MAX_VALUE = 5,
    PARQUET_STATS_MIN_VALUE = 6,
    PARQUET_STATS_IS_MAX_EXACT = 7,
    PARQUET_STATS_IS_MIN_EXACT = 8,
    PARQUET_STATS_NAN_COUNT = 9
};

typedef struct parquet_size_statistics {
    uint32_t has;
    int64_t unencoded_byte_array_data_bytes; /* 1 */
    const int64_t *repetition_histogram;     /* 2 */
    const int64_t *definition_histogram;     /* 3 */
    int32_t n_repetition;
    int32_t n_definition;
} parquet_size_statistics;
enum { PARQUET_SIZES_UNENCODED = 1, PARQUET_SIZES_REPETITION = 2, PARQUET_SIZES_DEFINITION = 3 };

typedef struct parquet_page_location {
    uint32_t has;
    int64_t offset;               /* 1: of the page header in the file */
    int32_t compressed_page_size; /* 2: with header */
    int64_t first_row_index;      /* 3: within the row group */
} parquet_page_location;

typedef struct parquet_offset_index {
    uint32_t has;
    const parquet_page_location *pages; /* 1 */
    int32_t n_pages;
} parquet_offset_index;

typedef struct parquet_column_index {
    uint32_t has;
    const bool *null_pages;     /* 1 */
    const tarn_str *min_values; /* 2 */
    const tarn_str *max_values; /* 3 */
    int32_t boundary_order;     /* 4 */
    const int64_t *null_counts; /* 5, optional */
    int32_t n_null_pages, n_min_values, n_max_values, n_null_counts;
} parquet_column_index;
enum { PARQUET_COLUMN_INDEX_NULL_COUNTS = 5 };

typedef struct parquet_bloom_choice { /* a union whose one known member is id 1 */
    uint32_t has;
} parquet_bloom_choice;

typedef struct parquet_bloom_header { /* then num_bytes of bitset */
    uint32_t has;
    int32_t num_bytes;                /* 1 */
    parquet_bloom_choice algorithm;   /* 2: BLOCK */
    parquet_bloom_choice hash;        /* 3: XXHASH */
    parquet_bloom_choice compression; /* 4: UNCOMPRESSED */
} parquet_bloom_header;

/* ---- pages ---- */
typedef struct parquet_data_page {
    uint32_t has;
    int32_t num_values;            /* 1: nulls too */
    int32_t encoding;              /* 2 */
    int32_t definition_encoding;   /* 3 */
    int32_t repetition_encoding;   /* 4 */
    parquet_statistics statistics; /* 5, optional */
} parquet_data_page;
enum { PARQUET_DATA_PAGE_STATISTICS = 5 };

typedef struct parquet_data_page_v2 {
    uint32_t has;
    int32_t num_values;            /* 1: nulls too */
    int32_t num_nulls;             /* 2 */
    int32_t num_rows;              /* 3 */
    int32_t encoding;              /* 4 */
    int32_t definition_bytes;      /* 5 */
    int32_t repetition_bytes;      /* 6 */
    bool is_compressed;            /* 7, optional: absent means true */
    parquet_statistics statistics; /* 8, optional */
} parquet_data_page_v2;
enum { PARQUET_V2_IS_COMPRESSED = 7, PARQUET_V2_STATISTICS = 8 };

typedef struct parquet_dictionary_page {
    uint32_t has;
    int32_t num_values; /* 1 */
    int32_t encoding;   /* 2 */
    bool is_sorted;     /* 3, optional */
} parquet_dictionary_page;
enum { PARQUET_DICTIONARY_IS_SORTED = 3 };

typedef struct parquet_page_header {
    uint32_t has;
    int32_t type;                       /* 1 */
    int32_t uncompressed_size;          /* 2: without this header */
    int32_t compressed_size;            /* 3 */
    int32_t crc;                        /* 4, optional: CRC-32 of the compressed bytes */
    parquet_data_page data;             /* 5 */
    parquet_dictionary_page dictionary; /* 7 */
    parquet_data_page_v2 v2;            /* 8 */
} parquet_page_header;
enum {
    PARQUET_PAGE_CRC = 4,
    PARQUET_PAGE_DATA = 5,
    PARQUET_PAGE_DICTIONARY = 7,
    PARQUET_PAGE_V2 = 8
};

/* ---- footer ---- */
typedef struct parquet_key_value {
    uint32_t has;
    tarn_str key;   /* 1 */
    tarn_str value; /* 2, optional */
} parquet_key_value;
enum { PARQUET_KEY_VALUE_VALUE = 2 };

typedef struct parquet_sorting_column {
    uint32_t has;
    int32_t column_index; /* 1 */
    bool descending;      /* 2 */
    bool nulls_first;     /* 3 */
} parquet_sorting_column;

typedef struct parquet_encoding_stats {
    uint32_t has;
    int32_t page_type; /* 1 */
    int32_t encoding;  /* 2 */
    int32_t count;     /* 3 */
} parquet_encoding_stats;

typedef struct parquet_column_meta {
    uint32_t has;
    int32_t type;                                 /* 1 */
    const int32_t *encodings;                     /* 2 */
    const tarn_str *path;                         /* 3 */
    int32_t codec;                                /* 4 */
    int64_t num_values;                           /* 5: nulls too */
    int64_t total_uncompressed_size;              /* 6: headers too */
    int64_t total_compressed_size;                /* 7: headers too */
    const parquet_key_value *key_values;          /* 8, optional */
    int64_t data_page_offset;                     /* 9 */
    int64_t index_page_offset;                    /* 10, optional */
    int64_t dictionary_page_offset;               /* 11, optional */
    parquet_statistics statistics;                /* 12, optional */
    const parquet_encoding_stats *encoding_stats; /* 13, optional */
    int64_t bloom_filter_offset;                  /* 14, optional */
    int32_t bloom_filter_length;                  /* 15, optional */
    parquet_size_statistics size_statistics;      /* 16, optional */
    int32_t n_encodings, n_path, n_key_values, n_encoding_stats;
} parquet_column_meta;
enum {
    PARQUET_COLUMN_KEY_VALUES = 8,
    PARQUET_COLUMN_INDEX_PAGE_OFFSET = 10,
    PARQUET_COLUMN_DICTIONARY_PAGE_OFFSET = 11,
    PARQUET_COLUMN_STATISTICS = 12,
    PARQUET_COLUMN_ENCODING_STATS = 13,
    PARQUET_COLUMN_BLOOM_FILTER_OFFSET = 14,
    PARQUET_COLUMN_BLOOM_FILTER_LENGTH = 15,
    PARQUET_COLUMN_SIZE_STATISTICS = 16
};

typedef struct parquet_chunk {
    uint32_t has;
    tarn_str file_path;          /* 1, optional: data lies in another file (not supported) */
    int64_t file_offset;         /* 2: deprecated, never trusted (B44); writers set its bit and 0 */
    parquet_column_meta meta;    /* 3 */
    int64_t offset_index_offset; /* 4, optional, as the next three */
    int32_t offset_index_length; /* 5 */
    int64_t column_index_offset; /* 6 */
    int32_t column_index_length; /* 7 */
} parquet_chunk;
enum {
    PARQUET_CHUNK_FILE_PATH = 1,
    PARQUET_CHUNK_FILE_OFFSET = 2,
    PARQUET_CHUNK_META = 3,
    PARQUET_CHUNK_OFFSET_INDEX_OFFSET = 4,
    PARQUET_CHUNK_OFFSET_INDEX_LENGTH = 5,
    PARQUET_CHUNK_COLUMN_INDEX_OFFSET = 6,
    PARQUET_CHUNK_COLUMN_INDEX_LENGTH = 7,
    PARQUET_CHUNK_CRYPTO = 8,        /* only seen, never written */
    PARQUET_CHUNK_ENCRYPTED_META = 9 /* only seen, never written */
};

typedef struct parquet_row_group {
    uint32_t has;
    const parquet_chunk *columns;          /* 1 */
    int64_t total_byte_size;               /* 2 */
    int64_t num_rows;                      /* 3 */
    const parquet_sorting_column *sorting; /* 4, optional */
    int64_t file_offset;                   /* 5, optional; never trusted (B44) */
    int64_t total_compressed_size;         /* 6, optional */
    int16_t ordinal;                       /* 7, optional */
    int32_t n_columns, n_sorting;
} parquet_row_group;
enum {
    PARQUET_ROW_GROUP_SORTING = 4,
    PARQUET_ROW_GROUP_FILE_OFFSET = 5,
    PARQUET_ROW_GROUP_TOTAL_COMPRESSED_SIZE = 6,
    PARQUET_ROW_GROUP_ORDINAL = 7
};

typedef struct parquet_column_order { /* a union: bit 1 is TYPE_ORDER */
    uint32_t has;
} parquet_column_order;
enum { PARQUET_TYPE_ORDER = 1 };

typedef struct parquet_footer {
    uint32_t has;
    int32_t version;                           /* 1 */
    const parquet_element *schema;             /* 2: depth first, the root first */
    int64_t num_rows;                          /* 3 */
    const parquet_row_group *row_groups;       /* 4 */
    const parquet_key_value *key_values;       /* 5, optional */
    tarn_str created_by;                       /* 6, optional */
    const parquet_column_order *column_orders; /* 7, optional */
    int32_t n_schema, n_row_groups, n_key_values, n_column_orders;
} parquet_footer;
enum {
    PARQUET_FOOTER_KEY_VALUES = 5,
    PARQUET_FOOTER_CREATED_BY = 6,
    PARQUET_FOOTER_COLUMN_ORDERS = 7,
    PARQUET_FOOTER_ENCRYPTION = 8 /* only seen, never written */
};

/* For thrift_decode and thrift_encode. A page header needs no arena (may be NULL). */
extern const thrift_struct parquet_footer_thrift;
extern const thrift_struct parquet_page_header_thrift;
extern const thrift_struct parquet_offset_index_thrift;
extern const thrift_struct parquet_column_index_thrift;
extern const thrift_struct parquet_bloom_header_thrift;

#endif
