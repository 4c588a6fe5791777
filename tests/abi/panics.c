/* Panics of the library: each is a status and an error object, nothing is printed, and everything else goes on. */

#include "check.h"

/* Whether the library was built with calls that panic on purpose. */
static int can_panic(void) {
  fawn_buf buf;
  CHECK_STATUS(fawn_describe("build", FAWN_NTS, &buf), FAWN_OK);
  int can = strstr(buf.data, "\"test-panics\"") != NULL;
  fawn_buf_free(&buf);
  return can;
}

static void *panics(void *unused) {
  (void)unused;
  for (int n = 0; n < 200; n++) {
    fawn_buf buf = rubbish();
    CHECK_ERROR(fawn_describe("panic:planted", FAWN_NTS, &buf), buf, FAWN_ERR_PANIC, "planted (at src/ffi/meta.rs:");
    CHECK_STATUS(fawn_describe("panic:planted", FAWN_NTS, NULL), FAWN_ERR_PANIC);
    CHECK_ANSWER(fawn_describe("build", FAWN_NTS, &buf), buf, "\"abi\"");
  }
  return NULL;
}

/* Arms a point of the library: the next time it is passed, it panics, once. */
static void arm(const char *point) {
  fawn_buf buf;
  char what[64];
  snprintf(what, sizeof what, "arm:%s", point);
  CHECK_ANSWER(fawn_describe(what, FAWN_NTS, &buf), buf, "{}");
}

/* A panic in any layer of a run is that run's error; the thread, the queue and the runtime go on. */
static void layers(int workers) {
  static const char *points[] = {"agent", "runtime", "model", "store", "queue", "calls"};
  char config[32];
  fawn_buf buf;
  fawn_runtime runtime;
  fawn_assembly agent;
  fawn_queue queue;
  snprintf(config, sizeof config, "{\"workers\":%d}", workers);
  CHECK_STATUS(fawn_runtime_new(FAWN_ABI_VERSION, config, FAWN_NTS, &runtime, NULL), FAWN_OK);
  CHECK_STATUS(fawn_assembly_new(runtime,
                                 "{\"model\":{\"provider\":\"scripted\",\"repeat\":true,\"replies\":[{\"tool_calls\":[{"
                                 "\"name\":\"f\",\"args\":{}}]},{\"content\":\"Done.\"}]},\"tools\":[{\"name\":\"f\"}]}",
                                 FAWN_NTS, &agent, NULL),
               FAWN_OK);
  CHECK_STATUS(fawn_queue_new(runtime, "{}", FAWN_NTS, &queue, NULL), FAWN_OK);
  for (size_t n = 0; n < 2 * sizeof points / sizeof *points; n++) {
    fawn_thread thread;
    fawn_run run;
    const char *point = points[n / 2];
    CHECK_STATUS(fawn_thread_open(runtime, "{}", FAWN_NTS, &thread, NULL), FAWN_OK);
    if (n % 2 == 0) {
      arm(point);
    }
    CHECK_STATUS(fawn_run_start(agent, thread, queue, "{\"input\":{\"messages\":[\"hi\"]}}", FAWN_NTS, &run, NULL),
                 FAWN_OK);
    for (int ended = 0; !ended;) {
      CHECK_STATUS(fawn_queue_take(queue, 10000, 1, &buf), FAWN_OK);
      const char *call = strstr(buf.data, "\"call_id\":");
      if (call != NULL && strstr(buf.data, "\"type\":\"host_call\"") != NULL) {
        CHECK_STATUS(fawn_call_finish(runtime, strtoull(call + 10, NULL, 10), "{\"ok\":\"x\"}", FAWN_NTS, NULL), FAWN_OK);
      }
      ended = strstr(buf.data, "\"type\":\"run_end\"") != NULL;
      fawn_buf_free(&buf);
    }
    CHECK_STATUS(fawn_run_wait(run, 10000, &buf), FAWN_OK);
    if (n % 2 == 1) {
      CHECK(strstr(buf.data, "\"status\":\"success\"") != NULL);
    } else if (strcmp(point, "calls") == 0) {
      /* Inside a tool's call it is that call's failure, and the model is told. */
      CHECK(strstr(buf.data, "\"status\":\"success\"") != NULL);
    } else {
      CHECK(strstr(buf.data, "\"code\":\"panic\"") != NULL);
    }
    fawn_buf_free(&buf);
    /* The thread reads what is stored, and takes writes. */
    CHECK_ANSWER(fawn_thread_state(thread, "{}", 2, &buf), buf, "\"values\"");
    CHECK_ANSWER(fawn_thread_update(thread, "{\"values\":{\"title\":\"t\"}}", FAWN_NTS, &buf), buf, "checkpoint_id");
    arm("state");
    CHECK_ERROR(fawn_thread_update(thread, "{\"values\":{\"title\":\"u\"}}", FAWN_NTS, &buf), buf, FAWN_ERR_PANIC, "planted");
    CHECK_ANSWER(fawn_thread_state(thread, "{\"channels\":[\"title\"]}", FAWN_NTS, &buf), buf, "\"title\":\"t\"");
    fawn_run_free(run);
    fawn_thread_free(thread);
  }
  fawn_runtime_free(runtime);
  fawn_queue_free(queue);
  fawn_assembly_free(agent);
}

int main(void) {
  fawn_buf buf;
  int can = can_panic();
  /* Set by whoever built the library that is meant to be tested here. */
  CHECK(can == (getenv("FAWN_EXPECT_PANICS") != NULL));
  if (!can) {
    CHECK_ERROR(fawn_describe("panic:planted", FAWN_NTS, &buf), buf, FAWN_ERR_UNKNOWN_VARIANT, "panic:planted");
    return 0;
  }
  objects o = make_objects();
  panics(NULL);
  layers(0);
  layers(2);
  on_threads(8, SMALL_STACK, panics, NULL);
  CHECK_ANSWER(fawn_runtime_stats(o.runtime, &buf), buf, "{");
  free_objects(o, "01234");
  check_nothing_left();
  return 0;
}
