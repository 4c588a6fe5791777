/* Runs as a host sees them: events in order, host calls answered, cancelled, waited for; with and without workers. */

#include "check.h"

#define TOOL_ASSEMBLY                                                                                           \
  "{\"model\":{\"provider\":\"scripted\",\"replies\":["                                                         \
  "{\"tool_calls\":[{\"name\":\"get_weather\",\"args\":{\"city\":\"Paris\"}}]},"                                \
  "{\"content\":\"It is clear in Paris.\"}],\"repeat\":true},"                                                  \
  "\"tools\":[{\"name\":\"get_weather\",\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":"          \
  "{\"type\":\"string\"}}}}]}"

static const char *runtimes[] = {"{}", "{\"workers\":1}", "{\"workers\":0}"};
enum { RUNTIMES = sizeof runtimes / sizeof runtimes[0] };

/* Takes events one by one until a run has ended, and answers the calls of its tool. Gives the number of events. */
static int pump(objects o) {
  uint64_t seq = 0;
  for (int count = 1;; count++) {
    fawn_buf buf = rubbish(), err = rubbish();
    CHECK_STATUS(fawn_queue_take(o.queue, 60000, 1, &buf), FAWN_OK);
    CHECK(buf.data[0] == '[' && buf.data[buf.len - 1] == ']');
    CHECK(member_number(buf.data, "seq") > seq);
    seq = member_number(buf.data, "seq");
    if (strstr(buf.data, "\"type\":\"host_call\"") != NULL) {
      CHECK(strstr(buf.data, "\"name\":\"get_weather\"") != NULL && strstr(buf.data, "Paris") != NULL);
      uint64_t call = member_number(buf.data, "call_id");
      char answer[] = "{\"ok\":{\"content\":\"18 degrees\"}}";
      CHECK_EMPTY(fawn_call_finish(o.runtime, call, answer, strlen(answer), &err), err, FAWN_OK);
      memset(answer, 'X', strlen(answer));
      CHECK_EMPTY(fawn_call_finish(o.runtime, call, "{\"ok\":{}}", FAWN_NTS, &err), err, FAWN_GONE);
    }
    int ended = strstr(buf.data, "\"type\":\"run_end\"") != NULL;
    fawn_buf_free(&buf);
    if (ended) {
      return count;
    }
  }
}

static void a_run_with_a_host_tool(const char *runtime) {
  objects o = make_objects_of(runtime, TOOL_ASSEMBLY);
  fawn_buf buf;
  CHECK(pump(o) >= 3);
  CHECK_ANSWER(fawn_run_wait(o.run, -1, &buf), buf, "\"status\":\"success\"");
  CHECK_ANSWER(fawn_run_wait(o.run, 0, &buf), buf, "\"status\":\"success\"");
  CHECK_ANSWER(fawn_thread_state(o.thread, "{}", 2, &buf), buf, "18 degrees");
  CHECK_EMPTY(fawn_queue_take(o.queue, 0, 0, &buf), buf, FAWN_TIMEOUT);
  free_objects(o, "43210");
}

static void a_run_that_nobody_listens_to(const char *runtime) {
  objects o = make_objects_of(runtime, ASSEMBLY);
  fawn_buf buf;
  fawn_assembly needs_host;
  fawn_run run = 7;
  CHECK_ANSWER(fawn_run_wait(o.run, -1, &buf), buf, "\"status\":\"success\"");
  CHECK_STATUS(fawn_run_start(o.assembly, o.thread, 0, REQUEST, FAWN_NTS, &run, NULL), FAWN_OK);
  CHECK_ANSWER(fawn_run_wait(run, -1, &buf), buf, "\"status\":\"success\"");
  fawn_run_free(run);
  CHECK_STATUS(fawn_assembly_new(o.runtime, TOOL_ASSEMBLY, FAWN_NTS, &needs_host, NULL), FAWN_OK);
  CHECK_ERROR(fawn_run_start(needs_host, o.thread, 0, REQUEST, FAWN_NTS, &run, &buf), buf, FAWN_ERR_NO_QUEUE, "queue");
  CHECK(run == 0);
  fawn_assembly_free(needs_host);
  free_objects(o, "01234");
}

static void a_run_that_is_cancelled(const char *runtime) {
  objects o = make_objects_of(runtime, HOST_ASSEMBLY);
  fawn_buf buf, err;
  fawn_run second;
  buf = take_until(o.queue, "host_call");
  uint64_t call = member_number(buf.data, "call_id");
  fawn_buf_free(&buf);
  CHECK_EMPTY(fawn_run_wait(o.run, 10, &buf), buf, FAWN_TIMEOUT);
  CHECK_ERROR(fawn_run_start(o.assembly, o.thread, o.queue, REQUEST, FAWN_NTS, &second, &err), err,
              FAWN_ERR_THREAD_BUSY, "thread_busy");
  CHECK_ANSWER(fawn_run_submit(o.run, "{\"op\":\"cancel\",\"reason\":\"enough\"}", FAWN_NTS, &buf), buf, "true");
  CHECK_ANSWER(fawn_run_wait(o.run, -1, &buf), buf, "\"status\":\"interrupted\"");
  CHECK_EMPTY(fawn_call_finish(o.runtime, call, "{\"ok\":{\"content\":\"late\"}}", FAWN_NTS, &err), err, FAWN_GONE);
  buf = take_until(o.queue, "run_end");
  fawn_buf_free(&buf);
  free_objects(o, "01234");
}

#define APPROVED_ASSEMBLY                                                                                       \
  "{\"model\":{\"provider\":\"scripted\",\"replies\":[{\"tool_calls\":[{\"name\":\"pay\",\"args\":{}}]},"           \
  "{\"content\":\"Done.\"}]},\"tools\":[{\"name\":\"pay\",\"parameters\":{\"type\":\"object\"}}],"                  \
  "\"middleware\":[{\"name\":\"approval\",\"host\":{\"hooks\":[\"wrap_tool_call\"],\"tools\":[\"pay\"]}}]}"

/* The host is a middleware: it is asked before its tool is called, and what is no verdict leaves the question open. */
static void a_call_that_the_host_decides_about(const char *runtime, const char *verdict, const char *result) {
  objects o = make_objects_of(runtime, APPROVED_ASSEMBLY);
  fawn_buf err, buf = take_until(o.queue, "host_call");
  CHECK(strstr(buf.data, "\"kind\":\"middleware\"") != NULL && strstr(buf.data, "\"hook\":\"wrap_tool_call\"") != NULL);
  uint64_t call = member_number(buf.data, "call_id");
  fawn_buf_free(&buf);
  CHECK_ERROR(fawn_call_emit(o.runtime, call, "1", FAWN_NTS, &err), err, FAWN_ERR_UNSUPPORTED, "nothing to emit");
  CHECK_ERROR(fawn_call_finish(o.runtime, call, "{\"ok\":\"yes\"}", FAWN_NTS, &err), err, FAWN_ERR_WRONG_TYPE, "/ok");
  CHECK_ERROR(fawn_call_finish(o.runtime, call, "{\"ok\":{\"verdict\":\"yes\"}}", FAWN_NTS, &err), err,
              FAWN_ERR_UNKNOWN_VARIANT, "/ok/verdict");
  CHECK_EMPTY(fawn_call_finish(o.runtime, call, verdict, FAWN_NTS, &err), err, FAWN_OK);
  CHECK_EMPTY(fawn_call_finish(o.runtime, call, verdict, FAWN_NTS, &err), err, FAWN_GONE);
  if (strstr(verdict, "continue") != NULL) {
    buf = take_until(o.queue, "host_call");
    CHECK(strstr(buf.data, "\"kind\":\"tool\"") != NULL);
    call = member_number(buf.data, "call_id");
    fawn_buf_free(&buf);
    CHECK_EMPTY(fawn_call_finish(o.runtime, call, "{\"ok\":\"paid\"}", FAWN_NTS, &err), err, FAWN_OK);
  }
  buf = take_until(o.queue, "run_end");
  fawn_buf_free(&buf);
  CHECK_ANSWER(fawn_run_wait(o.run, -1, &buf), buf, result);
  free_objects(o, "01234");
}

/* What a run does when things it uses are freed under it: it ends, with or without an answer, and nothing hangs. */
static void things_freed_under_a_run(const char *runtime, const char *order) {
  objects o = make_objects_of(runtime, HOST_ASSEMBLY);
  fawn_buf buf = take_until(o.queue, "host_call");
  uint64_t call = member_number(buf.data, "call_id");
  fawn_buf_free(&buf);
  free_objects(o, order);
  if (strchr(order, '0') == NULL) {
    fawn_buf err;
    int32_t status = fawn_call_finish(o.runtime, call, "{\"ok\":{\"content\":\"hi\"}}", FAWN_NTS, &err);
    CHECK(status == FAWN_OK || status == FAWN_GONE);
    fawn_buf_free(&err);
  }
  if (strchr(order, '4') == NULL) {
    int32_t status = fawn_run_wait(o.run, 60000, &buf);
    CHECK(status == FAWN_OK || status == FAWN_CLOSED || status == FAWN_ERR_CLOSED);
    fawn_buf_free(&buf);
  }
  free_objects(o, "01234");
}

static void shutdown_ends_what_runs(const char *runtime) {
  objects o = make_objects_of(runtime, HOST_ASSEMBLY);
  fawn_buf buf = take_until(o.queue, "host_call");
  fawn_buf_free(&buf);
  CHECK_ANSWER(fawn_runtime_shutdown(o.runtime, -1, &buf), buf, "{");
  CHECK_ANSWER(fawn_run_wait(o.run, -1, &buf), buf, "\"status\":");
  buf = take_until(o.queue, "run_end");
  fawn_buf_free(&buf);
  CHECK_EMPTY(fawn_queue_take(o.queue, -1, 0, &buf), buf, FAWN_CLOSED);
  free_objects(o, "01234");
}

static void *everything(void *unused) {
  (void)unused;
  for (int n = 0; n < RUNTIMES; n++) {
    a_call_that_the_host_decides_about(runtimes[n], "{\"ok\":{\"verdict\":\"continue\"}}", "\"status\":\"success\"");
    a_call_that_the_host_decides_about(runtimes[n], "{\"ok\":{\"verdict\":\"deny\",\"reason\":\"no\"}}", "Done.");
    a_call_that_the_host_decides_about(runtimes[n], "{\"ok\":{\"verdict\":\"pause\"}}", "\"status\":\"interrupted\"");
    a_run_with_a_host_tool(runtimes[n]);
    a_run_that_nobody_listens_to(runtimes[n]);
    a_run_that_is_cancelled(runtimes[n]);
    shutdown_ends_what_runs(runtimes[n]);
    static const char *orders[] = {"0", "1", "2", "3", "4", "30", "03", "123", "1234", "40"};
    for (size_t m = 0; m < sizeof orders / sizeof orders[0]; m++) {
      things_freed_under_a_run(runtimes[n], orders[m]);
    }
  }
  return NULL;
}

int main(void) {
  everything(NULL);
  check_nothing_left();
  on_threads(1, SMALL_STACK, everything, NULL);
  check_nothing_left();
  return 0;
}
