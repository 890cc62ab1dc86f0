/* format/parquet/parquet_meta.c - parquet.thrift as descriptions for thrift.c. */
#include "format/parquet/parquet_meta.h"

#include <stddef.h>

/* R: required, O: optional, each (struct, field id, kind, member); S: struct members; L: lists. */
#define FIELD(s, id, kind, item, need, member, counter, type)                                      \
    { id, kind, item, need, (uint16_t)offsetof(s, member), counter, type, #member }
#define R(s, id, kind, member)       FIELD(s, id, kind, 0, true, member, 0, NULL)
#define O(s, id, kind, member)       FIELD(s, id, kind, 0, false, member, 0, NULL)
#define S(s, id, need, member, type) FIELD(s, id, THRIFT_STRUCT, 0, need, member, 0, &type##_thrift)
#define L(s, id, need, item, member)                                                               \
    FIELD(s, id, THRIFT_LIST, item, need, member, (uint16_t)offsetof(s, n_##member), NULL)
#define LS(s, id, need, member, counter, type)                                                     \
    FIELD(s, id, THRIFT_LIST, THRIFT_STRUCT, need, member, (uint16_t)offsetof(s, counter),         \
          &type##_thrift)
/* A union member without content, and a field of which only the presence matters. */
#define EMPTY(id, member_name)                                                                     \
    { id, THRIFT_EMPTY, 0, false, 0, 0, NULL, member_name }
#define SEEN(id, member_name)                                                                      \
    { id, THRIFT_SEEN, 0, false, 0, 0, NULL, member_name }

#define DESCRIBE(type, ...)                                                                        \
    static const thrift_field type##_fields[] = {__VA_ARGS__};                                     \
    const thrift_struct type##_thrift = {                                                          \
        #type, type##_fields, sizeof type##_fields / sizeof *type##_fields, sizeof(type)}
#define DESCRIBE_STATIC(type, ...)                                                                 \
    static const thrift_field type##_fields[] = {__VA_ARGS__};                                     \
    static const thrift_struct type##_thrift = {                                                   \
        #type, type##_fields, sizeof type##_fields / sizeof *type##_fields, sizeof(type)}

DESCRIBE_STATIC(parquet_time_unit, EMPTY(1, "MILLIS"), EMPTY(2, "MICROS"), EMPTY(3, "NANOS"));
DESCRIBE_STATIC(parquet_logical_decimal, R(parquet_logical_decimal, 1, THRIFT_I32, scale),
                R(parquet_logical_decimal, 2, THRIFT_I32, precision));
DESCRIBE_STATIC(parquet_logical_time, R(parquet_logical_time, 1, THRIFT_BOOL, is_adjusted_to_utc),
                S(parquet_logical_time, 2, true, unit, parquet_time_unit));
DESCRIBE_STATIC(parquet_logical_int, R(parquet_logical_int, 1, THRIFT_I8, bit_width),
                R(parquet_logical_int, 2, THRIFT_BOOL, is_signed));
DESCRIBE_STATIC(parquet_logical_variant,
                O(parquet_logical_variant, 1, THRIFT_I8, specification_version));
DESCRIBE_STATIC(parquet_logical_geo, O(parquet_logical_geo, 1, THRIFT_BINARY, crs),
                O(parquet_logical_geo, 2, THRIFT_I32, algorithm));
DESCRIBE_STATIC(parquet_logical, EMPTY(1, "STRING"), EMPTY(2, "MAP"), EMPTY(3, "LIST"),
                EMPTY(4, "ENUM"), S(parquet_logical, 5, false, decimal, parquet_logical_decimal),
                EMPTY(6, "DATE"), S(parquet_logical, 7, false, time, parquet_logical_time),
                S(parquet_logical, 8, false, timestamp, parquet_logical_time),
                S(parquet_logical, 10, false, integer, parquet_logical_int), EMPTY(11, "UNKNOWN"),
                EMPTY(12, "JSON"), EMPTY(13, "BSON"), EMPTY(14, "UUID"), EMPTY(15, "FLOAT16"),
                S(parquet_logical, 16, false, variant, parquet_logical_variant),
                S(parquet_logical, 17, false, geometry, parquet_logical_geo),
                S(parquet_logical, 18, false, geography, parquet_logical_geo));
DESCRIBE_STATIC(
    parquet_element, O(parquet_element, 1, THRIFT_I32, type),
    O(parquet_element, 2, THRIFT_I32, type_length), O(parquet_element, 3, THRIFT_I32, repetition),
    R(parquet_element, 4, THRIFT_BINARY, name), O(parquet_element, 5, THRIFT_I32, num_children),
    O(parquet_element, 6, THRIFT_I32, converted), O(parquet_element, 7, THRIFT_I32, scale),
    O(parquet_element, 8, THRIFT_I32, precision), O(parquet_element, 9, THRIFT_I32, field_id),
    S(parquet_element, 10, false, logical, parquet_logical));

DESCRIBE_STATIC(parquet_statistics, O(parquet_statistics, 1, THRIFT_BINARY, max),
                O(parquet_statistics, 2, THRIFT_BINARY, min),
                O(parquet_statistics, 3, THRIFT_I64, null_count),
                O(parquet_statistics, 4, THRIFT_I64, distinct_count),
                O(parquet_statistics, 5, THRIFT_BINARY, max_value),
                O(parquet_statistics, 6, THRIFT_BINARY, min_value),
                O(parquet_statistics, 7, THRIFT_BOOL, is_max_exact),
                O(parquet_statistics, 8, THRIFT_BOOL, is_min_exact),
                O(parquet_statistics, 9, THRIFT_I64, nan_count));
DESCRIBE_STATIC(parquet_size_statistics,
                O(parquet_size_statistics, 1, THRIFT_I64, unencoded_byte_array_data_bytes),
                FIELD(parquet_size_statistics, 2, THRIFT_LIST, THRIFT_I64, false,
                      repetition_histogram, offsetof(parquet_size_statistics, n_repetition), NULL),
                FIELD(parquet_size_statistics, 3, THRIFT_LIST, THRIFT_I64, false,
                      definition_histogram, offsetof(parquet_size_statistics, n_definition), NULL));
DESCRIBE_STATIC(parquet_page_location, R(parquet_page_location, 1, THRIFT_I64, offset),
                R(parquet_page_location, 2, THRIFT_I32, compressed_page_size),
                R(parquet_page_location, 3, THRIFT_I64, first_row_index));
DESCRIBE(parquet_offset_index,
         LS(parquet_offset_index, 1, true, pages, n_pages, parquet_page_location));
DESCRIBE(parquet_column_index, L(parquet_column_index, 1, true, THRIFT_BOOL, null_pages),
         L(parquet_column_index, 2, true, THRIFT_BINARY, min_values),
         L(parquet_column_index, 3, true, THRIFT_BINARY, max_values),
         R(parquet_column_index, 4, THRIFT_I32, boundary_order),
         L(parquet_column_index, 5, false, THRIFT_I64, null_counts));

DESCRIBE_STATIC(parquet_bloom_choice, EMPTY(1, "BLOCK, XXHASH or UNCOMPRESSED"));
DESCRIBE(parquet_bloom_header, R(parquet_bloom_header, 1, THRIFT_I32, num_bytes),
         S(parquet_bloom_header, 2, true, algorithm, parquet_bloom_choice),
         S(parquet_bloom_header, 3, true, hash, parquet_bloom_choice),
         S(parquet_bloom_header, 4, true, compression, parquet_bloom_choice));

DESCRIBE_STATIC(parquet_data_page, R(parquet_data_page, 1, THRIFT_I32, num_values),
                R(parquet_data_page, 2, THRIFT_I32, encoding),
                R(parquet_data_page, 3, THRIFT_I32, definition_encoding),
                R(parquet_data_page, 4, THRIFT_I32, repetition_encoding),
                S(parquet_data_page, 5, false, statistics, parquet_statistics));
DESCRIBE_STATIC(parquet_dictionary_page, R(parquet_dictionary_page, 1, THRIFT_I32, num_values),
                R(parquet_dictionary_page, 2, THRIFT_I32, encoding),
                O(parquet_dictionary_page, 3, THRIFT_BOOL, is_sorted));
DESCRIBE_STATIC(parquet_data_page_v2, R(parquet_data_page_v2, 1, THRIFT_I32, num_values),
                R(parquet_data_page_v2, 2, THRIFT_I32, num_nulls),
                R(parquet_data_page_v2, 3, THRIFT_I32, num_rows),
                R(parquet_data_page_v2, 4, THRIFT_I32, encoding),
                R(parquet_data_page_v2, 5, THRIFT_I32, definition_bytes),
                R(parquet_data_page_v2, 6, THRIFT_I32, repetition_bytes),
                O(parquet_data_page_v2, 7, THRIFT_BOOL, is_compressed),
                S(parquet_data_page_v2, 8, false, statistics, parquet_statistics));
DESCRIBE(parquet_page_header, R(parquet_page_header, 1, THRIFT_I32, type),
         R(parquet_page_header, 2, THRIFT_I32, uncompressed_size),
         R(parquet_page_header, 3, THRIFT_I32, compressed_size),
         O(parquet_page_header, 4, THRIFT_I32, crc),
         S(parquet_page_header, 5, false, data, parquet_data_page),
         S(parquet_page_header, 7, false, dictionary, parquet_dictionary_page),
         S(parquet_page_header, 8, false, v2, parquet_data_page_v2));

DESCRIBE_STATIC(parquet_key_value, R(parquet_key_value, 1, THRIFT_BINARY, key),
                O(parquet_key_value, 2, THRIFT_BINARY, value));
DESCRIBE_STATIC(parquet_sorting_column, R(parquet_sorting_column, 1, THRIFT_I32, column_index),
                R(parquet_sorting_column, 2, THRIFT_BOOL, descending),
                R(parquet_sorting_column, 3, THRIFT_BOOL, nulls_first));
DESCRIBE_STATIC(parquet_encoding_stats, R(parquet_encoding_stats, 1, THRIFT_I32, page_type),
                R(parquet_encoding_stats, 2, THRIFT_I32, encoding),
                R(parquet_encoding_stats, 3, THRIFT_I32, count));
DESCRIBE_STATIC(parquet_column_meta, R(parquet_column_meta, 1, THRIFT_I32, type),
                L(parquet_column_meta, 2, true, THRIFT_I32, encodings),
                L(parquet_column_meta, 3, true, THRIFT_BINARY, path),
                R(parquet_column_meta, 4, THRIFT_I32, codec),
                R(parquet_column_meta, 5, THRIFT_I64, num_values),
                R(parquet_column_meta, 6, THRIFT_I64, total_uncompressed_size),
                R(parquet_column_meta, 7, THRIFT_I64, total_compressed_size),
                LS(parquet_column_meta, 8, false, key_values, n_key_values, parquet_key_value),
                R(parquet_column_meta, 9, THRIFT_I64, data_page_offset),
                O(parquet_column_meta, 10, THRIFT_I64, index_page_offset),
                O(parquet_column_meta, 11, THRIFT_I64, dictionary_page_offset),
                S(parquet_column_meta, 12, false, statistics, parquet_statistics),
                LS(parquet_column_meta, 13, false, encoding_stats, n_encoding_stats,
                   parquet_encoding_stats),
                O(parquet_column_meta, 14, THRIFT_I64, bloom_filter_offset),
                O(parquet_column_meta, 15, THRIFT_I32, bloom_filter_length),
                S(parquet_column_meta, 16, false, size_statistics, parquet_size_statistics));
/* file_offset is required by the specification; files without it are read all the same. */
DESCRIBE_STATIC(parquet_chunk, O(parquet_chunk, 1, THRIFT_BINARY, file_path),
                O(parquet_chunk, 2, THRIFT_I64, file_offset),
                S(parquet_chunk, 3, false, meta, parquet_column_meta),
                O(parquet_chunk, 4, THRIFT_I64, offset_index_offset),
                O(parquet_chunk, 5, THRIFT_I32, offset_index_length),
                O(parquet_chunk, 6, THRIFT_I64, column_index_offset),
                O(parquet_chunk, 7, THRIFT_I32, column_index_length), SEEN(8, "crypto_metadata"),
                SEEN(9, "encrypted_column_metadata"));
DESCRIBE_STATIC(parquet_row_group,
                LS(parquet_row_group, 1, true, columns, n_columns, parquet_chunk),
                R(parquet_row_group, 2, THRIFT_I64, total_byte_size),
                R(parquet_row_group, 3, THRIFT_I64, num_rows),
                LS(parquet_row_group, 4, false, sorting, n_sorting, parquet_sorting_column),
                O(parquet_row_group, 5, THRIFT_I64, file_offset),
                O(parquet_row_group, 6, THRIFT_I64, total_compressed_size),
                O(parquet_row_group, 7, THRIFT_I16, ordinal));
DESCRIBE_STATIC(parquet_column_order, EMPTY(1, "TYPE_ORDER"));
DESCRIBE(parquet_footer, R(parquet_footer, 1, THRIFT_I32, version),
         LS(parquet_footer, 2, true, schema, n_schema, parquet_element),
         R(parquet_footer, 3, THRIFT_I64, num_rows),
         LS(parquet_footer, 4, true, row_groups, n_row_groups, parquet_row_group),
         LS(parquet_footer, 5, false, key_values, n_key_values, parquet_key_value),
         O(parquet_footer, 6, THRIFT_BINARY, created_by),
         LS(parquet_footer, 7, false, column_orders, n_column_orders, parquet_column_order),
         SEEN(8, "encryption_algorithm"));
