/* A runtime from its making to its end. */

#include "check.h"

int main(void) {
  fawn_runtime runtime = 7;
  fawn_thread thread;
  fawn_queue queue;
  fawn_buf buf = rubbish();

  CHECK_ERROR(fawn_runtime_new(FAWN_ABI_VERSION + 1, "{}", 2, &runtime, &buf), buf, FAWN_ERR_ABI, "ABI 2");
  CHECK(runtime == 0);
  CHECK_ERROR(fawn_runtime_new(0, "{}", 2, &runtime, &buf), buf, FAWN_ERR_ABI, "ABI 0");
  CHECK_ERROR(fawn_runtime_new(FAWN_ABI_VERSION, "{}", 2, NULL, &buf), buf, FAWN_ERR_ARGUMENT, "`out`");
  runtime = 7;
  CHECK_ERROR(fawn_runtime_new(FAWN_ABI_VERSION, "{\"no_such\":1}", FAWN_NTS, &runtime, &buf), buf,
              FAWN_ERR_UNKNOWN_MEMBER, "\"path\":\"/no_such\"");
  CHECK(runtime == 0);
  CHECK_STATUS(fawn_runtime_new(FAWN_ABI_VERSION, "[]", 2, &runtime, NULL), FAWN_ERR_WRONG_TYPE);

  CHECK_EMPTY(fawn_runtime_new(FAWN_ABI_VERSION, "{\"x-mine\":[1]}", FAWN_NTS, &runtime, &buf), buf, FAWN_OK);
  CHECK(runtime != 0 && runtime < (uint64_t)1 << 53);
  CHECK_ANSWER(fawn_runtime_stats(runtime, &buf), buf, "\"kind\":\"runtime\"");
  CHECK_STATUS(fawn_queue_new(runtime, "{}", 2, &queue, NULL), FAWN_OK);

  CHECK_ANSWER(fawn_runtime_shutdown(runtime, -1, &buf), buf, "{");
  CHECK_ANSWER(fawn_runtime_shutdown(runtime, 0, &buf), buf, "{");
  CHECK_ERROR(fawn_thread_open(runtime, "{}", 2, &thread, &buf), buf, FAWN_ERR_CLOSED, "closed");
  CHECK(thread == 0);
  CHECK_ERROR(fawn_runtime_submit(runtime, "{\"op\":\"reset_agent\"}", FAWN_NTS, &buf), buf, FAWN_ERR_CLOSED,
              "closed");
  CHECK_EMPTY(fawn_queue_take(queue, -1, 0, &buf), buf, FAWN_CLOSED);
  CHECK_ANSWER(fawn_runtime_stats(runtime, &buf), buf, "\"kind\":\"queue\"");

  fawn_runtime_free(runtime);
  fawn_runtime_free(runtime);
  fawn_runtime_free(0);
  CHECK_ERROR(fawn_runtime_stats(runtime, &buf), buf, FAWN_ERR_HANDLE, "freed");
  CHECK_EMPTY(fawn_queue_take(queue, -1, 0, &buf), buf, FAWN_CLOSED);
  fawn_queue_free(queue);
  check_nothing_left();
  return 0;
}
