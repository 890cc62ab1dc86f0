/* Goal: dates and times are read and written right over the whole range of their types.
 * Method: vectors, every day of 1600 years, and the ends of the 64-bit range. */
#include "test.h"

#include "base/time.h"

static void test_civil_days(void **state) {
    (void)state;
    assert_int_equal(time_days_from_civil(1970, 1, 1), 0);
    assert_int_equal(time_days_from_civil(2000, 3, 1), 11017);
    assert_int_equal(time_days_from_civil(1969, 12, 31), -1);
    assert_int_equal(time_days_from_civil(0, 3, 1), -719468);
    assert_int_equal(time_days_from_civil(-1, 12, 31), -719529);
    int64_t previous = time_days_from_civil(-801, 12, 31);
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    for (int64_t year = -800; year < 2400; year++) {
        bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for (int32_t month = 1; month <= 12; month++) {
            int32_t length = lengths[month - 1] + (month == 2 && leap);
            for (int32_t day = 1; day <= length; day++) {
                int64_t days = time_days_from_civil(year, month, day);
                int64_t y;
                int32_t m;
                int32_t d;
                time_civil_from_days(days, &y, &m, &d);
                if (days != previous + 1 || y != year || m != month || d != day) {
                    fail_msg("%d-%d-%d", (int)year, month, day);
                }
                previous = days;
            }
        }
    }
    char out[32];
    assert_true(time_format_date(INT64_MAX, out) < 32);
    assert_true(time_format_date(INT64_MIN, out) < 32);
}

static void test_dates(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int32_t days;
        const char *written; /* NULL: as text */
    } good[] = {
        {"1970-01-01", 0, NULL},
        {"2024-02-29", 19782, NULL},
        {"1969-12-31", -1, NULL},
        {"0000-01-01", -719528, NULL},
        {"-0001-12-31", -719529, NULL},
        {"+2024-02-29", 19782, "2024-02-29"},
        {"9999-12-31", 2932896, NULL},
        {"+10000-01-01", 2932897, NULL},
        {"10000-01-01", 2932897, "+10000-01-01"},
        {"-0004-02-29", -720930, NULL},
        {"+5881580-07-11", INT32_MAX, NULL},
        {"-5877641-06-23", INT32_MIN, NULL},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int32_t days = 0;
        char out[32];
        assert_true(time_parse_date(str_of(good[i].text), &days));
        assert_int_equal(days, good[i].days);
        size_t len = time_format_date(days, out);
        assert_int_equal(len, strlen(out));
        assert_string_equal(out, good[i].written ? good[i].written : good[i].text);
    }
    static const char *const bad[] = {
        "",
        "1970",
        "1970-01",
        "1970-1-1",
        "1970-00-01",
        "1970-13-01",
        "1970-01-00",
        "1970-01-32",
        "2023-02-29",
        "1900-02-29",
        "1970-04-31",
        "970-01-01",
        " 1970-01-01",
        "1970-01-01 ",
        "1970/01/01",
        "19700101",
        "--1970-01-01",
        "+-1970-01-01",
        "1970-01-0x",
        "1970-01-01T",
        "+5881580-07-12",
        "-5877641-06-22",
        "9999999999-01-01",
        "-0001-02-29",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int32_t days = 7;
        if (time_parse_date(str_of(bad[i]), &days) || days != 7) {
            fail_msg("%s", bad[i]);
        }
    }
    int32_t days;
    assert_false(time_parse_date(STR_NULL, &days));
}

static void test_times(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
        const char *written;
    } good[] = {
        {"00:00", 0, "00:00:00.000000"},
        {"23:59:59.999999", TIME_US_PER_DAY - 1, "23:59:59.999999"},
        {"12:34:56", INT64_C(45296000000), "12:34:56.000000"},
        {"12:34:56.7", INT64_C(45296700000), "12:34:56.700000"},
        {"12:34:56.000001000", INT64_C(45296000001), "12:34:56.000001"},
    };
    char out[32];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t us = -1;
        assert_true(time_parse_time(str_of(good[i].text), &us));
        assert_int_equal(us, good[i].us);
        (void)time_format_time(us, out);
        assert_string_equal(out, good[i].written);
    }
    static const char *const bad[] = {
        "",
        "1:00",
        "24:00",
        "24:00:00",
        "12:60",
        "12:00:60",
        "12:00:00.",
        "12:00:00.0000001",
        "12:00:00.0000000000",
        "12:00.5",
        "12",
        "12:",
        "12:00:",
        "12:00:00Z",
        "-1:00",
        "12:00:00,5",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t us;
        if (time_parse_time(str_of(bad[i]), &us)) {
            fail_msg("%s", bad[i]);
        }
    }
    (void)time_format_time(-1, out);
    assert_string_equal(out, "23:59:59.999999");
}

