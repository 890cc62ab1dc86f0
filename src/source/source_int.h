/* source/source_int.h - what the files of a source share. */
#ifndef SOURCE_SOURCE_INT_H
#define SOURCE_SOURCE_INT_H

#include "base/map.h"
#include "source/piece_reader.h"
#include "source/source.h"

/* What is asked of every input, copied. */
typedef struct source_setup {
    tarn_env *env;
    tarn_arena arena;
    tarn_file_options file;
    const tarn_type *root; /* grows, if asked */
    const char *kind_column;
    const tarn_str *keys; /* columns that no row may lack */
    int32_t n_keys;
    bool debezium;
    bool avro_envelope;
    bool follow;
    bool grow;
    bool accept_gap;
    const char *const *kafka_properties;
    const char *kafka_group;
    bool kafka_balance;
    int64_t kafka_timeout_ms; /* 0: as by default; -1: for ever */
    const char *schema_registry;
    bool pieces; /* pipes are read as they come, since the caller does not want to wait */
} source_setup;

/* ---- source_folder.c: what is done of a folder ---- */
typedef struct source_folder {
    tarn_env *env;
    const char *path;
    tarn_arena arena; /* names done */
    tarn_map done;    /* name to the size it was read with; -1: not told, or told of */
    tarn_arena waiting_arena;
    tarn_str *waiting; /* names to read, sorted */
    int32_t n_waiting;
    int32_t next;
} source_folder;

void folder_init(source_folder *f, tarn_env *env, const char *path);
void folder_release(source_folder *f);
/* size -1: not known. */
tarn_code folder_note_done(source_folder *f, tarn_str name, int64_t size,
                           tarn_error *err) TARN_MUST_USE;
/* The next complete file's name, listing anew when all known ones were given; data NULL: none. */
tarn_code folder_next(source_folder *f, tarn_str *name, tarn_error *err) TARN_MUST_USE;

/* ---- source_input.c: one path ---- */
typedef enum input_kind { INPUT_FILE, INPUT_PIPE, INPUT_FOLDER } input_kind;

typedef struct source_input {
    source_setup *setup;
    const char *path;
    input_kind kind;
    bool done;
    source_folder folder;
    /* the present file */
    tarn_arena names;
    const char *file;    /* its path; NULL: none yet */
    tarn_str name;       /* in the folder */
    file_reader *reader; /* one of these, or none: not open */
    piece_reader *pieces;
    io_stream *pipe;       /* of an INPUT_PIPE that is open; its reader's once that is there */
    const byte_feed *feed; /* of pieces of a pipe, theirs */
    bool packed;           /* it is compressed */
    bool ended;            /* the pipe before was read to its end, and nothing behind it yet */
    int64_t whole;         /* checksum of a pipe of plain text that ended; -1: not known */
    file_position at;      /* where it is read on from, then where it stands */
    int64_t size;          /* of the file when it was looked at; -1: not known */
    int64_t check_len;     /* bytes at its front, whose hash is check */
    uint64_t check;
    /* of a followed file, see source_followed.c */
    uint64_t inode;
    int64_t born;     /* as of store_beside; 0: not known */
    int64_t modified; /* when it was written last, in ns since 1970; 0: not known */
    text_mark mark;   /* of what was read of it by this process */
    int64_t tail_len; /* bytes before where it stands, whose hash is tail */
    uint64_t tail;
    const store_tail *open; /* its pieces'; NULL: it is not open, or packed */
    bool over;              /* it was read to its end, since it was rotated, or cut */
    bool cut;
    const tarn_type *root; /* of pieces, as setup knows it already */
    int64_t done_bytes;    /* of files read before */
    int64_t taken_bytes;   /* read by this process from files that are closed */
    int64_t from_bytes;    /* where the one that is open was gone on with */
} source_input;

tarn_code input_init(source_input *in, source_setup *setup, const char *path,
                     tarn_error *err) TARN_MUST_USE;
void input_release(source_input *in);
tarn_code input_next(source_input *in, int64_t timeout_ms, tarn_batch *out, const uint8_t **kinds,
                     tarn_error *err) TARN_MUST_USE;
void input_put(const source_input *in, json_writer *w);
/* A name as input_put writes it; data NULL: it is none. */
tarn_code input_read_name(tarn_arena *arena, const json_value *value, tarn_str *out,
                          tarn_error *err) TARN_MUST_USE;
tarn_code input_seek(source_input *in, const json_value *offsets, tarn_error *err) TARN_MUST_USE;
void input_progress(const source_input *in, int64_t *done, int64_t *total);
int64_t input_taken(const source_input *in);

void input_put_hash(json_writer *w, const char *name, uint64_t hash);
bool input_read_hash(const json_value *offsets, const char *name, uint64_t *out);
/* Gives feed to a reader of pieces, in every case. */
tarn_code input_open_pieces(source_input *in, byte_feed *feed, file_kind kind,
                            tarn_error *err) TARN_MUST_USE;
/* ---- source_followed.c: one file that grows ---- */
bool input_is_followed(const source_input *in);
/* Nothing is open still where it is not there yet, or does not say what it holds. */
tarn_code followed_open(source_input *in, tarn_error *err) TARN_MUST_USE;
void followed_note(source_input *in); /* after rows were read of it */
void followed_end(source_input *in);  /* before it is closed at its end */
void followed_put(const source_input *in, json_writer *w);
void followed_seek(source_input *in, const json_value *offsets);

/* ---- kafka.c ---- */
typedef struct kafka_source kafka_source;
bool kafka_is_location(const char *input);
/* UNSUPPORTED where Kafka was not built in. location and setup must outlive it. */
tarn_code kafka_open(source_setup *setup, const char *location, kafka_source **out,
                     tarn_error *err) TARN_MUST_USE;
void kafka_close(kafka_source *k); /* takes NULL */
tarn_code kafka_seek(kafka_source *k, const json_value *offsets, tarn_error *err) TARN_MUST_USE;
tarn_code kafka_next(kafka_source *k, int64_t timeout_ms, tarn_batch *out, const uint8_t **kinds,
                     bool *ended, tarn_error *err) TARN_MUST_USE;
void kafka_put(const kafka_source *k, json_writer *w);
tarn_code kafka_committed(kafka_source *k, const json_value *offsets,
                          tarn_error *err) TARN_MUST_USE;
source_turn kafka_turn(const kafka_source *k);
const char *kafka_name(const kafka_source *k); /* the location */
void kafka_progress(const kafka_source *k, int64_t *done, int64_t *total);
int64_t kafka_taken(const kafka_source *k);

#endif
