#!/usr/bin/env bash
# The main job, from a file of events to a table that other engines read. Run by ./dev demo; needs build/release/tarn.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tarn=${TARN:-$root/build/release/tarn}
python=${PYTHON:-$root/.venv/bin/python}
out=$root/demo-out

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() {
    local word line=
    for word in "$@"; do
        [[ $word == "$tarn" ]] && word=tarn
        [[ $word == "$python" ]] && word=python
        word=${word/#"$root/"/../}
        [[ $word =~ ^[A-Za-z0-9_./:,=+-]+$ ]] || word="\"$word\""
        line+=" $word"
    done
    printf '  $%s\n' "$line"
    "$@"
}

rm -rf "$out"
mkdir -p "$out"
cd "$out"

step "1. Rows of a compressed CSV file become a partitioned Iceberg table, with a commit every 20,000 rows."
echo "   The catalog is an SQLite file, the warehouse a folder; nothing has to be started."
run "$tarn" ingest nyc.flights "$root/examples/flights.csv.gz" --create --null-text NA \
    --partition-by "month(time_hour), bucket(16, carrier)" --checkpoint-rows 20000 --progress

step "2. Every commit is a snapshot."
run "$tarn" log nyc.flights

step "3. The table: schema, hidden partitions, totals."
run "$tarn" describe nyc.flights

step "4. Its files, as a metadata table."
run "$tarn" cat nyc.flights.files --format table --limit 5 --columns record_count,file_size_in_bytes,partition
printf '  files in all: '
"$tarn" cat nyc.flights.files --count

step "5. A filtered read opens only the files that can hold matching rows."
run "$tarn" cat nyc.flights --format table --limit 8 --stats \
    --where "carrier = 'UA' and dep_delay > 60 and origin in ('JFK', 'LGA') and time_hour >= '2013-07-01' and time_hour < '2013-08-01'" \
    --columns time_hour,carrier,flight,origin,dest,dep_delay

step "6. Rows go, and the table of before is still there."
before=$("$tarn" cat nyc.flights.snapshots --format ndjson --columns snapshot_id | tail -n 1 | tr -dc 0-9)
run "$tarn" delete nyc.flights --where "dest = 'ATL'"
run "$tarn" cat nyc.flights --where "dest = 'ATL'" --count
run "$tarn" cat nyc.flights --where "dest = 'ATL'" --count --snapshot-id "$before"

step "7. The schema changes without touching a file."
run "$tarn" alter nyc.flights rename-column tailnum aircraft
run "$tarn" cat nyc.flights --columns aircraft,flight --where "aircraft is not null" --limit 2 --format table

step "8. Another engine opens the same table, by the same catalog."
if [ -x "$python" ] && "$python" -c 'import pyiceberg, pyarrow' 2>/dev/null; then
    cat >read.py <<'PY'
from pyiceberg.catalog.sql import SqlCatalog
catalog = SqlCatalog("tarn", uri="sqlite:///tarn.db", warehouse="warehouse")
table = catalog.load_table("nyc.flights")
rows = table.scan(row_filter="carrier = 'UA' and dep_delay > 120", selected_fields=("carrier", "dep_delay")).to_arrow()
print(f"  PyIceberg reads snapshot {table.current_snapshot().snapshot_id}: {table.scan().count()} rows,"
      f" {rows.num_rows} United flights more than two hours late")
PY
    run "$python" read.py
else
    echo "   (PyIceberg is not installed: ./dev setup puts it into .venv)"
fi
echo
echo "The table lies in $out: tarn.db is the catalog, warehouse/ the data. Look around with, for example:"
echo "  cd demo-out && ../build/release/tarn cat nyc.flights.partitions --format table"
