/* store/store_log_scan.c - see store_log_int.h.
 *
 * A record that is not whole ends its segment, unless a whole one behind it says that it had been
 * durable: then it was acknowledged, and is damaged. */
#include "store/store_log_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENT_MAGIC   "tarnrows"
#define SEGMENT_VERSION 1
#define RECORD_MAGIC    UINT32_C(0x63724e54)

static uint32_t segment_crc(const segment_head *head) {
    size_t from = offsetof(segment_head, version);
    return num_crc32(0, (const char *)head + from, sizeof *head - from);
}

static uint32_t record_crc(const record_head *head) {
    size_t from = offsetof(record_head, kind);
    return num_crc32(0, (const char *)head + from, sizeof *head - from);
}

void segment_head_fill(segment_head *head, const char *id, int64_t number, int64_t first_position,
                       int64_t prev_number, int64_t prev_bytes) {
    memset(head, 0, sizeof *head);
    memcpy(head->magic, SEGMENT_MAGIC, sizeof head->magic);
    head->version = SEGMENT_VERSION;
    head->number = number;
    head->first_position = first_position;
    head->prev_number = prev_number;
    head->prev_bytes = prev_bytes;
    memcpy(head->id, id, strlen(id));
    head->crc = segment_crc(head);
}

void record_head_fill(record_head *head, const store_log_entry *e, int64_t synced) {
    memset(head, 0, sizeof *head);
    head->magic = RECORD_MAGIC;
    head->kind = e->kind;
    head->length = (uint32_t)(e->parts[0].len + e->parts[1].len);
    head->body_crc = e->body_crc;
    head->segment = (uint32_t)e->place.segment;
    head->position = e->position;
    head->synced = synced;
    head->time_ms = e->time_ms;
    head->crc = record_crc(head);
}

char *log_scan_copy(tarn_env *env, const char *text) {
    char *copy = env_alloc(env, strlen(text) + 1);
    if (copy != NULL) {
        memcpy(copy, text, strlen(text) + 1);
    }
    return copy;
}

char *log_scan_path(tarn_env *env, const char *dir, const char *name, int64_t number) {
    size_t size = strlen(dir) + strlen(name) + 40;
    char *path = env_alloc(env, size);
    if (path != NULL) {
        (void)snprintf(path, size, "%s/%s-%012lld.log", dir, name, (long long)number);
    }
    return path;
}

static bool read_number(const char *file, const char *name, int64_t *out) {
    size_t len = strlen(name);
    tarn_str text = str_of(file);
    return strncmp(file, name, len) == 0 && file[len] == '-' && str_ends_with(text, STR(".log")) &&
           str_to_i64(str_sub(text, len + 1, text.len - len - 5), out) && *out >= 0;
}

