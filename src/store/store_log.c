/* store/store_log.c - see store_log.h.
 *
 *   append -> waits in line -> the first leads: numbers all, writes, syncs, settles all, hands over
 *
 * What is read back after a restart is store_log_scan.c's. */
#include "store/store_log.h"

#include "base/pool.h"
#include "store/store_log_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

typedef struct log_segment {
    int64_t number;
    int64_t bytes;   /* durable */
    int64_t kept;    /* records that are needed */
    int64_t last_ms; /* time of the newest record; 0: none */
    bool ragged;     /* its file may be longer: the segment behind it is needed to say so */
    struct log_segment *next;
} log_segment;

struct store_log {
    tarn_env *env;
    char *dir;
    char *name;
    char id[37];
    int64_t segment_bytes;
    int lock_fd;
    pthread_mutex_t lock; /* of all that follows; fd and broken are the leader's */
    store_log_entry *first, *last;
    bool busy;
    log_segment *segments, *active; /* in order; active is the last */
    int fd;                         /* of active */
    bool fresh;
    int64_t renew; /* bytes from which on a segment that keeps nothing is left; 0: it stays */
    bool broken;   /* behind active's durable part something else may lie */
    int64_t next_position;
    int64_t records, syncs;
};

/* ---- segments ---- */

static char *segment_path(const store_log *log, int64_t number) {
    return log_scan_path(log->env, log->dir, log->name, number);
}

static tarn_code sync_folder(const char *path, tarn_error *err) {
    tarn_code code = TARN_OK;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_os(err, errno, "folder %s could not be opened to sync it", path);
    }
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) {
        code = err_os(err, errno, "folder %s could not be synced", path);
    }
    (void)close(fd);
    return code;
}

static tarn_code write_at(int fd, const char *path, const void *bytes, size_t len, int64_t at,
                          tarn_error *err) {
    const char *p = bytes;
    while (len > 0) {
        ssize_t n = pwrite(fd, p, len, at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_os(err, n < 0 ? errno : ENOSPC, "log %s could not be written", path);
        }
        p += n;
        at += n;
        len -= (size_t)n;
    }
    return TARN_OK;
}

static tarn_code create_segment(store_log *log, const char *path, int64_t number, int *fd_out,
                                tarn_error *err) {
    tarn_code code = TARN_OK;
    segment_head head;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        return err_os(err, errno, "log %s could not be made", path);
    }
    segment_head_fill(&head, log->id, number, log->next_position,
                      log->active != NULL ? log->active->number : -1,
                      log->active != NULL ? log->active->bytes : 0);
    TRY(write_at(fd, path, &head, sizeof head, 0, err));
    if (fsync(fd) != 0) {
        code = err_os(err, errno, "log %s could not be synced", path);
        goto done;
    }
    TRY(sync_folder(log->dir, err));
    *fd_out = fd;
done:
    if (code != TARN_OK) {
        (void)close(fd);
        (void)unlink(path);
    }
    return code;
}

