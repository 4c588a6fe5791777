/* A thread's state as a host sees it: written, read, listed; the input is read during the call only. */

#include "check.h"

int main(void) {
  fawn_runtime runtime;
  fawn_thread thread, same;
  fawn_buf buf = rubbish();
  CHECK_STATUS(fawn_runtime_new(FAWN_ABI_VERSION, "{}", 2, &runtime, NULL), FAWN_OK);

  /* Inputs are overwritten right after each call. */
  char open[] = "{\"thread_id\":\"t-1\"}";
  CHECK_EMPTY(fawn_thread_open(runtime, open, strlen(open), &thread, &buf), buf, FAWN_OK);
  memset(open, 'X', strlen(open));
  char update[] = "{\"values\":{\"title\":\"Foxes\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi \\u00e9\",\"id\":\"m1\"}]}}";
  CHECK_ANSWER(fawn_thread_update(thread, update, strlen(update), &buf), buf, "{");
  memset(update, 'X', strlen(update));
  CHECK_ANSWER(fawn_thread_state(thread, "{}", 2, &buf), buf, "\"Foxes\"");
  CHECK_ANSWER(fawn_thread_state(thread, "{\"channels\":[\"messages\"]}", FAWN_NTS, &buf), buf, "Hi \xc3\xa9");

  /* A failed write changes nothing, not even with its right part. */
  CHECK_ERROR(fawn_thread_update(thread, "{\"values\":{\"title\":\"Bears\",\"messages\":null}}", FAWN_NTS, &buf), buf,
              FAWN_ERR_NULL_WRITE, "\"path\":\"/values/messages\"");
  CHECK_ANSWER(fawn_thread_state(thread, "{}", 2, &buf), buf, "\"Foxes\"");

  /* Two handles of one thread see the same; freeing one leaves the other. */
  CHECK_STATUS(fawn_thread_open(runtime, "{\"thread_id\":\"t-1\"}", FAWN_NTS, &same, NULL), FAWN_OK);
  CHECK(same != thread);
  fawn_thread_free(thread);
  CHECK_ERROR(fawn_thread_state(thread, "{}", 2, &buf), buf, FAWN_ERR_HANDLE, "freed");
  CHECK_ANSWER(fawn_thread_state(same, "{}", 2, &buf), buf, "\"Foxes\"");
  CHECK_ANSWER(fawn_thread_history(same, "{\"limit\":1}", FAWN_NTS, &buf), buf, "checkpoint_id");
  CHECK_ERROR(fawn_thread_state(same, "{\"checkpoint_id\":\"none\"}", FAWN_NTS, &buf), buf,
              FAWN_ERR_UNKNOWN_CHECKPOINT, "checkpoint");

  /* A goal is set and cleared by a function of its own; a write of null keeps it. */
  CHECK_ANSWER(fawn_thread_goal(same, "{\"op\":\"set\",\"objective\":\" count\\nfoxes \"}", FAWN_NTS, &buf), buf,
               "\"objective\":\"count foxes\"");
  CHECK_ANSWER(fawn_thread_update(same, "{\"values\":{\"goal\":null}}", FAWN_NTS, &buf), buf, "checkpoint_id");
  CHECK_ANSWER(fawn_thread_goal(same, "{\"op\":\"get\"}", FAWN_NTS, &buf), buf, "\"status\":\"active\"");
  CHECK_ERROR(fawn_thread_goal(same, "{\"op\":\"set\",\"objective\":\" \"}", FAWN_NTS, &buf), buf, FAWN_ERR_OUT_OF_RANGE,
              "\"path\":\"/objective\"");
  CHECK_ANSWER(fawn_thread_goal(same, "{\"op\":\"command\",\"argument\":\"off\"}", FAWN_NTS, &buf), buf, "\"goal\":null");
  fawn_thread_free(same);
  fawn_runtime_free(runtime);
  check_nothing_left();
  return 0;
}
