/* dml/rocksdb_calls.h - what the key index calls of RocksDB, which is loaded when the first index
 * is opened: with the C++ library below it, it takes a third of the memory of a process at rest,
 * and of the start of a command, and few commands have an index. */
#ifndef DML_ROCKSDB_CALLS_H
#define DML_ROCKSDB_CALLS_H

#ifdef TARN_ROCKSDB

#include <rocksdb/c.h>

#include "base/err.h"

/* clang-format off */
#define ROCKSDB_CALLS(X) \
    X(batched_multi_get_cf) \
    X(block_based_options_create) \
    X(block_based_options_destroy) \
    X(block_based_options_set_block_cache) \
    X(block_based_options_set_block_size) \
    X(block_based_options_set_cache_index_and_filter_blocks) \
    X(block_based_options_set_cache_index_and_filter_blocks_with_high_priority) \
    X(block_based_options_set_data_block_index_type) \
    X(block_based_options_set_filter_policy) \
    X(block_based_options_set_format_version) \
    X(cache_create_lru) \
    X(cache_destroy) \
    X(close) \
    X(column_family_handle_destroy) \
    X(create_iterator_cf) \
    X(destroy_db) \
    X(envoptions_create) \
    X(envoptions_destroy) \
    X(filterpolicy_create_bloom_full) \
    X(flush) \
    X(flushoptions_create) \
    X(flushoptions_destroy) \
    X(free) \
    X(get_pinned_cf) \
    X(ingest_external_file_cf) \
    X(ingestexternalfileoptions_create) \
    X(ingestexternalfileoptions_destroy) \
    X(ingestexternalfileoptions_set_move_files) \
    X(iter_destroy) \
    X(iter_get_error) \
    X(iter_key) \
    X(iter_seek) \
    X(iter_valid) \
    X(open_column_families) \
    X(options_create) \
    X(options_destroy) \
    X(options_set_block_based_table_factory) \
    X(options_set_bytes_per_sync) \
    X(options_set_compression) \
    X(options_set_create_if_missing) \
    X(options_set_info_log_level) \
    X(options_set_keep_log_file_num) \
    X(options_set_level0_file_num_compaction_trigger) \
    X(options_set_level_compaction_dynamic_level_bytes) \
    X(options_set_max_background_jobs) \
    X(options_set_max_bytes_for_level_base) \
    X(options_set_max_open_files) \
    X(options_set_max_total_wal_size) \
    X(options_set_max_write_buffer_number) \
    X(options_set_stats_dump_period_sec) \
    X(options_set_stats_persist_period_sec) \
    X(options_set_target_file_size_base) \
    X(options_set_write_buffer_size) \
    X(pinnableslice_destroy) \
    X(pinnableslice_value) \
    X(property_int) \
    X(property_value) \
    X(readoptions_create) \
    X(readoptions_destroy) \
    X(readoptions_set_verify_checksums) \
    X(sstfilewriter_create) \
    X(sstfilewriter_delete) \
    X(sstfilewriter_destroy) \
    X(sstfilewriter_finish) \
    X(sstfilewriter_open) \
    X(sstfilewriter_put) \
    X(write) \
    X(writebatch_create) \
    X(writebatch_delete) \
    X(writebatch_destroy) \
    X(writebatch_put) \
    X(writeoptions_create) \
    X(writeoptions_destroy) \
    X(writeoptions_set_sync)
/* clang-format on */

typedef struct rocksdb_calls {
#define X(name) __typeof__(rocksdb_##name) *name;
    ROCKSDB_CALLS(X)
#undef X
} rocksdb_calls;

/* Before the first call; any thread, as often as one likes. UNSUPPORTED: it is not on this machine.
 */
tarn_code rocksdb_load(tarn_error *err) TARN_MUST_USE;
const rocksdb_calls *rocksdb(void);

#endif
#endif
