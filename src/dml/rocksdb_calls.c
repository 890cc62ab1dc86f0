/* dml/rocksdb_calls.c - see rocksdb_calls.h. What is static here is written once and stays. */
#include "dml/rocksdb_calls.h"

#ifdef TARN_ROCKSDB

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static rocksdb_calls the_calls;
static bool is_loaded;

static const struct {
    const char *name;
    size_t at; /* in the_calls */
} PLACES[] = {
#define X(name) {"rocksdb_" #name, offsetof(rocksdb_calls, name)},
    ROCKSDB_CALLS(X)
#undef X
};

static void load(void) {
    void *library = dlopen(TARN_ROCKSDB_FILE, RTLD_NOW | RTLD_LOCAL);
    bool whole = library != NULL;
    for (size_t i = 0; whole && i < sizeof PLACES / sizeof PLACES[0]; i++) {
        void *call = dlsym(library, PLACES[i].name);
        whole = call != NULL;
        memcpy((char *)&the_calls + PLACES[i].at, &call, sizeof call);
    }
    is_loaded = whole;
}

tarn_code rocksdb_load(tarn_error *err) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load);
    return is_loaded ? TARN_OK
                     : err_set(err, TARN_UNSUPPORTED,
                               "a key index needs RocksDB, and %s could not be loaded",
                               TARN_ROCKSDB_FILE);
}

const rocksdb_calls *rocksdb(void) {
    return &the_calls;
}

#endif
