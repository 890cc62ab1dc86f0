#!/usr/bin/env bash
# Spark with Iceberg for the tests of this folder: fetches both once, then runs a Python program with them.
#
# usage: spark.sh fetch | spark.sh run FILE.py [ARGUMENT...]
#
# Spark comes as a Python package into an environment of its own, Iceberg's runtime and SQLite's JDBC driver by Maven; all of
# it lies in TARN_ENGINES (default: tarn-engines in the user's cache folder) and may be deleted at any time. The program finds
# the jars in SPARK_JARS. Exit status 77: no Java of version 17 to 21, no Maven or no python3 here, so nothing was run.
set -euo pipefail

spark=3.5.9
iceberg=1.10.1
sqlite=3.46.1.3

home=${TARN_ENGINES:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn-engines}/spark-$spark-iceberg-$iceberg

fail() {
    printf 'spark.sh: %s\n' "$*" >&2
    exit 1
}

skip() {
    printf 'SKIPPED: %s\n' "$*"
    exit 77
}

# Sets JAVA_HOME to a Java that Spark runs on.
find_java() {
    local folder major here
    here=$(command -v java || true)
    [ -z "$here" ] || here=$(dirname "$(dirname "$(readlink -f "$here")")")
    for folder in "${JAVA_HOME:-}" "$here" /usr/lib/jvm/*; do
        if [ -z "$folder" ] || [ ! -x "$folder/bin/java" ]; then
            continue
        fi
        major=$("$folder/bin/java" -version 2>&1 | sed -nE '1s/.*"([0-9]+).*/\1/p')
        if [ "${major:-0}" -ge 17 ] && [ "${major:-0}" -le 21 ]; then
            export JAVA_HOME=$folder
            return
        fi
    done
    skip "no Java of version 17 to 21 (openjdk-17-jre-headless has one); set JAVA_HOME if it is elsewhere"
}

# item GROUP ARTIFACT VERSION: one artifact of the pom
item() {
    printf '<artifactItem><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></artifactItem>' "$@"
}

fetch_jars() {
    local pom=$home/pom
    mkdir -p "$pom"
    {
        printf '<project><modelVersion>4.0.0</modelVersion><groupId>tarn</groupId><artifactId>engines</artifactId>'
        printf '<version>1</version><packaging>pom</packaging><build><plugins><plugin>'
        printf '<groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>'
        printf '<version>3.6.1</version><configuration><artifactItems>'
        item org.apache.iceberg iceberg-spark-runtime-3.5_2.12 "$iceberg"
        item org.xerial sqlite-jdbc "$sqlite"
        printf '</artifactItems></configuration></plugin></plugins></build></project>\n'
    } >"$pom/pom.xml"
    if ! timeout 900 mvn -q -B -f "$pom/pom.xml" dependency:copy "-DoutputDirectory=$home/jars" >"$pom/log" 2>&1; then
        grep -m 3 ERROR "$pom/log" >&2 || true
        fail "Maven could not fetch Iceberg's jars; its log: $pom/log"
    fi
}

fetch_python() {
    python3 -m venv "$home/venv" || fail "no Python environment could be made (Debian: python3-venv)"
    timeout 900 "$home/venv/bin/python" -m pip install --quiet --disable-pip-version-check "pyspark==$spark" >&2 ||
        fail "PySpark could not be installed"
}

# Does nothing where all is there; of two at once, one waits for the other.
fetch() {
    [ ! -e "$home/done" ] || return 0
    command -v python3 >/dev/null || skip "no python3"
    command -v mvn >/dev/null || skip "no Maven (mvn)"
    mkdir -p "$home"
    exec 9>"$home/lock"
    flock -w 1800 9 || fail "another fetch holds $home/lock"
    if [ ! -e "$home/done" ]; then
        echo "spark.sh: fetching Spark $spark and Iceberg $iceberg into $home, once" >&2
        fetch_jars
        fetch_python
        touch "$home/done"
    fi
    exec 9>&-
}

case ${1:-} in
fetch)
    find_java
    fetch
    ;;
run)
    [ -f "${2:-}" ] || fail "run which FILE.py?"
    find_java
    fetch
    jars=("$home"/jars/*.jar)
    unset SPARK_HOME SPARK_CONF_DIR
    SPARK_JARS=$(IFS=: && echo "${jars[*]}")
    export SPARK_JARS TZ=UTC SPARK_LOCAL_IP=127.0.0.1
    export PYSPARK_PYTHON=$home/venv/bin/python PYSPARK_DRIVER_PYTHON=$home/venv/bin/python
    exec "$home/venv/bin/python" "${@:2}"
    ;;
*) fail "usage: spark.sh fetch | spark.sh run FILE.py [ARGUMENT...]" ;;
esac
