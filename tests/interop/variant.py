"""Variants (metadata and value bytes, parquet-format VariantEncoding) as {"t": type, "v": value}, as the expected rows show them."""
import base64
import struct
import uuid
from decimal import Decimal

import rows

PRIMITIVES = ("null boolean_true boolean_false int8 int16 int32 int64 double decimal4 decimal8 decimal16 date timestamptz timestampntz "
              "float binary string time timestamptz_nanos timestampntz_nanos uuid").split()
NUMBERS = {"int8": "<b", "int16": "<h", "int32": "<i", "int64": "<q", "float": "<f", "double": "<d"}


def number(data, at, size):
    return int.from_bytes(data[at:at + size], "little")


def names(metadata):
    size = (metadata[0] >> 6) + 1
    count = number(metadata, 1, size)
    offsets = [number(metadata, 1 + size * (1 + i), size) for i in range(count + 1)]
    start = 1 + size * (2 + count)
    return [metadata[start + a:start + b].decode() for a, b in zip(offsets, offsets[1:])]


def primitive(kind, data):
    if kind in ("null", "boolean_true", "boolean_false"):
        return {"null": None, "boolean_true": True, "boolean_false": False}[kind]
    if kind in NUMBERS:
        return struct.unpack_from(NUMBERS[kind], data)[0]
    if kind.startswith("decimal"):
        unscaled = int.from_bytes(data[1:1 + int(kind[7:])], "little", signed=True)
        return format(Decimal(unscaled).scaleb(-data[0]), "f")
    if kind == "date":
        return rows.iso_date(struct.unpack_from("<i", data)[0])
    if kind == "uuid":
        return str(uuid.UUID(bytes=bytes(data[:16])))
    if kind in ("binary", "string"):
        content = bytes(data[4:4 + number(data, 0, 4)])
        return content.hex() if kind == "binary" else content.decode()
    value = struct.unpack_from("<q", data)[0]
    if kind == "time":
        return rows.iso_timestamp(value, "us", None)[11:]
    return rows.iso_timestamp(value, "ns" if kind.endswith("nanos") else "us", kind.startswith("timestamptz"))


def decode(keys, data):
    basic, header = data[0] & 3, data[0] >> 2
    if basic == 0:
        return {"t": PRIMITIVES[header], "v": primitive(PRIMITIVES[header], data[1:])}
    if basic == 1:
        return {"t": "string", "v": bytes(data[1:1 + header]).decode()}
    offset_size = (header & 3) + 1
    large = header >> 4 & 1 if basic == 2 else header >> 2 & 1
    count_size = 4 if large else 1
    count = number(data, 1, count_size)
    at = 1 + count_size
    ids = []
    if basic == 2:
        id_size = (header >> 2 & 3) + 1
        ids = [number(data, at + i * id_size, id_size) for i in range(count)]
        at += count * id_size
    start = at + (count + 1) * offset_size
    items = [decode(keys, data[start + number(data, at + i * offset_size, offset_size):]) for i in range(count)]
    return {"t": "object", "v": {keys[i]: v for i, v in zip(ids, items)}} if basic == 2 else {"t": "array", "v": items}


def shown(value):
    """A row whose variants are {"t": type, "v": value} as the command shows it: a variant as the JSON that it is."""
    if isinstance(value, dict) and set(value) == {"t", "v"}:
        if value["t"].startswith("decimal"):
            return Decimal(value["v"])
        return base64.b64encode(bytes.fromhex(value["v"])).decode() if value["t"] == "binary" else shown(value["v"])
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    return [shown(v) for v in value] if isinstance(value, list) else value
