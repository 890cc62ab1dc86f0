"""libtarn through ctypes, as far as the measurements need it: rows go in and out as pyarrow record batches."""
import ctypes as c
import os

import pyarrow as pa


class Error(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("code", c.c_int), ("os_code", c.c_int32), ("flags", c.c_uint32),
                ("message", c.c_char * 512), ("detail", c.c_char * 512)]


class EnvOptions(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("threads", c.c_uint32), ("allocator", c.c_void_p), ("clock_us", c.c_void_p),
                ("random", c.c_void_p), ("sleep_ms", c.c_void_p), ("ctx", c.c_void_p), ("log", c.c_void_p),
                ("log_ctx", c.c_void_p), ("memory_bytes", c.c_uint64), ("temp_dir", c.c_char_p)]


class FileOptions(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("format", c.c_char_p), ("compression", c.c_char_p), ("columns", c.c_char_p),
                ("where", c.c_char_p), ("schema", c.c_void_p), ("csv_delimiter", c.c_char_p), ("csv_quote", c.c_char_p),
                ("csv_no_header", c.c_bool), ("null_text", c.c_char_p), ("ignore_unknown", c.c_bool),
                ("batch_rows", c.c_int64), ("reject", c.c_void_p), ("reject_ctx", c.c_void_p), ("codec", c.c_char_p),
                ("properties_json", c.c_char_p)]


class Tarn:
    def __init__(self, library, threads=0):
        self.lib = c.CDLL(os.path.abspath(library))
        self.lib.tarn_env_memory_peak.restype = c.c_uint64
        options = EnvOptions()
        options.struct_size = c.sizeof(options)
        options.threads = threads
        self.err = Error()
        self.err.struct_size = c.sizeof(self.err)
        self.env = c.c_void_p()
        self.check(self.lib.tarn_env_new(c.byref(options), c.byref(self.env), c.byref(self.err)))

    def check(self, code):
        if code != 0:
            raise RuntimeError(f"{code}: {self.err.message.decode()} {self.err.detail.decode()}")

    def write(self, path, batches, schema, codec="zstd", properties="{}"):
        """Record batches to a file."""
        c_schema = (c.c_char * 72)()
        schema._export_to_c(c.addressof(c_schema))
        options = FileOptions()
        options.struct_size = c.sizeof(options)
        options.format = b"parquet"
        options.codec = codec.encode()
        options.properties_json = properties.encode()
        writer = c.c_void_p()
        self.check(self.lib.tarn_file_writer_open(self.env, path.encode(), c.byref(c_schema), c.byref(options),
                                                  c.byref(writer), c.byref(self.err)))
        for batch in batches:
            c_array = (c.c_char * 80)()
            batch._export_to_c(c.addressof(c_array))
            self.check(self.lib.tarn_file_writer_write(writer, c.byref(c_array), c.byref(self.err)))
        self.check(self.lib.tarn_file_writer_close(writer, c.byref(self.err)))

    def read(self, path, columns=None, keep=False):
        """All rows of a file; as a table when keep is set, else only their number."""
        options = FileOptions()
        options.struct_size = c.sizeof(options)
        options.columns = columns.encode() if columns else None
        reader = c.c_void_p()
        self.check(self.lib.tarn_file_open(self.env, path.encode(), c.byref(options), c.byref(reader), c.byref(self.err)))
        c_schema = (c.c_char * 72)()
        self.check(self.lib.tarn_file_schema(reader, c.byref(c_schema), c.byref(self.err)))
        schema = pa.Schema._import_from_c(c.addressof(c_schema))
        rows, batches = 0, []
        while True:
            c_array = (c.c_char * 80)()
            self.check(self.lib.tarn_file_next(reader, c.byref(c_array), c.byref(self.err)))
            if not any(c_array[64:72]):  # release is NULL: the end
                break
            batch = pa.RecordBatch._import_from_c(c.addressof(c_array), schema)
            rows += batch.num_rows
            if keep:
                batches.append(batch)
        self.lib.tarn_file_close(reader)
        return pa.Table.from_batches(batches, schema) if keep else rows
