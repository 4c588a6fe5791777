/* Times fawn_reduce from text to text, as a C host calls it: fold_text DIRECTORY, with FOLD_RUNS as in fold.py.
 * One JSON line per case; "fawn, canonical" is the same request with "form": "canonical". */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fawn.h"

static void fail(const char *what, const char *detail) {
    fprintf(stderr, "fold_text: %s: %s\n", what, detail);
    exit(1);
}

static char *read_file(const char *path, size_t *len) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) fail("cannot read", path);
    long size = ftell(file);
    rewind(file);
    char *text = size < 0 ? NULL : malloc((size_t)size + 1);
    if (!text || fread(text, 1, (size_t)size, file) != (size_t)size) fail("cannot read", path);
    fclose(file);
    text[size] = 0;
    *len = (size_t)size;
    return text;
}

static double reduce_us(const char *json, size_t len) {
    struct timespec begin, end;
    fawn_buf out = {0};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    int32_t status = fawn_reduce("messages", strlen("messages"), json, len, &out);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (status != 0) fail("fawn_reduce", out.data ? out.data : "no error object");
    fawn_buf_free(&out);
    return (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
}

static int ascending(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void measure(const char *directory, const char *name, const char *suffix, const char *peer, int runs) {
    char path[4096];
    size_t len;
    if (snprintf(path, sizeof path, "%s/%s%s.json", directory, name, suffix) >= (int)sizeof path)
        fail("too long", directory);
    char *json = read_file(path, &len);
    double *us = calloc((size_t)runs, sizeof *us);
    if (!us) fail("no memory", path);
    reduce_us(json, len);
    for (int run = 0; run < runs; run++) us[run] = reduce_us(json, len);
    qsort(us, (size_t)runs, sizeof *us, ascending);
    printf("{\"peer\":\"%s\",\"version\":\"%s\",\"case\":\"%s\",\"us_per_run\":%.1f,\"samples\":%d}\n", peer,
           fawn_version(), name, us[runs / 2], runs);
    fflush(stdout);
    free(us);
    free(json);
}

int main(int argc, char **argv) {
    const char *names[] = {"append", "writes"};
    const char *setting = getenv("FOLD_RUNS");
    int runs = setting ? atoi(setting) : 5;
    if (argc != 2 || runs < 1) fail("usage", "fold_text DIRECTORY");
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        measure(argv[1], names[n], "", "fawn", runs);
        measure(argv[1], names[n], ".canonical", "fawn, canonical", runs);
    }
    return 0;
}
