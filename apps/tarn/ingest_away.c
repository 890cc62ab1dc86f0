/* apps/tarn/ingest_away.c - `tarn ingest` while its catalog is away: streams wait until it is back,
 * and say so once when it goes and once when it comes.
 *
 * A signal ends the waiting, after a moment in which the last checkpoint is made durable: then the
 * state has what the table lacks, and the same command goes on. */
#include "ingest.h"

#define LAST_MS 1000 /* of waiting after a signal */

static bool on_away(void *ctx, tarn_away_event event, int64_t ms, const char *why) {
    ingest *in = ctx;
    if (event == TARN_AWAY_BEGINS && !the_app.quiet) {
        ingest_end_progress(in);
        app_say("warning", "the catalog is away: %s; waiting", why);
    } else if (event == TARN_AWAY_ENDS && !the_app.quiet) {
        ingest_end_progress(in);
        app_say("info", "the catalog is back after %.1f s", (double)ms / 1000);
    }
    if (!ingest_was_stopped()) {
        return true;
    }
    if (!in->ends_waiting) {
        in->ends_waiting = true;
        clock_gettime(CLOCK_MONOTONIC, &in->stopped);
    }
    return ingest_seconds_since(&in->stopped) * 1000 < LAST_MS;
}

tarn_code ingest_wait_for_catalog(ingest *in) {
    tarn_catalog_wait wait = TARN_CATALOG_WAIT_INIT;
    bool stream = ingest_options.follow || ingest_options.state != NULL || ingest_is_kafka(in);
    wait.timeout_ms = ingest_options.catalog_wait != NULL ? ingest_options.catalog_wait_ms
                      : stream                            ? -1
                                                          : 0;
    wait.ask = on_away;
    wait.ctx = in;
    return wait.timeout_ms != 0 ? tarn_catalog_set_wait(the_app.catalog, &wait, &the_app.err)
                                : TARN_OK;
}

void ingest_wait_no_more(void) {
    tarn_error ignored = TARN_ERROR_INIT;
    if (the_app.catalog != NULL) {
        ignored.code = tarn_catalog_set_wait(the_app.catalog, NULL, &ignored); /* never fails */
    }
}