static int compare_numbers(const void *a, const void *b) {
    const int64_t *x = a;
    const int64_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

tarn_code log_scan_list(tarn_env *env, const char *dir, const char *name, int64_t **out, size_t *n,
                        tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t *numbers = NULL;
    int64_t number;
    size_t count = 0;
    DIR *folder = opendir(dir);
    if (folder == NULL) {
        return err_os(err, errno, "folder %s could not be read", dir);
    }
    for (const struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
        if (!read_number(e->d_name, name, &number)) {
            continue;
        }
        int64_t *grown =
            (count & (count - 1)) == 0
                ? env_realloc(env, numbers, (count == 0 ? 1 : count * 2) * sizeof *numbers)
                : numbers;
        if (grown == NULL) {
            code = err_nomem(err);
            goto done;
        }
        numbers = grown;
        numbers[count++] = number;
    }
    if (count > 0) {
        qsort(numbers, count, sizeof *numbers, compare_numbers);
    }
    *out = numbers;
    *n = count;
    numbers = NULL;
done:
    (void)closedir(folder);
    env_free(env, numbers);
    return code;
}

/* ---- reading ---- */

typedef struct segment_file {
    const char *path;
    int fd;
    int64_t number;
    int64_t size;
    tarn_buf payload;
} segment_file;

/* *whole false: there is less. */
static tarn_code read_at(const segment_file *f, int64_t at, void *out, size_t len, bool *whole,
                         tarn_error *err) {
    char *p = out;
    *whole = true;
    while (len > 0) {
        ssize_t n = pread(f->fd, p, len, at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_os(err, errno, "log %s could not be read", f->path);
        }
        if (n == 0) {
            *whole = false;
            return TARN_OK;
        }
        p += n;
        at += n;
        len -= (size_t)n;
    }
    return TARN_OK;
}

/* *whole false: there is no record, or it is damaged. */
static tarn_code read_record(segment_file *f, int64_t at, record_head *head, bool *whole,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(read_at(f, at, head, sizeof *head, whole, err));
    *whole = *whole && head->magic == RECORD_MAGIC && head->crc == record_crc(head) &&
             head->segment == (uint32_t)f->number && head->length <= STORE_LOG_PAYLOAD_BYTES &&
             at + (int64_t)sizeof *head + head->length <= f->size;
    if (!*whole) {
        goto done;
    }
    buf_reset(&f->payload);
    TRY(buf_reserve(&f->payload, head->length, err));
    TRY(read_at(f, at + (int64_t)sizeof *head, f->payload.data, head->length, whole, err));
    f->payload.len = head->length;
    *whole = *whole && num_crc32(0, f->payload.data, f->payload.len) == head->body_crc;
done:
    return code;
}

static tarn_code refuse_damaged(const segment_file *f, int64_t at, tarn_error *err) {
    return err_set(err, TARN_CORRUPT,
                   "log %s is damaged at offset %lld: a record that had been acknowledged is not "
                   "whole",
                   f->path, (long long)at);
}

/* Looks for a whole record behind a damaged one. */
static tarn_code check_tail(segment_file *f, int64_t at, tarn_error *err) {
    tarn_code code = TARN_OK;
    record_head head;
    const uint32_t magic = RECORD_MAGIC;
    bool whole;
    tarn_buf rest;
    buf_init(&rest, f->payload.env, 0);
    size_t len = f->size > at ? (size_t)(f->size - at) : 0;
    TRY(buf_reserve(&rest, len, err));
    TRY(read_at(f, at, rest.data, len, &whole, err));
    for (size_t i = 1; whole && i + sizeof head <= len; i++) {
        if (memcmp(rest.data + i, &magic, sizeof magic) != 0) {
            continue;
        }
        bool found;
        TRY(read_record(f, at + (int64_t)i, &head, &found, err));
        if (found && head.synced > at) {
            code = refuse_damaged(f, at, err);
            goto done;
        }
    }
done:
    buf_release(&rest);
    return code;
}

static tarn_code read_head(const segment_file *f, scan_result *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    segment_head head;
    bool whole;
    TRY(read_at(f, 0, &head, sizeof head, &whole, err));
    if (!whole) {
        goto done; /* bytes 0: records come only after the head was durable */
    }
    if (memcmp(head.magic, SEGMENT_MAGIC, sizeof head.magic) != 0 ||
        head.crc != segment_crc(&head) || head.number != f->number) {
        bool blank = f->size == (int64_t)sizeof head; /* it was never used, whatever it holds */
        code =
            blank ? TARN_OK : err_set(err, TARN_CORRUPT, "log %s is damaged at offset 0", f->path);
        goto done;
    }
    if (head.version != SEGMENT_VERSION) {
        code = err_set(err, TARN_UNSUPPORTED, "log %s has version %u; this is 1", f->path,
                       head.version);
        goto done;
    }
    out->bytes = (int64_t)sizeof head;
    out->first_position = head.first_position;
    out->prev_number = head.prev_number;
    out->prev_bytes = head.prev_bytes;
    memcpy(out->id, head.id, sizeof out->id - 1);
done:
    return code;
}

static tarn_code give_records(segment_file *f, int64_t limit, store_log_fn fn, void *ctx,
                              scan_result *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    while (limit < 0 || out->bytes < limit) {
        record_head head;
        bool whole;
        bool unused;
        TRY(read_record(f, out->bytes, &head, &whole, err));
        if (!whole && limit >= 0) {
            code = refuse_damaged(f, out->bytes, err);
            goto done;
        }
        if (!whole) {
            TRY(check_tail(f, out->bytes, err));
            break;
        }
        const store_log_record record = {head.kind,
                                         head.position,
                                         head.time_ms,
                                         {f->number, out->bytes, head.length},
                                         buf_str(&f->payload)};
        TRY(fn(ctx, &record, &unused, err));
        out->bytes += (int64_t)sizeof head + head.length;
    }
done:
    return code;
}

static tarn_code open_file(tarn_env *env, const char *path, int64_t number, segment_file *f,
                           tarn_error *err) {
    struct stat info;
    f->path = path;
    f->number = number;
    buf_init(&f->payload, env, 0);
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0 || fstat(f->fd, &info) != 0) {
        tarn_code code = err_os(err, errno, "log %s could not be opened", path);
        if (f->fd >= 0) {
            (void)close(f->fd);
        }
        return code;
    }
    f->size = (int64_t)info.st_size;
    return TARN_OK;
}

tarn_code log_scan_segment(tarn_env *env, const char *path, int64_t number, int64_t limit,
                           store_log_fn fn, void *ctx, scan_result *out, tarn_error *err) {
    segment_file f;
    memset(out, 0, sizeof *out);
    tarn_code code = open_file(env, path, number, &f, err);
    if (code != TARN_OK) {
        return code;
    }
    TRY(read_head(&f, out, err));
    if (out->bytes > 0) {
        TRY(give_records(&f, limit, fn, ctx, out, err));
    }
done:
    buf_release(&f.payload);
    (void)close(f.fd);
    return code;
}

tarn_code log_scan_head(tarn_env *env, const char *path, int64_t number, scan_result *out,
                        tarn_error *err) {
    segment_file f;
    memset(out, 0, sizeof *out);
    tarn_code code = open_file(env, path, number, &f, err);
    if (code == TARN_OK) {
        code = read_head(&f, out, err);
        (void)close(f.fd);
    }
    return code;
}

tarn_code log_scan_one(const char *path, const store_log_place *place, tarn_buf *bytes,
                       store_log_record *out, tarn_error *err) {
    segment_file f;
    record_head head;
    bool whole;
    tarn_code code = open_file(bytes->env, path, place->segment, &f, err);
    if (code != TARN_OK) {
        return code;
    }
    TRY(read_record(&f, place->offset, &head, &whole, err));
    if (!whole) {
        code = err_set(err, TARN_CORRUPT, "log %s is damaged at offset %lld", path,
                       (long long)place->offset);
        goto done;
    }
    buf_release(bytes);
    *bytes = f.payload;
    memset(&f.payload, 0, sizeof f.payload);
    *out = (store_log_record){head.kind, head.position, head.time_ms, *place, buf_str(bytes)};
done:
    buf_release(&f.payload);
    (void)close(f.fd);
    return code;
}