/* The leader's, or before there is any. */
static tarn_code begin_segment(store_log *log, tarn_error *err) {
    tarn_code code = TARN_OK;
    int fd = -1;
    int64_t number = log->active != NULL ? log->active->number + 1 : 0;
    char *path = segment_path(log, number);
    log_segment *s = env_calloc(log->env, 1, sizeof *s);
    if (path == NULL || s == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(create_segment(log, path, number, &fd, err));
    s->number = number;
    s->bytes = (int64_t)sizeof(segment_head);
    (void)pthread_mutex_lock(&log->lock);
    *(log->active != NULL ? &log->active->next : &log->segments) = s;
    log->active = s;
    (void)pthread_mutex_unlock(&log->lock);
    s = NULL;
    if (log->fd >= 0) {
        (void)close(log->fd);
    }
    log->fd = fd;
    log->broken = false;
done:
    env_free(log->env, s);
    env_free(log->env, path);
    return code;
}

/* ---- appending ---- */

static size_t entry_bytes(const store_log_entry *e) {
    return sizeof(record_head) + e->parts[0].len + e->parts[1].len;
}

static tarn_code write_entry(store_log *log, const char *path, store_log_entry *e, int64_t at,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    record_head head;
    record_head_fill(&head, e, log->active->bytes);
    TRY(write_at(log->fd, path, &head, sizeof head, at, err));
    for (int i = 0; i < 2; i++) {
        at += i == 0 ? (int64_t)sizeof head : (int64_t)e->parts[0].len;
        TRY(write_at(log->fd, path, e->parts[i].data, e->parts[i].len, at, err));
    }
done:
    return code;
}

/* Whether one begins that need not. */
static bool may_renew(store_log *log) {
    (void)pthread_mutex_lock(&log->lock);
    const log_segment *s = log->active;
    bool may = log->renew > 0 && s->kept == 0 && s->last_ms != 0 && s->bytes >= log->renew;
    log->renew = 0;
    (void)pthread_mutex_unlock(&log->lock);
    return may;
}

static tarn_code write_entries(store_log *log, store_log_entry *entries, int64_t *end,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    char *path = NULL;
    if (log->broken || (log->active->bytes >= log->segment_bytes && log->active->last_ms != 0)) {
        TRY(begin_segment(log, err));
    } else if (may_renew(log) && begin_segment(log, err) != TARN_OK) {
        err_reset(err);
    }
    path = segment_path(log, log->active->number);
    if (path == NULL) {
        return err_nomem(err);
    }
    *end = log->active->bytes;
    for (store_log_entry *e = entries; e != NULL; e = e->next) {
        e->place.segment = log->active->number;
        e->place.offset = *end;
        e->place.length = (uint32_t)(e->parts[0].len + e->parts[1].len);
        TRY(write_entry(log, path, e, *end, err));
        *end += (int64_t)entry_bytes(e);
    }
    if (fdatasync(log->fd) != 0) {
        /* what a sync that failed left is known to nobody: nothing comes behind it */
        code = err_os(err, errno, "log %s could not be synced", path);
        log->broken = true;
    }
done:
    if (code != TARN_OK && path != NULL && ftruncate(log->fd, log->active->bytes) != 0) {
        log->broken = true;
    }
    env_free(log->env, path);
    return code;
}

/* Under the lock. */
static void settle(store_log *log, store_log_entry *entries, int64_t end, tarn_code code,
                   const tarn_error *failed) {
    log->active->ragged = code != TARN_OK;
    if (code == TARN_OK) {
        log->active->bytes = end;
        log->syncs++;
    }
    for (store_log_entry *e = entries; e != NULL; e = e->next) {
        e->code = code;
        if (code == TARN_OK) {
            log->active->kept += e->keep;
            log->active->last_ms = e->time_ms;
            log->records++;
        } else {
            e->err = *failed;
        }
        if (e->settled != NULL) {
            e->settled(e, code == TARN_OK);
        }
    }
}

/* Under the lock: all that waits, each with its position. */
static store_log_entry *place_entries(store_log *log) {
    store_log_entry *entries = log->first;
    int64_t now_ms = env_now_ms(log->env);
    log->first = log->last = NULL;
    for (store_log_entry *e = entries; e != NULL; e = e->next) {
        e->position = log->next_position++;
        e->time_ms = now_ms;
        if (e->placed != NULL) {
            e->placed(e);
        }
    }
    return entries;
}

static void lead(store_log *log, const store_log_entry *own) {
    tarn_error err = TARN_ERROR_INIT;
    int64_t end = 0;
    (void)pthread_mutex_lock(&log->lock);
    store_log_entry *entries = place_entries(log);
    (void)pthread_mutex_unlock(&log->lock);
    tarn_code code = write_entries(log, entries, &end, &err);
    (void)pthread_mutex_lock(&log->lock);
    settle(log, entries, end, code, &err);
    store_log_entry *leader = log->first;
    log->busy = leader != NULL;
    if (leader != NULL) {
        leader->leads = true;
    }
    (void)pthread_mutex_unlock(&log->lock);
    if (leader != NULL) {
        (void)sem_post(&leader->turn);
    }
    while (entries != NULL) {
        store_log_entry *e = entries;
        entries = e->next; /* its owner may go once it is told */
        if (e != own) {
            (void)sem_post(&e->turn);
        }
    }
}

tarn_code store_log_append(store_log *log, store_log_entry *e, tarn_error *err) {
    if (e->parts[0].len + e->parts[1].len > STORE_LOG_PAYLOAD_BYTES) {
        return err_set(err, TARN_LIMIT, "a record of the log had %zu bytes, and may have %u",
                       e->parts[0].len + e->parts[1].len, STORE_LOG_PAYLOAD_BYTES);
    }
    e->body_crc = num_crc32(num_crc32(0, e->parts[0].data, e->parts[0].len), e->parts[1].data,
                            e->parts[1].len);
    e->leads = false;
    e->next = NULL;
    e->err = (tarn_error)TARN_ERROR_INIT;
    (void)sem_init(&e->turn, 0, 0);
    (void)pthread_mutex_lock(&log->lock);
    *(log->last != NULL ? &log->last->next : &log->first) = e;
    log->last = e;
    if (!log->busy) {
        log->busy = e->leads = true;
    }
    bool leads = e->leads;
    (void)pthread_mutex_unlock(&log->lock);
    while (!leads && sem_wait(&e->turn) != 0) { /* a signal came */
    }
    if (e->leads) {
        lead(log, e);
    }
    (void)sem_destroy(&e->turn);
    if (e->code != TARN_OK && err != NULL) {
        *err = e->err;
    }
    return e->code;
}

/* ---- reading, letting go ---- */

tarn_code store_log_read(store_log *log, const store_log_place *place, tarn_buf *out,
                         tarn_error *err) {
    tarn_code code;
    store_log_record record;
    char *path = segment_path(log, place->segment);
    if (path == NULL) {
        return err_nomem(err);
    }
    code = log_scan_one(path, place, out, &record, err);
    env_free(log->env, path);
    return code;
}

static log_segment *find_segment(store_log *log, int64_t number) {
    log_segment *s = log->segments;
    while (s != NULL && s->number != number) {
        s = s->next;
    }
    return s;
}

void store_log_release(store_log *log, const store_log_place *place) {
    (void)pthread_mutex_lock(&log->lock);
    log_segment *s = find_segment(log, place->segment);
    if (s != NULL && s->kept > 0) {
        s->kept--;
    }
    (void)pthread_mutex_unlock(&log->lock);
}

tarn_code store_log_find_free(store_log *log, int64_t before_ms, store_log_fn fn, void *ctx,
                              int64_t *segment, bool *oldest, bool *found, tarn_error *err) {
    tarn_code code = TARN_OK;
    scan_result unused;
    int64_t bytes = 0;
    *found = false;
    (void)pthread_mutex_lock(&log->lock);
    const log_segment *before = NULL;
    for (const log_segment *s = log->segments; s != NULL && s != log->active; s = s->next) {
        bool needed = before != NULL && before->ragged;
        before = s;
        if (s->kept == 0 && s->last_ms < before_ms && !needed) {
            *found = true;
            *segment = s->number;
            *oldest = s == log->segments;
            bytes = s->bytes;
            break;
        }
    }
    (void)pthread_mutex_unlock(&log->lock);
    if (!*found) {
        return TARN_OK;
    }
    char *path = segment_path(log, *segment);
    if (path == NULL) {
        return err_nomem(err);
    }
    code = log_scan_segment(log->env, path, *segment, bytes, fn, ctx, &unused, err);
    env_free(log->env, path);
    return code;
}

void store_log_remove(store_log *log, int64_t number) {
    log_segment *gone = NULL;
    char *path = segment_path(log, number);
    if (path == NULL || (unlink(path) != 0 && errno != ENOENT)) {
        env_free(log->env, path);
        return; /* it is found again when its turn comes */
    }
    (void)pthread_mutex_lock(&log->lock);
    for (log_segment **at = &log->segments; *at != NULL && gone == NULL;) {
        if ((*at)->number == number && *at != log->active) {
            gone = *at;
            *at = gone->next;
        } else {
            at = &(*at)->next;
        }
    }
    (void)pthread_mutex_unlock(&log->lock);
    env_free(log->env, gone);
    env_free(log->env, path);
}

void store_log_renew(store_log *log, int64_t bytes) {
    (void)pthread_mutex_lock(&log->lock);
    log->renew = bytes;
    (void)pthread_mutex_unlock(&log->lock);
}

bool store_log_room(const store_log *log, int64_t *room, int64_t *size) {
    struct statvfs info;
    if (statvfs(log->dir, &info) != 0 || info.f_blocks == 0) {
        return false;
    }
    *room = (int64_t)(info.f_bavail * info.f_frsize);
    *size = (int64_t)(info.f_blocks * info.f_frsize);
    return true;
}

void store_log_count(store_log *log, store_log_stats *out) {
    memset(out, 0, sizeof *out);
    (void)pthread_mutex_lock(&log->lock);
    for (const log_segment *s = log->segments; s != NULL; s = s->next) {
        out->bytes += s->bytes;
        out->segments++;
    }
    out->fresh = log->fresh;
    out->records = log->records;
    out->syncs = log->syncs;
    out->next_position = log->next_position;
    (void)pthread_mutex_unlock(&log->lock);
}

const char *store_log_id(const store_log *log) {
    return log->id;
}

/* ---- opening ---- */

/* Its name is durable before anything in it is. */
static tarn_code make_folder(const store_log *log, tarn_error *err) {
    tarn_code code = TARN_OK;
    char *parent = log_scan_copy(log->env, log->dir);
    size_t slash;
    if (parent == NULL) {
        return err_nomem(err);
    }
    for (size_t len = strlen(parent); len > 1 && parent[len - 1] == '/'; len--) {
        parent[len - 1] = '\0';
    }
    bool below = str_find_last_char(str_of(parent), '/', &slash);
    parent[below ? slash + (slash == 0) : 0] = '\0';
    bool made = mkdir(log->dir, 0777) == 0;
    if (!made && errno != EEXIST) {
        code = err_os(err, errno, "folder %s could not be made", log->dir);
        goto done;
    }
    code = sync_folder(below ? parent : ".", made ? err : NULL);
    code = made ? code : TARN_OK; /* it may lie where this process may not look */
done:
    env_free(log->env, parent);
    return code;
}

static tarn_code take_folder(store_log *log, tarn_error *err) {
    tarn_buf path;
    tarn_code code = TARN_OK;
    buf_init(&path, log->env, 0);
    TRY(make_folder(log, err));
    TRY(buf_printf(&path, err, "%s/%s.lock%c", log->dir, log->name, '\0'));
    log->lock_fd = open((const char *)path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (log->lock_fd < 0) {
        code = err_os(err, errno, "file %s could not be opened", (const char *)path.data);
        goto done;
    }
    if (flock(log->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        code = errno == EWOULDBLOCK
                   ? err_set(err, TARN_CONFLICT, "folder %s is in use by another process", log->dir)
                   : err_os(err, errno, "file %s could not be locked", (const char *)path.data);
    }
done:
    buf_release(&path);
    return code;
}

typedef struct open_scan {
    store_log *log;
    log_segment *at;
    store_log_fn fn;
    void *ctx;
} open_scan;

static tarn_code take_record(void *ctx, const store_log_record *record, bool *keep,
                             tarn_error *err) {
    open_scan *scan = ctx;
    *keep = false;
    tarn_code code = scan->fn(scan->ctx, record, keep, err);
    scan->at->kept += *keep;
    scan->at->last_ms = record->time_ms;
    if (record->position >= scan->log->next_position) {
        scan->log->next_position = record->position + 1;
    }
    return code;
}

/* The end of a segment whose next one was let go: it had been cut there (cut_tail, ragged). */
static tarn_code find_size(const char *path, int64_t *out, tarn_error *err) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return err_os(err, errno, "log %s could not be looked at", path);
    }
    *out = (int64_t)info.st_size;
    return TARN_OK;
}

/* Bytes that were never acknowledged, and shall not look as if they had been. */
static tarn_code cut_tail(tarn_env *env, const char *path, int64_t bytes, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t size = 0;
    int fd = -1;
    TRY(find_size(path, &size, err));
    if (size <= bytes) {
        return TARN_OK;
    }
    env_log(env, TARN_LOG_WARN, "store", "log",
            "%s is cut at offset %lld: %lld bytes there are no record", path, (long long)bytes,
            (long long)(size - bytes));
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, bytes) != 0 || fsync(fd) != 0) {
        code = err_os(err, errno, "log %s could not be cut at %lld", path, (long long)bytes);
    }
