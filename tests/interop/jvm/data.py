"""Rows for the cases: every type at its edges, and plain ones in any number."""

TYPES = ("id long, bo boolean, i int, f float, d double, de decimal(9,2), da date, ts timestamp, tz timestamptz, s string, u uuid, "
         "fx fixed[3], b binary, st struct<x: int, y: string, z: struct<q: double>>, l list<int>, m map<string, long>, "
         "ls list<struct<a: int, b: list<string>>>, mm map<int, map<string, date>>, ml map<decimal(5,1), struct<t: timestamptz>>")

FULL = [
    {"id": 1, "bo": True, "i": -2147483648, "f": 1.5, "d": 0.1, "de": "-1234567.89", "da": "1969-12-31",
     "ts": "1969-12-31T23:59:59.999999", "tz": "2024-02-29T12:34:56.789012+00:00", "s": "grüße 😀", "u": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
     "fx": "00ff7f", "b": "", "st": {"x": 1, "y": "z", "z": {"q": -2.5}}, "l": [1, None, 3], "m": {"keys": ["a", "b"], "values": [1, None]},
     "ls": [{"a": 1, "b": ["p", None]}, None, {"a": None, "b": []}], "mm": {"keys": [1, 2], "values": [{"keys": ["k"], "values": ["1582-10-04"]}, None]},
     "ml": {"keys": ["-0.1", "9999.9"], "values": [{"t": "1969-12-31T23:59:59.000001+00:00"}, None]}},
    {"id": 2, **dict.fromkeys("bo i f d de da ts tz s u fx b st l m ls mm ml".split())},
    {"id": 3, "bo": False, "i": 2147483647, "f": "NaN", "d": "-Infinity", "de": "0.00", "da": "9999-12-31", "ts": "0001-01-01T00:00:00.000000",
     "tz": "1970-01-01T00:00:00.000000+00:00", "s": "", "u": "00000000-0000-0000-0000-000000000000", "fx": "000000", "b": "ff00",
     "st": {"x": None, "y": None, "z": None}, "l": [], "m": {"keys": [], "values": []}, "ls": [], "mm": {"keys": [], "values": []},
     "ml": {"keys": [], "values": []}},
    {"id": -9223372036854775808, "bo": None, "i": 0, "f": -0.0, "d": -0.0, "de": "9999999.99", "da": "0001-01-01", "ts": "9999-12-31T23:59:59.999999",
     "tz": "0001-01-01T00:00:00.000000+00:00", "s": "\u0000 \t\"\\ \U0010ffff", "u": "ffffffff-ffff-ffff-ffff-ffffffffffff", "fx": "ffffff",
     "b": "00", "st": {"x": -1, "y": "", "z": {"q": None}}, "l": [None], "m": {"keys": [""], "values": [-1]}, "ls": [None],
     "mm": {"keys": [-1], "values": [{"keys": [], "values": []}]}, "ml": {"keys": ["0.0"], "values": [{"t": None}]}},
    {"id": 9223372036854775807, "bo": True, "i": 1, "f": 1.1754944e-38, "d": "NaN", "de": "0.01", "da": "1582-10-15",
     "ts": "1582-10-14T12:00:00.000001", "tz": "9999-12-31T23:59:59.999999+00:00", "s": "e\u0301 vs \u00e9", "u": "80000000-0000-0000-8000-000000000001",
     "fx": "7f80fe", "b": "00112233445566778899aabbccddeeff", "st": {"x": 5, "y": "日本", "z": {"q": "NaN"}}, "l": [2147483647, -2147483648],
     "m": {"keys": ["日"], "values": [9223372036854775807]}, "ls": [{"a": 3, "b": None}], "mm": {"keys": [0], "values": [{"keys": ["x"], "values": [None]}]},
     "ml": {"keys": ["1.0"], "values": [{"t": "2000-01-01T00:00:00.000000+00:00"}]}},
]

# Rows whose columns can be partitioned by every transform.
KEYS = "id long, i int, de decimal(9,2), da date, ts timestamp, tz timestamptz, s string, b binary, bo boolean, f float, u uuid"


def keys():
    made = []
    for n in range(-40, 41):
        made.append({"id": n * 1000003, "i": n * 7, "de": "%s%d.%02d" % ("-" if n < 0 else "", abs(n) * 3, abs(n * 37) % 100),
                     "da": "%04d-%02d-%02d" % (1970 + n, abs(n) % 12 + 1, abs(n) % 28 + 1),
                     "ts": "%04d-%02d-%02dT%02d:59:59.999999" % (1970 + n // 8, abs(n) % 12 + 1, abs(n) % 28 + 1, abs(n) % 24),
                     "tz": "1970-01-%02dT%02d:00:00.000000+00:00" % (abs(n) % 28 + 1, abs(n) % 24) if n >= 0 else
                           "1969-12-%02dT%02d:00:00.000001+00:00" % (abs(n) % 28 + 1, abs(n) % 24),
                     "s": ["", "a", "äöü%d" % n, "😀😀😀😀%d" % n, "long text number %d" % n][n % 5], "b": ("%02x" % (n + 50)) * (n % 4 + 1),
                     "bo": n % 2 == 0, "f": n / 4, "u": "%08x-0000-0000-0000-%012x" % (abs(n) * 999999, abs(n))})
    made.append(dict.fromkeys(made[0]))
    return made


NUMBERS = "id long, k int, s string, d double, at timestamp"


def numbers(count, start=0):
    return [{"id": i, "k": i % 7, "s": None if i % 5 == 0 else "s%d" % (i % 11), "d": i / 3,
             "at": "2024-01-%02dT%02d:00:00.000000" % (i % 28 + 1, i % 24)} for i in range(start, start + count)]
