#!/usr/bin/env python3
"""Goal: Spark with Iceberg's own library and tarn mean the same by every table. Method: one Spark session on the catalogs of the
command (SQLite through JdbcCatalog, a folder through HadoopCatalog); each case makes a table with one of them, has the other
read, filter, alter or add to it, and compares the rows.

usage: spark.sh run test_spark.py [case...]
"""
import sys
import time

import engine
import both
import reads
import theirs

from harness import case, finish


def main(names):
    cases = reads.CASES + both.CASES + theirs.CASES
    with engine.Engine() as shop:
        for function in cases:
            for where in getattr(function, "catalogs", ("tarn",)):
                if not names or function.__name__ in names:
                    shop.where = where
                    begin = time.monotonic()
                    case("%s in %s: %s" % (function.__name__, where, function.__doc__), function, shop)
                    print("%6.1f s  %s.%s in %s" % (time.monotonic() - begin, function.__module__, function.__name__, where), flush=True)
    return finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
