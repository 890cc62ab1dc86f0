/* fuzz/replay.c - a fuzz target without libFuzzer: runs every file of the folders or files given,
 * and a fixed number of mutations of each, the same in every run.
 *
 * Mutations: cut short, bytes flipped, set to edge values, copied over other places, numbers of two
 * to eight bytes replaced by edges, bytes taken out, a piece doubled. */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

#define MUTATIONS_OF_SMALL 10000 /* of a seed of at most a kilobyte; fewer of larger ones */
#define MUTATIONS_LEAST    1000

static uint64_t random_state;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static size_t random_below(size_t n) {
    return n == 0 ? 0 : (size_t)(next_random() % n);
}

static void put_edge(uint8_t *data, size_t size) {
    static const uint64_t edges[] = {0,          1,          0x7f,       0x80,       0xff,
                                     0x7fff,     0x8000,     0xffff,     0x7fffffff, 0x80000000,
                                     0xffffffff, 0x10000000, UINT64_MAX, INT64_MAX,  1ULL << 63};
    size_t width = (size_t)1 << random_below(4);
    if (width > size) {
        return;
    }
    uint64_t value = edges[random_below(sizeof edges / sizeof *edges)];
    memcpy(data + random_below(size - width + 1), &value, width);
}

/* Changes data in place; its room is twice the size of the seed. */
static size_t mutate_once(uint8_t *data, size_t size, size_t room) {
    if (size == 0) {
        return 0;
    }
    size_t at = random_below(size);
    size_t len = 1 + random_below(size - at < 16 ? size - at : 16);
    switch (random_below(7)) {
    case 0:
        return at;
    case 1:
        data[at] = (uint8_t)(data[at] ^ (1u << random_below(8)));
        return size;
    case 2:
        data[at] = (uint8_t)next_random();
        return size;
    case 3:
        put_edge(data, size);
        return size;
    case 4:
        memmove(data + random_below(size - len + 1), data + at, len);
        return size;
    case 5:
        memmove(data + at, data + at + len, size - at - len);
        return size - len;
    default:
        if (size + len > room) {
            return size;
        }
        memmove(data + at + len, data + at, size - at);
        return size + len;
    }
}

/* The target must not look beyond the size: give it memory of exactly that size. */
static void run_exact(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size > 0 ? size : 1);
    fuzz_check(copy != NULL);
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void run_seed(const uint8_t *seed, size_t size) {
    run_exact(seed, size);
    size_t room = size * 2 + 16;
    uint8_t *data = malloc(room);
    fuzz_check(data != NULL);
    size_t count = size <= 1024 ? MUTATIONS_OF_SMALL : MUTATIONS_OF_SMALL * 1024 / size;
    count = count < MUTATIONS_LEAST ? MUTATIONS_LEAST : count;
    random_state = 0x9e3779b97f4a7c15ULL ^ size;
    for (size_t i = 0; i < count; i++) {
        memcpy(data, seed, size);
        size_t now = size;
        for (size_t step = 1 + random_below(4); step > 0; step--) {
            now = mutate_once(data, now, room);
        }
        run_exact(data, now);
    }
    free(data);
}

static void run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    fuzz_check(fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    fuzz_check(size >= 0 && fseek(file, 0, SEEK_SET) == 0);
    uint8_t *data = malloc((size_t)size + 1);
    fuzz_check(data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size);
    (void)fclose(file);
    (void)fprintf(stderr, "%s: %ld bytes\n", path, size);
    run_seed(data, (size_t)size);
    free(data);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t run_folder(const char *path) {
    DIR *folder = opendir(path);
    if (folder == NULL) {
        perror(path);
        exit(1);
    }
    char *names[4096];
    size_t count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] != '.' && count < sizeof names / sizeof *names) {
            size_t len = strlen(path) + strlen(entry->d_name) + 2;
            names[count] = malloc(len);
            fuzz_check(names[count] != NULL);
            (void)snprintf(names[count++], len, "%s/%s", path, entry->d_name);
        }
    }
    (void)closedir(folder);
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) {
        run_file(names[i]);
        free(names[i]);
    }
    return count;
}

int main(int argc, char **argv) {
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            count += run_folder(argv[i]);
        } else {
            run_file(argv[i]);
            count++;
        }
    }
    run_exact((const uint8_t *)"", 0);
    printf("%zu seeds with their mutations\n", count);
    return count > 0 ? 0 : 1;
}
