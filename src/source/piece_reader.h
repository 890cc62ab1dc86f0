/* source/piece_reader.h - rows of text that comes bit by bit: from a pipe, a file that grows, a
 * topic. What is there is cut into pieces of whole records, each decoded like a small file. */
#ifndef SOURCE_PIECE_READER_H
#define SOURCE_PIECE_READER_H

#include "format/text/text.h"
#include "source/feed.h"
#include "source/file_reader.h"
#include "source/text_mark.h"

typedef struct piece_request {
    const tarn_type *root; /* NULL: what the first piece suggests */
    text_options text;     /* with first_line and kind_column unset */
    const char *kind_column;
    bool grow; /* members that root lacks become columns, ints that overflow longs */
    const file_position *start; /* where the feed begins in the text; NULL: its beginning */
    text_mark *mark;            /* kept in step with the position; NULL: not asked for */
} piece_request;

typedef struct piece_reader piece_reader;
/* Takes feed on success. The request's texts and types must outlive the reader. */
tarn_code piece_reader_open(byte_feed *feed, const piece_request *request, piece_reader **out,
                            tarn_error *err) TARN_MUST_USE;
/* Next rows within timeout_ms (-1: for ever); none: batch_rows(out) == 0, and *ended says whether
 * there will be more. out's type (without the column of kinds) lives as long as the reader. */
tarn_code piece_reader_next(piece_reader *r, int64_t timeout_ms, tarn_batch *out, bool *ended,
                            tarn_error *err) TARN_MUST_USE;
const uint8_t *piece_reader_kinds(const piece_reader *r); /* as file_reader_kinds */
void piece_reader_position(const piece_reader *r, file_position *out);
/* The columns to read as, kinds' column too; NULL until the first piece where none were given. */
const tarn_type *piece_reader_root(const piece_reader *r);
void piece_reader_close(piece_reader *r); /* takes NULL */

#endif
