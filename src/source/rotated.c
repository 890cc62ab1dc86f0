/* source/rotated.c - see rotated.h.
 *
 * NAME, followed, becomes NAME.1 and then NAME.2 (the numbers of some tools grow towards the newest
 * instead: times tell), or NAME with a date or counter: NAME-20261130, NAME.2026-11-30.2; also
 * inside, before its ending: app.1.log. Among names of one shape the numbers order; else the time
 * of the last write does. A packed file counts where it is not there unpacked too; its time may be
 * that of the packing, so it is held against other packed ones only. */
#include "source/rotated.h"

#define MAX_NUMBERS    8
#define COUNTER_DIGITS 5 /* more are a date or a time */

typedef struct rotated_name {
    bool ok;
    bool inside; /* before the ending */
    char before; /* what parts it from the name */
    bool packed;
    bool counter; /* one small number */
    int n;
    int64_t numbers[MAX_NUMBERS];
} rotated_name;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Digits, parted by single marks. */
static bool parse_numbers(tarn_str text, rotated_name *out) {
    size_t digits = 0;
    out->n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (is_digit(c)) {
            if (digits == 0 && out->n++ == MAX_NUMBERS) {
                return false;
            }
            if (++digits > 18) {
                return false;
            }
            out->numbers[out->n - 1] = out->numbers[out->n - 1] * 10 + (c - '0');
        } else if (digits > 0 && strchr("-_.:T", c) != NULL && i + 1 < text.len) {
            digits = 0;
        } else {
            return false;
        }
    }
    out->counter = out->n == 1 && text.len <= COUNTER_DIGITS;
    return out->n > 0;
}

static size_t packed_ending(tarn_str name) {
    static const char *const endings[] = {".gz", ".zst", ".bz2", ".xz", ".lz4"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (str_ends_with(name, str_of(endings[i]))) {
            return strlen(endings[i]);
        }
    }
    return 0;
}

bool rotated_is_packed(tarn_str name) {
    return packed_ending(name) > 0;
}

static rotated_name parse_name(tarn_str base, tarn_str name) {
    rotated_name r;
    memset(&r, 0, sizeof r);
    r.packed = rotated_is_packed(name);
    name.len -= packed_ending(name);
    if (name.len > base.len + 1 && str_starts_with(name, base) &&
        strchr(".-_", name.data[base.len]) != NULL) {
        r.before = name.data[base.len];
        r.ok = parse_numbers(str_from(name, base.len + 1), &r);
        return r;
    }
    size_t stem = base.len;
    while (stem > 0 && base.data[stem - 1] != '.') {
        stem--;
    }
    stem = stem > 0 ? stem - 1 : 0; /* at its last point */
    tarn_str ending = str_from(base, stem);
    if (stem > 0 && name.len > base.len + 1 && str_starts_with(name, str_sub(base, 0, stem)) &&
        str_ends_with(name, ending) && strchr(".-_", name.data[stem]) != NULL) {
        r.inside = true;
        r.before = name.data[stem];
        r.ok = parse_numbers(str_sub(name, stem + 1, name.len - base.len - 1), &r);
    }
    return r;
}

static rotated_name name_of(const store_beside_list *list, int32_t file) {
    rotated_name r = parse_name(list->name, list->files[file].name);
    return r.ok ? r : parse_name(list->target, list->files[file].name);
}

bool rotated_is(const store_beside_list *list, int32_t file) {
    return name_of(list, file).ok;
}

static bool is_one_shape(const rotated_name *a, const rotated_name *b) {
    return a->ok && b->ok && a->inside == b->inside && a->before == b->before &&
           a->counter == b->counter;
}

static int compare_numbers(const rotated_name *a, const rotated_name *b) {
    for (int i = 0; i < a->n && i < b->n; i++) {
        if (a->numbers[i] != b->numbers[i]) {
            return a->numbers[i] < b->numbers[i] ? -1 : 1;
        }
    }
    return a->n - b->n;
}

static int compare_times(int64_t a, int64_t b) {
    return a < b ? -1 : a > b;
}

/* Whether it is there unpacked too. */
static bool is_double(const store_beside_list *list, int32_t file, const rotated_name *name) {
    for (int32_t i = 0; i < list->n && name->packed; i++) {
        rotated_name other = name_of(list, i);
        if (i != file && !other.packed && is_one_shape(&other, name) &&
            compare_numbers(&other, name) == 0) {
            return true;
        }
    }
    return false;
}

typedef struct order {
    const store_beside_list *list;
    rotated_name at;
    int64_t modified;
    int grows; /* 1: counters grow towards the newest, -1: towards the oldest */
    bool sure;
} order;

/* Which way most neighbours of at, or else of any counter, go. */
static void find_direction(order *o) {
    rotated_name one = o->at;
    int64_t one_time = o->modified;
    int votes = 0;
    for (int32_t i = 0; i < o->list->n; i++) {
        rotated_name a = name_of(o->list, i);
        int64_t time = o->list->files[i].modified;
        if (!one.counter && a.ok && a.counter) {
            one = a;
            one_time = time;
        } else if (is_one_shape(&a, &one) && a.packed == one.packed) {
            int way = compare_numbers(&a, &one) * compare_times(time, one_time);
            votes += (way > 0) - (way < 0);
        }
    }
    o->sure = votes != 0;
    o->grows = votes > 0 ? 1 : -1;
}

/* Above 0: a is newer than b. */
static int compare(const order *o, const rotated_name *a, int64_t a_time, const rotated_name *b,
                   int64_t b_time) {
    if (!is_one_shape(a, b)) {
        return compare_times(a_time, b_time);
    }
    int by_name = compare_numbers(a, b);
    return a->counter ? by_name * o->grows : by_name;
}

/* The number that should be next to at's. */
static int64_t missing_number(const order *o, const rotated_name *next) {
    if (!o->at.counter) {
        return -1;
    }
    int64_t want = o->at.numbers[0] + o->grows;
    if (next != NULL) {
        return is_one_shape(next, &o->at) && next->numbers[0] != want ? want : -1;
    }
    return o->grows < 0 && want >= 1 ? want : -1; /* 0 or 1 is the newest */
}

void rotated_find_next(const store_beside_list *list, int32_t at, int64_t modified,
                       rotated_next *out) {
    order o;
    rotated_name best;
    memset(&o, 0, sizeof o);
    memset(&best, 0, sizeof best);
    o.list = list;
    o.modified = at >= 0 ? list->files[at].modified : modified;
    if (at >= 0) {
        o.at = name_of(list, at);
    }
    find_direction(&o);
    *out = (rotated_next){-1, -1, o.sure, -1};
    for (int32_t i = 0; i < list->n; i++) {
        const store_beside *file = &list->files[i];
        rotated_name name = name_of(list, i);
        if (i == at || i == list->named || !name.ok || is_double(list, i, &name)) {
            continue;
        }
        int newer = compare(&o, &name, file->modified, &o.at, o.modified);
        if (newer != 0 && name.packed == o.at.packed &&
            newer * compare_times(file->modified, o.modified) < 0) {
            out->disputed = i;
        }
        if (newer > 0 && (out->file < 0 || compare(&o, &name, file->modified, &best,
                                                   list->files[out->file].modified) < 0)) {
            out->file = i;
            best = name;
        }
    }
    if (at >= 0) {
        out->missing = missing_number(&o, out->file >= 0 ? &best : NULL);
    }
}
