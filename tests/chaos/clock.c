/* A wall clock that can be moved: preloaded into a process, it adds the seconds that stand in the file CHAOS_CLOCK names.
   The monotonic clocks stay as they are. Compiled by tests/chaos/clock.py. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *moved;

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("CHAOS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof *moved, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED) moved = page;
}

static int64_t offset(void) { return moved ? *moved : 0; }

int clock_gettime(clockid_t id, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, id, now);
    if (status == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int status = syscall(SYS_gettimeofday, now, zone);
    if (status == 0 && now) now->tv_sec += offset();
    return status;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
