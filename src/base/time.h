/* base/time.h - the proleptic Gregorian calendar as arithmetic; no time zones but fixed offsets, no
 * system calls. */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include "base/str.h"

#define TIME_US_PER_DAY  INT64_C(86400000000)
#define TIME_US_PER_HOUR INT64_C(3600000000)

int64_t time_days_from_civil(int64_t year, int32_t month, int32_t day);
void time_civil_from_days(int64_t days, int64_t *year, int32_t *month, int32_t *day);

/* ISO 8601 text. Parsers take the whole text and return false on anything else, including overflow.
 * date: [+-]YYYY-MM-DD (4 or more digits). time: HH:MM[:SS[.f{1,9}]]. timestamp: date, 'T' or one
 * space, time, and for the zoned form an offset (Z, +HH:MM, +HHMM, +HH). sub_digits: 6 or 9, the
 * unit of *out is 10^-sub_digits s; finer fractions than the unit are an error unless they are
 * zeros. */
bool time_parse_date(tarn_str s, int32_t *days);
bool time_parse_time(tarn_str s, int64_t *us);
/* zoned_out (may be NULL): whether an offset was there; the value is then UTC. */
bool time_parse_timestamp(tarn_str s, int sub_digits, bool *zoned_out, int64_t *out);

/* Writers return the length; six (nine) fraction digits always, as the Iceberg single-value JSON.
 */
size_t time_format_date(int64_t days, char out[32]);
size_t time_format_time(int64_t us, char out[32]);
size_t time_format_timestamp(int64_t value, int sub_digits, bool zoned,
                             char out[48]); /* zoned: +00:00 */

#endif