done:
    if (fd >= 0) {
        (void)close(fd);
    }
    return code;
}

/* How much of the segment at own was durable when the next one began; -1: nobody says. */
static tarn_code find_end(const store_log *log, const char *own, int64_t number, int64_t next,
                          int64_t *out, tarn_error *err) {
    scan_result head;
    *out = -1;
    if (next > number + 1) {
        return find_size(own, out, err);
    }
    if (next < 0) {
        return TARN_OK;
    }
    char *path = segment_path(log, next);
    tarn_code code =
        path != NULL ? log_scan_head(log->env, path, next, &head, err) : err_nomem(err);
    env_free(log->env, path);
    if (code == TARN_OK && head.bytes > 0 && head.prev_number == number) {
        *out = head.prev_bytes;
    }
    return code;
}

static tarn_code read_segment(store_log *log, int64_t number, int64_t next, open_scan *scan,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    scan_result result;
    int64_t end;
    char *path = segment_path(log, number);
    log_segment *s = env_calloc(log->env, 1, sizeof *s);
    if (s == NULL || path == NULL) {
        env_free(log->env, s);
        code = err_nomem(err);
        goto done;
    }
    s->number = number;
    *(log->active != NULL ? &log->active->next : &log->segments) = s;
    log->active = scan->at = s;
    TRY(find_end(log, path, number, next, &end, err));
    TRY(log_scan_segment(log->env, path, number, end, take_record, scan, &result, err));
    s->bytes = result.bytes;
    TRY(cut_tail(log->env, path, s->bytes, err));
    if (result.bytes > 0) { /* else it was killed while it was made: nothing was ever in it */
        memcpy(log->id, result.id, sizeof log->id);
        if (result.first_position > log->next_position) {
            log->next_position = result.first_position;
        }
    }
done:
    env_free(log->env, path);
    return code;
}

