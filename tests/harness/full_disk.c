/* Preloaded: a disk that is full, or a kill, at the n-th operation on files below a folder.

   FULL_DISK_UNDER  the folder.
   FULL_DISK_WHILE  a file: while it is there the disk is full.
   full_disk_at(n, kill)  the n-th operation from now on is cut short, and the disk is full from then on;
                          or the process is killed in the middle of it. 0: none is.
   full_disk_operations() how many there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static long at, seen;
static int kills;

void full_disk_at(long n, int kill) {
    at = n;
    kills = kill;
    seen = 0;
}

long full_disk_operations(void) { return seen; }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_below(const char *path) {
    char whole[PATH_MAX] = "";
    const char *folder = getenv("FULL_DISK_UNDER");
    if (!folder || !path) return 0;
    if (path[0] != '/') {
        if (!getcwd(whole, sizeof whole - strlen(path) - 2)) return 0;
        strcat(whole, "/");
    }
    strcat(whole, path);
    return strncmp(whole, folder, strlen(folder)) == 0;
}

static int is_file_below(int file) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return path[0] == '/' && is_below(path);
}

enum { ROOM, LAST, FULL };

static int room(void) {
    const char *flag = getenv("FULL_DISK_WHILE");
    long number = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    if (flag && access(flag, F_OK) == 0) return FULL;
    if (!at || number < at) return ROOM;
    return number == at ? LAST : FULL;
}

static int refused(void) {
    int left = room();
    if (left == ROOM) return 0;
    if (left == LAST && kills) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return 1;
}

/* How much of a write is done: less than 0 for none, with the error. */
static ssize_t granted(size_t length) {
    int left = room();
    if (left == ROOM) return length;
    if (left == LAST && length > 1) return length / 2;
    if (left == LAST && kills) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return -1;
}

static ssize_t ended(ssize_t done, size_t length) {
    if (kills && done >= 0 && (size_t)done < length) kill(getpid(), SIGKILL);
    return done;
}

ssize_t write(int file, const void *from, size_t length) {
    ssize_t some = is_file_below(file) ? granted(length) : (ssize_t)length;
    return some < 0 ? -1 : ended(REAL(write)(file, from, some), length);
}

ssize_t pwrite(int file, const void *from, size_t length, off_t where) {
    ssize_t some = is_file_below(file) ? granted(length) : (ssize_t)length;
    return some < 0 ? -1 : ended(REAL(pwrite)(file, from, some, where), length);
}

ssize_t pwrite64(int file, const void *from, size_t length, off64_t where) {
    return pwrite(file, from, length, where);
}

int ftruncate(int file, off_t length) {
    struct stat status;
    if (is_file_below(file) && fstat(file, &status) == 0 && length > status.st_size && refused()) return -1;
    return REAL(ftruncate)(file, length);
}

int ftruncate64(int file, off64_t length) { return ftruncate(file, length); }

int fsync(int file) { return is_file_below(file) && refused() ? -1 : REAL(fsync)(file); }

int fdatasync(int file) { return is_file_below(file) && refused() ? -1 : REAL(fdatasync)(file); }

static int is_new(const char *path, int flags) {
    return (flags & O_CREAT) && is_below(path) && access(path, F_OK) != 0;
}

#define MODE va_list more; va_start(more, flags); mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; va_end(more)

int open(const char *path, int flags, ...) {
    MODE;
    return is_new(path, flags) && refused() ? -1 : REAL(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE;
    return is_new(path, flags) && refused() ? -1 : REAL(open64)(path, flags, mode);
}

int mkdir(const char *path, mode_t mode) { return is_below(path) && refused() ? -1 : REAL(mkdir)(path, mode); }

int rename(const char *from, const char *to) {
    return is_below(to) && refused() ? -1 : REAL(rename)(from, to);
}

int link(const char *from, const char *to) { return is_below(to) && refused() ? -1 : REAL(link)(from, to); }

int linkat(int of, const char *from, int in, const char *to, int flags) {
    return is_below(to) && refused() ? -1 : REAL(linkat)(of, from, in, to, flags);
}

/* Without an operation of its own: it changes nothing. */
int statvfs(const char *path, struct statvfs *said) {
    const char *flag = getenv("FULL_DISK_WHILE");
    int done = REAL(statvfs)(path, said);
    if (is_below(path) && ((at && seen >= at) || (flag && access(flag, F_OK) == 0))) said->f_bavail = 0;
    return done;
}

int statvfs64(const char *path, struct statvfs64 *said) { return statvfs(path, (struct statvfs *)said); }
