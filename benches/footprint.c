/* What a loaded library costs the host: memory, OS threads, time to the first answer. Prints one JSON object a line.
 *
 *   footprint PATH/libfawn.so [LIBRARY ...]
 *
 * Further libraries are loaded before anything is measured, as a host has them that needs them itself: libm.so.6 and
 * libgcc_s.so.1 in C++, Go and Node.
 *
 * Resident memory is read from /proc/self/statm (Linux). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static long resident_kib(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages, &resident) != 2) exit(1);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static long os_threads(void) {
    char line[256];
    long threads = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Threads: %ld", &threads);
    if (file) fclose(file);
    return threads;
}

#define LOAD(name) __typeof__(&name) p_##name = (__typeof__(&name))dlsym(library, #name); if (!p_##name) exit(2)

int main(int argc, char **argv) {
    if (argc < 2) return 1;
    for (int i = 2; i < argc; i++) {
        if (!dlopen(argv[i], RTLD_NOW)) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    }
    long before = resident_kib();
    double start = now_ms();
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    LOAD(fawn_runtime_new); LOAD(fawn_assembly_new); LOAD(fawn_thread_open); LOAD(fawn_run_start); LOAD(fawn_run_wait);
    LOAD(fawn_buf_free); LOAD(fawn_thread_update); LOAD(fawn_runtime_shutdown); LOAD(fawn_runtime_free);
    fawn_buf buf = {0};
    fawn_runtime runtime, idle;
    if (p_fawn_runtime_new(FAWN_ABI_VERSION, "{}", FAWN_NTS, &idle, &buf)) return 3;
    printf("{\"case\":\"idle_runtime\",\"added_kib\":%ld,\"os_threads\":%ld}\n", resident_kib() - before, os_threads());

    if (p_fawn_runtime_new(FAWN_ABI_VERSION, "{\"workers\":0}", FAWN_NTS, &runtime, &buf)) return 3;
    fawn_assembly agent;
    fawn_thread thread;
    fawn_run run;
    if (p_fawn_assembly_new(runtime, "{\"model\":{\"provider\":\"scripted\",\"repeat\":true,\"replies\":[{\"content\":\"hi\"}]}}",
                            FAWN_NTS, &agent, &buf)) return 3;
    if (p_fawn_thread_open(runtime, "{}", FAWN_NTS, &thread, &buf)) return 3;
    if (p_fawn_run_start(agent, thread, 0, "{\"input\":{\"messages\":[\"hello\"]}}", FAWN_NTS, &run, &buf)) return 3;
    if (p_fawn_run_wait(run, -1, &buf)) return 3;
    printf("{\"case\":\"dlopen_to_first_run\",\"ms\":%.2f}\n", now_ms() - start);
    p_fawn_buf_free(&buf);

    enum { THREADS = 20000 };
    long empty = resident_kib();
    for (int i = 0; i < THREADS; i++) {
        fawn_thread open;
        if (p_fawn_thread_open(runtime, "{}", FAWN_NTS, &open, &buf)) return 3;
    }
    printf("{\"case\":\"open_thread\",\"bytes\":%ld}\n", (resident_kib() - empty) * 1024 / THREADS);
    return 0;
}