tarn_code store_log_open(tarn_env *env, const store_log_options *options, store_log_fn fn,
                         void *ctx, store_log **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t *numbers = NULL;
    size_t n = 0;
    store_log *log = env_calloc(env, 1, sizeof *log);
    if (log == NULL) {
        return err_nomem(err);
    }
    open_scan scan = {log, NULL, fn, ctx};
    log->env = env;
    log->fd = log->lock_fd = -1;
    (void)pthread_mutex_init(&log->lock, NULL);
    log->segment_bytes = options->segment_bytes;
    log->dir = log_scan_copy(env, options->dir);
    log->name = log_scan_copy(env, options->name);
    if (log->dir == NULL || log->name == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(take_folder(log, err));
    TRY(log_scan_list(env, log->dir, log->name, &numbers, &n, err));
    for (size_t i = 0; i < n; i++) {
        TRY(read_segment(log, numbers[i], i + 1 < n ? numbers[i + 1] : -1, &scan, err));
    }
    if (log->id[0] == '\0') {
        env_uuid_v4(env, log->id);
        log->fresh = true;
    }
    code = begin_segment(log, err);
    if (code == TARN_IO && log->active != NULL) { /* what is there can be read and committed */
        log->broken = true;
        env_log(env, TARN_LOG_WARN, "store", "log", "%s", err->message);
        err_reset(err);
        code = TARN_OK;
    }
    TRY(code);
    *out = log;
    log = NULL;
done:
    env_free(env, numbers);
    store_log_close(log);
    return code;
}

void store_log_close(store_log *log) {
    if (log == NULL) {
        return;
    }
    while (log->segments != NULL) {
        log_segment *next = log->segments->next;
        env_free(log->env, log->segments);
        log->segments = next;
    }
    if (log->fd >= 0) {
        (void)close(log->fd);
    }
    if (log->lock_fd >= 0) {
        (void)close(log->lock_fd);
    }
    (void)pthread_mutex_destroy(&log->lock);
    env_free(log->env, log->dir);
    env_free(log->env, log->name);
    env_free(log->env, log);
}
