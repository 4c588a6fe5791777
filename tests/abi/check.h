/* The few words that the C programs here are written in. A program that fails says where and ends with 1. */

#ifndef CHECK_H
#define CHECK_H

#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fawn.h"

/* Unused where a program needs only some of these. */
#define HELPER static __attribute__((unused))

#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
      exit(1);                                                                               \
    }                                                                                        \
  } while (0)

/* The call returns this status. */
#define CHECK_STATUS(call, status) check_status(__FILE__, __LINE__, #call, (call), (status))

/* The call returns this error, and the buffer holds its error object, in which `needle` is found. Frees the buffer. */
#define CHECK_ERROR(call, buf, status, needle)                                               \
  do {                                                                                       \
    CHECK_STATUS(call, status);                                                              \
    check_error(__FILE__, __LINE__, &(buf), (status), (needle));                             \
  } while (0)

/* The call succeeds, and the buffer holds text in which `needle` is found. Frees the buffer. */
#define CHECK_ANSWER(call, buf, needle)                                                      \
  do {                                                                                       \
    CHECK_STATUS(call, FAWN_OK);                                                             \
    check_text(__FILE__, __LINE__, &(buf), (needle));                                        \
    fawn_buf_free(&(buf));                                                                   \
  } while (0)

/* The call succeeds or ends in an expected way, and leaves the buffer empty. */
#define CHECK_EMPTY(call, buf, status)                                                       \
  do {                                                                                       \
    CHECK_STATUS(call, status);                                                              \
    CHECK((buf).data == NULL && (buf).len == 0 && (buf).owner == 0);                         \
  } while (0)

HELPER void check_status(const char *file, int line, const char *call, int32_t found, int32_t status) {
  if (found != status) {
    fprintf(stderr, "%s:%d: %s: %s, not %s\n", file, line, call, fawn_status_name(found),
            fawn_status_name(status));
    exit(1);
  }
}

HELPER void check_text(const char *file, int line, const fawn_buf *buf, const char *needle) {
  if (buf->data == NULL || buf->data[buf->len] != 0 || strstr(buf->data, needle) == NULL) {
    fprintf(stderr, "%s:%d: no %s in %s\n", file, line, needle, buf->data ? buf->data : "NULL");
    exit(1);
  }
}

HELPER void check_error(const char *file, int line, fawn_buf *buf, int32_t status, const char *needle) {
  char member[32];
  snprintf(member, sizeof member, "\"status\":%d,", (int)status);
  check_text(file, line, buf, "{\"code\":\"");
  check_text(file, line, buf, member);
  check_text(file, line, buf, needle);
  fawn_buf_free(buf);
  CHECK(buf->data == NULL && buf->len == 0 && buf->owner == 0);
}

/* What a buffer may hold before a call: nothing that the library may look at. */
HELPER fawn_buf rubbish(void) {
  fawn_buf buf;
  memset(&buf, 0xa5, sizeof buf);
  return buf;
}

/* An assembly that needs no network and no host: its model says the same again and again. */
#define ASSEMBLY "{\"model\":{\"provider\":\"scripted\",\"replies\":[{\"content\":\"Done.\"}],\"repeat\":true}}"

/* An assembly whose model is answered by the host. */
#define HOST_ASSEMBLY "{\"model\":{\"provider\":\"host\"}}"

/* A request for a run. */
#define REQUEST "{\"input\":{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}}"

/* One of each, all of one runtime. */
typedef struct objects {
  fawn_runtime runtime;
  fawn_assembly assembly;
  fawn_thread thread;
  fawn_queue queue;
  fawn_run run;
} objects;

HELPER objects make_objects_of(const char *runtime, const char *assembly) {
  objects o;
  fawn_buf buf = rubbish();
  CHECK_EMPTY(fawn_runtime_new(FAWN_ABI_VERSION, runtime, FAWN_NTS, &o.runtime, &buf), buf, FAWN_OK);
  CHECK_EMPTY(fawn_assembly_new(o.runtime, assembly, FAWN_NTS, &o.assembly, &buf), buf, FAWN_OK);
  CHECK_EMPTY(fawn_thread_open(o.runtime, "{}", 2, &o.thread, &buf), buf, FAWN_OK);
  CHECK_EMPTY(fawn_queue_new(o.runtime, "{}", 2, &o.queue, &buf), buf, FAWN_OK);
  CHECK_EMPTY(fawn_run_start(o.assembly, o.thread, o.queue, REQUEST, FAWN_NTS, &o.run, &buf), buf, FAWN_OK);
  return o;
}

