"""Rows of other readers in the form of `tarn cat --format ndjson`, and their comparison.

Values follow the Iceberg specification's single-value JSON, structs by name: decimals, dates, times and uuids are text,
timestamps ISO text with as many fraction digits as the unit has (+00:00 with a zone), binary and fixed lower-case hex, maps
{"keys": [...], "values": [...]}, NaN and infinities text, floats the shortest text of their width.
"""
import json
import math
import struct
from collections import Counter
from decimal import Decimal


def iso_date(days):
    """Civil date from days since 1970, for any year."""
    z = days + 719468
    era, doe = divmod(z, 146097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 if mp < 10 else mp - 9
    year = yoe + era * 400 + (month <= 2)
    return ("%04d" if 0 <= year <= 9999 else "%+05d") % year + "-%02d-%02d" % (month, doy - (153 * mp + 2) // 5 + 1)


def iso_timestamp(value, unit, zone):
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    seconds, rest = divmod(value, 10 ** digits)
    days, second = divmod(seconds, 86400)
    text = iso_date(days) + "T%02d:%02d:%02d" % (second // 3600, second // 60 % 60, second % 60)
    if digits:
        text += ".%0*d" % (digits, rest)
    return text + ("+00:00" if zone else "")


def float_value(value, width):
    if value is None:
        return None
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if width == 64:
        return value
    code = {16: "<e", 32: "<f"}[width]
    texts = ("%.*g" % (digits, value) for digits in range(1, 18))
    return next(float(t) for t in texts if struct.pack(code, float(t)) == struct.pack(code, value))


def each(column, fn):
    return [None if v is None else fn(v) for v in column.to_pylist()]


def encode(column, kind):
    """A pyarrow array as a list of JSON values."""
    import pyarrow as pa
    import pyarrow.types as t
    if isinstance(kind, pa.BaseExtensionType):
        if "uuid" in str(kind):
            import uuid
            return [None if v is None else str(uuid.UUID(bytes=v)) for v in column.storage.to_pylist()]
        return encode(column.storage, kind.storage_type)
    if t.is_dictionary(kind):
        return encode(column.dictionary_decode(), kind.value_type)
    if t.is_floating(kind):
        return [float_value(v, {"halffloat": 16, "float": 32, "double": 64}[str(kind)]) for v in column.to_pylist()]
    if t.is_decimal(kind):
        return each(column, lambda v: format(v, "f"))
    if t.is_date32(kind):
        return each(column.cast(pa.int32()), iso_date)
    if t.is_timestamp(kind):
        return each(column.cast(pa.int64()), lambda v: iso_timestamp(v, kind.unit, kind.tz))
    if t.is_time(kind):
        return each(column.cast(pa.int32() if t.is_time32(kind) else pa.int64()), lambda v: iso_timestamp(v, kind.unit, None)[11:])
    if t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind) or t.is_binary_view(kind):
        return each(column, bytes.hex)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return [encode(item.values, kind.value_type) if item.is_valid else None for item in column]
    if t.is_map(kind):
        return [{"keys": encode(item.values.field(0), kind.key_type), "values": encode(item.values.field(1), kind.item_type)}
                if item.is_valid else None for item in column]
    if t.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        columns = [encode(c, f.type) for c, f in zip(column.flatten(), fields)]
        valid = column.is_valid().to_pylist()
        return [{f.name: c[i] for f, c in zip(fields, columns)} if valid[i] else None for i in range(len(column))]
    return column.to_pylist()


def arrow_rows(table):
    """A pyarrow table as a list of rows."""
    out = []
    for batch in table.combine_chunks().to_batches(max_chunksize=65536):
        columns = [encode(batch.column(i), batch.schema.field(i).type) for i in range(batch.num_columns)]
        out += [dict(zip(batch.schema.names, values)) for values in zip(*columns)]
    return out


def plain(value):
    """Maps as lists of [key, value] in the order of their text: maps have no order."""
    if isinstance(value, dict):
        if set(value) == {"keys", "values"} and isinstance(value["keys"], list):
            pairs = [[plain(k), plain(v)] for k, v in zip(value["keys"], value["values"])]
            return sorted(pairs, key=lambda pair: json.dumps(pair, ensure_ascii=False, separators=(",", ":"), default=float))
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def canonical(value):
    """A hashable form in which 1, 1.0 and 1e0 are one."""
    if isinstance(value, dict):
        return ("o", tuple(sorted((k, canonical(v)) for k, v in value.items())))
    if isinstance(value, list):
        return ("a", tuple(canonical(v) for v in value))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return ("n", Decimal(repr(value) if isinstance(value, float) else value).normalize())


def parse(text, number=float):
    """NDJSON text as a list of rows; number makes those with a fraction."""
    return [json.loads(line, parse_float=number) for line in text.split("\n") if line.strip()]


def load(path):
    with open(path, encoding="utf-8") as file:
        return parse(file.read())


def difference(ours, theirs, ordered=False):
    """None when both hold the same rows (as a multiset unless ordered), else what differs."""
    a = [canonical(plain(row)) for row in ours]
    b = [canonical(plain(row)) for row in theirs]
    if ordered:
        for number, (x, y) in enumerate(zip(a, b)):
            if x != y:
                return "row %d: %s, wanted %s" % (number, ours[number], theirs[number])
        return None if len(a) == len(b) else "%d rows, wanted %d" % (len(a), len(b))
    extra, missing = Counter(a) - Counter(b), Counter(b) - Counter(a)
    if not extra and not missing:
        return None
    text = "%d rows, wanted %d; %d are not wanted, %d are missing" % (len(a), len(b), sum(extra.values()), sum(missing.values()))
    for name, rest, rows, keys in (("not wanted", extra, ours, a), ("missing", missing, theirs, b)):
        for key in list(rest)[:1]:
            text += "\n    %s: %s" % (name, json.dumps(rows[keys.index(key)], ensure_ascii=False, default=str)[:700])
    return text
