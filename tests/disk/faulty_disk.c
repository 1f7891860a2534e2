/* Calls of the operating system that fail on demand, for paths below a prefix. Loaded by LD_PRELOAD; a program arms it
 * through ctypes:
 *
 *     disk_fail(prefix, kinds, error, skip, times, is_done)   fail `times` calls after the first `skip`
 *     disk_work()                                             fail no more; how many calls failed
 *     disk_seen()                                             how many calls of these kinds there were since
 *
 * With `is_done` the call is made, and then its success is reported as the error: what a lost answer of a network file
 * system looks like. Syncs below the prefix are counted and not made: what is tested is what a program does with the
 * answer, and real ones would take most of the time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN = 1, CREATE = 2, WRITE = 4, SYNC = 8, LINK = 16, FOLDER = 32, REMOVE = 64, READ = 128 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char prefix[PATH_MAX];
static size_t prefix_size;
static unsigned failing;
static int error_number, is_after;
static long skipped, left, seen, failed;

void disk_fail(const char *path, unsigned kinds, int error, long skip, long times, int is_done) {
    pthread_mutex_lock(&lock);
    snprintf(prefix, sizeof prefix, "%s", path);
    prefix_size = strlen(prefix);
    failing = kinds, error_number = error, skipped = skip, left = times, is_after = is_done;
    seen = failed = 0;
    pthread_mutex_unlock(&lock);
}

long disk_work(void) {
    pthread_mutex_lock(&lock);
    failing = 0;
    long count = failed;
    pthread_mutex_unlock(&lock);
    return count;
}

long disk_seen(void) { return seen; }

static int is_below(const char *path) {
    return prefix_size && !strncmp(path, prefix, prefix_size) && (!path[prefix_size] || path[prefix_size] == '/');
}

static int descriptor_is_below(int descriptor) {
    char name[64], found[PATH_MAX];
    if (!prefix_size) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(name, found, sizeof found - 1);
    if (size < 0) return 0;
    found[size] = 0;
    return is_below(found);
}

static int path_is_below(int folder, const char *path) {
    if (!path || !prefix_size) return 0;
    if (path[0] == '/') return is_below(path);
    if (folder != AT_FDCWD) return descriptor_is_below(folder);
    char found[PATH_MAX];
    return getcwd(found, sizeof found) && is_below(found);
}

/* 1: fail now; 2: make the call, then fail; 0: work */
static int verdict(unsigned kind) {
    int found = 0;
    pthread_mutex_lock(&lock);
    if (failing & kind) {
        seen++;
        if (skipped > 0) skipped--;
        else if (left > 0) left--, failed++, found = is_after ? 2 : 1;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define GUARDED(below, kind, type, call)                                  \
    do {                                                                  \
        int now_ = (failing & (kind)) && (below) ? verdict(kind) : 0;     \
        if (now_ == 1) { errno = error_number; return -1; }               \
        type result_ = (call);                                            \
        if (now_ == 2 && result_ >= 0) { errno = error_number; return -1; } \
        return result_;                                                   \
    } while (0)

static unsigned opening(int flags) {
    if (flags & O_CREAT) return CREATE;
    return (flags & O_ACCMODE) == O_RDONLY ? OPEN : CREATE;
}

#define OPENS(name)                                                       \
    int name(const char *path, int flags, ...) {                          \
        va_list more; va_start(more, flags);                              \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                                     \
        int now_ = (failing & opening(flags)) && path_is_below(AT_FDCWD, path) ? verdict(opening(flags)) : 0; \
        if (now_) { errno = error_number; return -1; }                    \
        return REAL(name)(path, flags, mode);                             \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                    \
    int name(int folder, const char *path, int flags, ...) {              \
        va_list more; va_start(more, flags);                              \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                                     \
        int now_ = (failing & opening(flags)) && path_is_below(folder, path) ? verdict(opening(flags)) : 0; \
        if (now_) { errno = error_number; return -1; }                    \
        return REAL(name)(folder, path, flags, mode);                     \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

ssize_t write(int descriptor, const void *data, size_t size) {
    GUARDED(descriptor_is_below(descriptor), WRITE, ssize_t, REAL(write)(descriptor, data, size));
}
ssize_t pwrite(int descriptor, const void *data, size_t size, off_t at) {
    GUARDED(descriptor_is_below(descriptor), WRITE, ssize_t, REAL(pwrite)(descriptor, data, size, at));
}
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t at) {
    GUARDED(descriptor_is_below(descriptor), WRITE, ssize_t, REAL(pwrite64)(descriptor, data, size, at));
}
int ftruncate(int descriptor, off_t size) {
    GUARDED(descriptor_is_below(descriptor), WRITE, int, REAL(ftruncate)(descriptor, size));
}
int ftruncate64(int descriptor, off64_t size) {
    GUARDED(descriptor_is_below(descriptor), WRITE, int, REAL(ftruncate64)(descriptor, size));
}
ssize_t pread(int descriptor, void *data, size_t size, off_t at) {
    GUARDED(descriptor_is_below(descriptor), READ, ssize_t, REAL(pread)(descriptor, data, size, at));
}
ssize_t pread64(int descriptor, void *data, size_t size, off64_t at) {
    GUARDED(descriptor_is_below(descriptor), READ, ssize_t, REAL(pread64)(descriptor, data, size, at));
}
int fsync(int descriptor) {
    int below = descriptor_is_below(descriptor);
    GUARDED(below, SYNC, int, below ? 0 : REAL(fsync)(descriptor));
}
int fdatasync(int descriptor) {
    int below = descriptor_is_below(descriptor);
    GUARDED(below, SYNC, int, below ? 0 : REAL(fdatasync)(descriptor));
}
int link(const char *from, const char *to) {
    GUARDED(path_is_below(AT_FDCWD, to), LINK, int, REAL(link)(from, to));
}
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    GUARDED(path_is_below(to_folder, to), LINK, int, REAL(linkat)(from_folder, from, to_folder, to, flags));
}
int rename(const char *from, const char *to) {
    GUARDED(path_is_below(AT_FDCWD, to), LINK, int, REAL(rename)(from, to));
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    GUARDED(path_is_below(to_folder, to), LINK, int, REAL(renameat)(from_folder, from, to_folder, to));
}
int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    GUARDED(path_is_below(to_folder, to), LINK, int, REAL(renameat2)(from_folder, from, to_folder, to, flags));
}
int mkdir(const char *path, mode_t mode) {
    GUARDED(path_is_below(AT_FDCWD, path), FOLDER, int, REAL(mkdir)(path, mode));
}
int mkdirat(int folder, const char *path, mode_t mode) {
    GUARDED(path_is_below(folder, path), FOLDER, int, REAL(mkdirat)(folder, path, mode));
}
int unlink(const char *path) {
    GUARDED(path_is_below(AT_FDCWD, path), REMOVE, int, REAL(unlink)(path));
}
int unlinkat(int folder, const char *path, int flags) {
    GUARDED(path_is_below(folder, path), REMOVE, int, REAL(unlinkat)(folder, path, flags));
}