HELPER objects make_objects(void) { return make_objects_of("{}", ASSEMBLY); }

/* The number that is the value of "name" where it comes first in a JSON text. */
HELPER uint64_t member_number(const char *json, const char *name) {
  char member[64];
  snprintf(member, sizeof member, "\"%s\":", name);
  const char *at = strstr(json, member);
  CHECK(at != NULL);
  return strtoull(at + strlen(member), NULL, 10);
}

/* Takes events one by one, for at most a minute each, until one has this type, and gives it. */
HELPER fawn_buf take_until(fawn_queue queue, const char *type) {
  char member[64];
  snprintf(member, sizeof member, "\"type\":\"%s\"", type);
  for (;;) {
    fawn_buf buf = rubbish();
    CHECK_STATUS(fawn_queue_take(queue, 60000, 1, &buf), FAWN_OK);
    if (strstr(buf.data, member) != NULL) {
      return buf;
    }
    fawn_buf_free(&buf);
  }
}

/* Frees them in the order of the digits, of which each of 0 to 4 comes once: runtime, assembly, thread, queue, run. */
HELPER void free_objects(objects o, const char *order) {
  for (; *order; order++) {
    switch (*order) {
      case '0': fawn_runtime_free(o.runtime); break;
      case '1': fawn_assembly_free(o.assembly); break;
      case '2': fawn_thread_free(o.thread); break;
      case '3': fawn_queue_free(o.queue); break;
      case '4': fawn_run_free(o.run); break;
      default: CHECK(!"an order is made of 0 to 4");
    }
  }
}

/* How many OS threads the process has; 0 where the system does not tell. */
HELPER int os_threads(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  struct dirent *entry;
  while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
    count += entry->d_name[0] != '.';
  }
  if (tasks != NULL) {
    closedir(tasks);
  }
  return count;
}

/* OS threads that the program has without asking for them: the thread sanitizer runs one of its own. */
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define CHECKER_THREADS 1
#endif
#endif
#ifndef CHECKER_THREADS
#define CHECKER_THREADS 0
#endif

/* Nothing is alive any more: neither handles nor buffers nor, after a moment, OS threads, apart from the main one, the
 * caller and the checker's. */
HELPER void check_nothing_left(void) {
  struct timespec moment = {0, 1000 * 1000};
  int ours = (syscall(SYS_gettid) == getpid() ? 1 : 2) + CHECKER_THREADS;
  for (int waited = 0; os_threads() > ours; waited++) {
    CHECK(waited < 20000);
    nanosleep(&moment, NULL);
  }
  fawn_buf buf;
  CHECK_ANSWER(fawn_describe("handles", FAWN_NTS, &buf), buf,
               "{\"handles\":[],\"buffers\":{\"count\":0,\"bytes\":0}}");
}

/* Runs `body` on `count` OS threads with stacks of `stack` bytes each, and waits for all. */
HELPER void on_threads(int count, size_t stack, void *(*body)(void *), void *argument) {
  pthread_t threads[64];
  pthread_attr_t attributes;
  CHECK(count <= 64);
  CHECK(pthread_attr_init(&attributes) == 0);
  CHECK(pthread_attr_setstacksize(&attributes, stack) == 0);
  for (int n = 0; n < count; n++) {
    CHECK(pthread_create(&threads[n], &attributes, body, argument) == 0);
  }
  for (int n = 0; n < count; n++) {
    CHECK(pthread_join(threads[n], NULL) == 0);
  }
  pthread_attr_destroy(&attributes);
}

/* Stacks with and without room for a call: in the second case the library carries it out on an OS thread of its own. */
#define LARGE_STACK ((size_t)2048 * 1024)
#define SMALL_STACK ((size_t)128 * 1024)

#endif /* CHECK_H */