static void test_timestamps(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int sub_digits;
        bool zoned;
        int64_t value;
        const char *written;
    } good[] = {
        {"1970-01-01T00:00", 6, false, 0, "1970-01-01T00:00:00.000000"},
        {"1969-12-31 23:59:59.999999", 6, false, -1, "1969-12-31T23:59:59.999999"},
        {"1969-12-31T23:59:59.999999999", 9, false, -1, "1969-12-31T23:59:59.999999999"},
        {"2017-11-16T22:31:08Z", 6, true, INT64_C(1510871468000000),
         "2017-11-16T22:31:08.000000+00:00"},
        {"2017-11-16T14:31:08-08:00", 6, true, INT64_C(1510871468000000),
         "2017-11-16T22:31:08.000000+00:00"},
        {"2017-11-17T04:01:08+0530", 6, true, INT64_C(1510871468000000),
         "2017-11-16T22:31:08.000000+00:00"},
        {"2017-11-17T00:31:08.000000001+02", 9, true, INT64_C(1510871468000000001),
         "2017-11-16T22:31:08.000000001+00:00"},
        {"-0001-01-01T00:00:00.000001", 6, false, INT64_C(-62198755199999999),
         "-0001-01-01T00:00:00.000001"},
        {"+294247-01-10T04:00:54.775807", 6, false, INT64_MAX, "+294247-01-10T04:00:54.775807"},
        {"-290308-12-21T19:59:05.224192", 6, false, INT64_MIN, "-290308-12-21T19:59:05.224192"},
        {"2262-04-11T23:47:16.854775807", 9, false, INT64_MAX, "2262-04-11T23:47:16.854775807"},
        {"1677-09-21T00:12:43.145224192Z", 9, true, INT64_MIN,
         "1677-09-21T00:12:43.145224192+00:00"},
        {"2262-04-12T01:47:16.854775807+02:00", 9, true, INT64_MAX,
         "2262-04-11T23:47:16.854775807+00:00"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t value = 0;
        bool zoned = !good[i].zoned;
        char out[48];
        assert_true(time_parse_timestamp(str_of(good[i].text), good[i].sub_digits, &zoned, &value));
        assert_true(value == good[i].value);
        assert_int_equal(zoned, good[i].zoned);
        assert_true(time_parse_timestamp(str_of(good[i].text), good[i].sub_digits, NULL, &value));
        size_t len = time_format_timestamp(value, good[i].sub_digits, zoned, out);
        assert_string_equal(out, good[i].written);
        assert_int_equal(len, strlen(out));
    }
    static const struct {
        const char *text;
        int sub_digits;
    } bad[] = {
        {"", 6},
        {"1970-01-01", 6},
        {"1970-01-01T", 6},
        {"1970-01-01  00:00", 6},
        {"1970-01-01T00:00:00.0000001", 6},
        {"1970-01-01T00:00:00+", 6},
        {"1970-01-01T00:00:00+1", 6},
        {"1970-01-01T00:00:00+01:", 6},
        {"1970-01-01T00:00:00+01:6", 6},
        {"1970-01-01T00:00:00+24:00", 6},
        {"1970-01-01T00:00:00+01:60", 6},
        {"1970-01-01T00:00:00 Z", 6},
        {"1970-01-01T00:00:00ZZ", 6},
        {"1970-01-01T00:00:00+01:00Z", 6},
        {"+294247-01-10T04:00:54.775808", 6},
        {"-290308-12-21T19:59:05.224191", 6},
        {"2262-04-11T23:47:16.854775808", 9},
        {"1677-09-21T00:12:43.145224191", 9},
        {"1677-09-21T00:12:43.145224192+00:01", 9},
        {"999999999-01-01T00:00", 6},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t value;
        if (time_parse_timestamp(str_of(bad[i].text), bad[i].sub_digits, NULL, &value)) {
            fail_msg("%s", bad[i].text);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_civil_days),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_timestamps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
