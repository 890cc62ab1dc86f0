/* base/time.c - the proleptic Gregorian calendar as arithmetic. Pure functions.
 * A 400-year era has 146097 days; years are counted from March, so the leap day is the last. */
#include "base/time.h"

#include "base/num.h"

#define DAYS_PER_ERA    INT64_C(146097)
#define MAX_YEAR_DIGITS 9
#define US_PER_S        INT64_C(1000000)

int64_t time_days_from_civil(int64_t year, int32_t month, int32_t day) {
    int64_t y = year - (month <= 2);
    int64_t era = num_floor_div(y, 400);
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - 719468;
}

void time_civil_from_days(int64_t days, int64_t *year, int32_t *month, int32_t *day) {
    int64_t era = num_floor_div(days, DAYS_PER_ERA);
    int64_t day_of_era = num_floor_mod(days, DAYS_PER_ERA);
    /* 1970-01-01 is day 719468 since 0000-03-01: four eras and 135080 days. Added to the
     * remainder, so that no number of days overflows. */
    day_of_era += 135080;
    era += 4;
    if (day_of_era >= DAYS_PER_ERA) {
        day_of_era -= DAYS_PER_ERA;
        era++;
    }
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    *day = (int32_t)(day_of_year - (153 * month_from_march + 2) / 5 + 1);
    *month = (int32_t)(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
    *year = era * 400 + year_of_era + (*month <= 2);
}

static int32_t days_of_month(int64_t year, int32_t month) {
    static const int8_t days[13] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = num_floor_mod(year, 4) == 0 &&
                (num_floor_mod(year, 100) != 0 || num_floor_mod(year, 400) == 0);
    return month == 2 && leap ? 29 : days[month];
}

/* A reader that only moves on when it finds what was asked for. */
typedef struct cursor {
    const char *p;
    const char *end;
} cursor;

static bool take_char(cursor *c, char want) {
    if (c->p < c->end && *c->p == want) {
        c->p++;
        return true;
    }
    return false;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool take_two(cursor *c, int32_t max, int32_t *out) {
    if (c->end - c->p < 2 || !is_digit(c->p[0]) || !is_digit(c->p[1])) {
        return false;
    }
    int32_t v = (c->p[0] - '0') * 10 + (c->p[1] - '0');
    if (v > max) {
        return false;
    }
    c->p += 2;
    *out = v;
    return true;
}

static bool take_date(cursor *c, int64_t *days) {
    bool negative = take_char(c, '-');
    if (!negative) {
        (void)take_char(c, '+');
    }
    int64_t year = 0;
    int digits = 0;
    while (c->p < c->end && is_digit(*c->p)) {
        if (++digits > MAX_YEAR_DIGITS) {
            return false;
        }
        year = year * 10 + (*c->p++ - '0');
    }
    int32_t month;
    int32_t day;
    if (digits < 4 || !take_char(c, '-') || !take_two(c, 12, &month) || !take_char(c, '-') ||
        !take_two(c, 31, &day)) {
        return false;
    }
    if (negative) {
        year = -year;
    }
    if (month < 1 || day < 1 || day > days_of_month(year, month)) {
        return false;
    }
    *days = time_days_from_civil(year, month, day);
    return true;
}

/* unit: parts of a second, 10^sub_digits. Up to nine fraction digits; those finer than the unit
 * must be zeros. */
static bool take_time(cursor *c, int sub_digits, int64_t *out) {
    int32_t hour;
    int32_t minute;
    int32_t second = 0;
    int64_t fraction = 0;
    int digits = 0;
    if (!take_two(c, 23, &hour) || !take_char(c, ':') || !take_two(c, 59, &minute)) {
        return false;
    }
    if (take_char(c, ':')) {
        if (!take_two(c, 59, &second)) {
            return false;
        }
        if (take_char(c, '.')) {
            while (c->p < c->end && is_digit(*c->p)) {
                if (++digits > 9 || (digits > sub_digits && *c->p != '0')) {
                    return false;
                }
                if (digits <= sub_digits) {
                    fraction = fraction * 10 + (*c->p - '0');
                }
                c->p++;
            }
            if (digits == 0) {
                return false;
            }
        }
    }
    int64_t unit = 1;
    for (int i = 0; i < sub_digits; i++) {
        unit *= 10;
        fraction *= i >= digits ? 10 : 1;
    }
    *out = ((int64_t)hour * 3600 + minute * 60 + second) * unit + fraction;
    return true;
}

/* Z, +HH:MM, +HHMM or +HH, in minutes; *there is false when the text ends before it. */
static bool take_offset(cursor *c, bool *there, int32_t *minutes) {
    *there = c->p < c->end;
    *minutes = 0;
    if (!*there || take_char(c, 'Z')) {
        return true;
    }
    bool negative = take_char(c, '-');
    int32_t hour;
    int32_t minute = 0;
    if ((!negative && !take_char(c, '+')) || !take_two(c, 23, &hour)) {
        return false;
    }
    if (take_char(c, ':')) {
        if (!take_two(c, 59, &minute)) {
            return false;
        }
    } else if (c->p < c->end && !take_two(c, 59, &minute)) {
        return false;
    }
    *minutes = hour * 60 + minute;
    if (negative) {
        *minutes = -*minutes;
    }
    return true;
}

bool time_parse_date(tarn_str s, int32_t *days) {
    cursor c = {s.data, s.data + s.len};
    int64_t v;
    if (s.len == 0 || !take_date(&c, &v) || c.p != c.end || v < INT32_MIN || v > INT32_MAX) {
        return false;
    }
    *days = (int32_t)v;
    return true;
}

bool time_parse_time(tarn_str s, int64_t *us) {
    cursor c = {s.data, s.data + s.len};
    int64_t v;
    if (s.len == 0 || !take_time(&c, 6, &v) || c.p != c.end) {
        return false;
    }
    *us = v;
    return true;
}

bool time_parse_timestamp(tarn_str s, int sub_digits, bool *zoned_out, int64_t *out) {
    cursor c = {s.data, s.data + s.len};
    int64_t days;
    int64_t of_day;
    bool zoned;
    int32_t minutes;
    if (s.len == 0 || !take_date(&c, &days) || (!take_char(&c, 'T') && !take_char(&c, ' ')) ||
        !take_time(&c, sub_digits, &of_day) || !take_offset(&c, &zoned, &minutes) || c.p != c.end) {
        return false;
    }
    int64_t unit = sub_digits == 9 ? US_PER_S * 1000 : US_PER_S;
    /* Days alone may overflow where the whole does not, near the least timestamp. */
    tarn_int128 v = (tarn_int128)days * 86400 * unit + of_day - (tarn_int128)minutes * 60 * unit;
    if (v < INT64_MIN || v > INT64_MAX) {
        return false;
    }
    if (zoned_out != NULL) {
        *zoned_out = zoned;
    }
    *out = (int64_t)v;
    return true;
}

static char *put_digits(char *p, uint64_t v, int digits) {
    for (int i = digits - 1; i >= 0; i--) {
        p[i] = (char)('0' + v % 10);
        v /= 10;
    }
    return p + digits;
}

/* At least four digits of year; a sign where ISO 8601 asks for it: before zero and beyond 9999. */
static char *put_date(char *p, int64_t days) {
    int64_t year;
    int32_t month;
    int32_t day;
    time_civil_from_days(days, &year, &month, &day);
    uint64_t absolute = year < 0 ? 0 - (uint64_t)year : (uint64_t)year;
    int digits = 4;
    for (uint64_t rest = absolute / 10000; rest > 0; rest /= 10) {
        digits++;
    }
    if (year < 0) {
        *p++ = '-';
    } else if (digits > 4) {
        *p++ = '+';
    }
    p = put_digits(p, absolute, digits);
    *p++ = '-';
    p = put_digits(p, (uint64_t)month, 2);
    *p++ = '-';
    return put_digits(p, (uint64_t)day, 2);
}

/* of_day is not negative. */
static char *put_time(char *p, int64_t of_day, int sub_digits) {
    uint64_t unit = sub_digits == 9 ? (uint64_t)US_PER_S * 1000 : (uint64_t)US_PER_S;
    uint64_t seconds = (uint64_t)of_day / unit;
    p = put_digits(p, seconds / 3600, 2);
    *p++ = ':';
    p = put_digits(p, seconds / 60 % 60, 2);
    *p++ = ':';
    p = put_digits(p, seconds % 60, 2);
    *p++ = '.';
    return put_digits(p, (uint64_t)of_day % unit, sub_digits);
}

size_t time_format_date(int64_t days, char out[32]) {
    char *end = put_date(out, days);
    *end = '\0';
    return (size_t)(end - out);
}

/* A value outside of one day has no time of day; it is wrapped into one. */
size_t time_format_time(int64_t us, char out[32]) {
    char *end = put_time(out, num_floor_mod(us, TIME_US_PER_DAY), 6);
    *end = '\0';
    return (size_t)(end - out);
}

size_t time_format_timestamp(int64_t value, int sub_digits, bool zoned, char out[48]) {
    int64_t per_day = sub_digits == 9 ? TIME_US_PER_DAY * 1000 : TIME_US_PER_DAY;
    char *p = put_date(out, num_floor_div(value, per_day));
    *p++ = 'T';
    p = put_time(p, num_floor_mod(value, per_day), sub_digits);
    if (zoned) {
        memcpy(p, "+00:00", 6);
        p += 6;
    }
    *p = '\0';
    return (size_t)(p - out);
}
