/* apps/tarn/ingest_balance.c - `tarn ingest --kafka-balance`: what a consumer group asks, answered
 * between two reads, and checkpoints that the table refused.
 *
 * A commit that was refused since another process took its partitions over, or whose outcome is not
 * known, is not tried again: its rows are dropped, and the source goes to where the table stands.
 * If the commit happens all the same, the one of the rows that were read again is refused
 * (src/sink/shared_offsets.h). Bad rows that were set aside since the last commit come again too,
 * and are cut off. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "ingest.h"

#define MAX_REWINDS 20 /* one behind the other, until it is an error */

static tarn_code seek_table(ingest *in) {
    char *offsets = NULL;
    tarn_code code = tarn_sink_offsets(in->sink, &offsets, &the_app.err);
    if (code == TARN_OK) {
        code = tarn_source_seek(in->source, offsets != NULL ? offsets : "", &the_app.err);
    }
    tarn_text_free(the_app.env, offsets);
    return code;
}

tarn_code ingest_balance(ingest *in) {
    switch (tarn_source_balance(in->source)) {
    case TARN_BALANCE_GIVES_UP:
        return ingest_checkpoint(in);
    case TARN_BALANCE_TAKES_OVER:
        return seek_table(in);
    case TARN_BALANCE_READS:
        break;
    }
    return TARN_OK;
}

static tarn_code cut_rejects(ingest *in) {
    if (in->rejects == NULL || in->rejected == in->rejected_before) {
        return TARN_OK;
    }
    return fflush(in->rejects) == 0 && ftruncate(fileno(in->rejects), in->rejects_kept) == 0 &&
                   fseek(in->rejects, in->rejects_kept, SEEK_SET) == 0
               ? TARN_OK
               : ingest_rejects_error();
}

tarn_code ingest_rewind(ingest *in, tarn_code code) {
    bool away = (the_app.err.flags & TARN_ERROR_AWAY) != 0; /* it was waited for long enough */
    if (away || (code != TARN_CONFLICT && code != TARN_COMMIT_UNKNOWN) ||
        in->rewinds >= MAX_REWINDS) {
        return code;
    }
    if (!the_app.quiet) {
        app_say("warning", "%" PRId64 " row%s not committed by this process: %s", in->waiting,
                in->waiting == 1 ? " was" : "s were", the_app.err.message);
    }
    in->rewinds++;
    in->rows -= in->waiting;
    in->waiting = 0;
    code = cut_rejects(in);
    in->rejected = in->rejected_before;
    in->rewound = true;
    return code == TARN_OK ? seek_table(in) : code;
}
