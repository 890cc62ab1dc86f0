/* tests/interop/power_cut.h - what a disk would still hold after a power cut: kill_at.c tells every
 * change of files below POWER_ROOT and every sync, and before the process is ended (or as it ends,
 * with POWER_AT_EXIT) what was not durable is undone, kept, or kept in part, as POWER_SEED says.
 * POWER_LOST names a folder on the same file system in which removed files wait, POWER_STDIO a file
 * that is written through stdio, whose writes are not seen, so that its length at its last sync is
 * what is left of it. With POWER_NAMES it is always some of the names that survive, not all, none
 * or the first ones.
 *
 * Durable is what POSIX promises and no more: bytes of a file by a sync of that file, a name by a
 * sync of its folder. Of everything else any part may survive, in any order: sectors of writes,
 * sizes without their bytes, single names. A rename is one change. Syncs themselves are left out,
 * so that runs are short. Callers hold power_lock around a change and what is told of it. */
#ifndef POWER_CUT_H
#define POWER_CUT_H

#include <sys/types.h>

/* The C library's own function of that name. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void power_begin(void);
int power_is_on(void);
void power_lock(void);
void power_unlock(void);
/* Before a write, at < 0: where the descriptor stands; before a change of a file's length. */
void power_write(int fd, const void *bytes, size_t n, off_t at);
void power_truncate(int fd, off_t size);
/* A file or folder was synced. False: it is none below POWER_ROOT. */
int power_sync(int fd);
/* Around a change of names: what each of them stands for before it and after it. */
typedef struct power_names {
    const char *paths[2];
    ino_t before[2];
    int is_folder; /* what they stand for */
} power_names;
void power_before_names(power_names *names, const char *a, const char *b); /* b may be NULL */
void power_after_names(const power_names *names, int worked);
/* Makes the files what they are after the cut. */
void power_cut(void);

#endif
