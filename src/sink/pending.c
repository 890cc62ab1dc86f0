/* sink/pending.c - which of the deltas that lie in a state are the stream's.
 *
 * Deltas that become durable by one sync get their names one by one, and a power cut before that
 * sync's end may take any of the names, also one before a name that stays. And a job that was taken
 * over may have left deltas that the newer one never saw. So a delta says which one it follows:
 * those that lead back to what is committed are a stream, the newest job's is the one, and all
 * others are strays. A stray is in no table: nothing is committed before its sync has ended, by
 * then what it follows is durable too, and a job that sees it goes on from it. */
#include "sink/state.h"

static bool follows(const sink_delta *d, const sink_delta *before) {
    return d->after_checkpoint == before->checkpoint &&
           (d->after_epoch == 0 || d->after_epoch == before->epoch);
}

/* NULL: what it follows is committed, or missing. Where it does not say, the nearest one. */
static sink_pending *find_before(sink_pending *list, sink_pending *previous, const sink_pending *p,
                                 int64_t known) {
    const sink_delta *d = &p->delta;
    sink_pending *found = NULL;
    if (previous != NULL && d->after_epoch != 0 && follows(d, &previous->delta)) {
        return previous; /* as nearly all do */
    }
    for (sink_pending *q = list; q != p; q = q->next) {
        bool is_it = d->after_checkpoint < 0
                         ? q->delta.checkpoint > known && q->delta.checkpoint < d->checkpoint
                         : follows(d, &q->delta);
        found = is_it ? q : found;
    }
    return found;
}

/* Whether it follows what is committed, and not another job's checkpoint of that number. */
static bool is_at_known(const sink_delta *d, int64_t known, int64_t known_epoch) {
    bool another = d->after_checkpoint == known && d->after_epoch != 0 && known_epoch != 0 &&
                   d->after_epoch != known_epoch;
    return d->after_checkpoint >= 0 && d->after_checkpoint <= known && !another;
}

void sink_pending_mark(sink_pending *list, int64_t known, int64_t known_epoch) {
    sink_pending *last = NULL;
    sink_pending *previous = NULL;
    for (sink_pending *p = list; p != NULL; previous = p, p = p->next) {
        const sink_delta *d = &p->delta;
        bool is_new = d->checkpoint > known;
        /* of two with one number the later epoch's is the stream's */
        p->stray = is_new || (p->next != NULL && p->next->delta.checkpoint == d->checkpoint);
        p->before = NULL;
        p->rooted = false;
        if (!is_new) {
            continue;
        }
        bool at_known = is_at_known(d, known, known_epoch);
        p->before = at_known ? NULL : find_before(list, previous, p, known);
        p->rooted = at_known || (p->before != NULL ? p->before->rooted : d->after_checkpoint < 0);
        if (p->rooted && (last == NULL || d->epoch >= last->delta.epoch)) {
            last = p;
        }
    }
    for (sink_pending *p = last; p != NULL; p = p->before) {
        p->stray = false;
    }
}
