/* fawn_run. */
#include "binding.h"

/* runStart(assembly, thread, queue or 0, json): a handle. */
static napi_value run_start(napi_env env, napi_callback_info info) {
  call c;
  fawn_assembly assembly;
  fawn_thread thread;
  fawn_queue queue;
  text json;
  fawn_run handle;
  fawn_buf err;
  if (!begin(env, info, &c) || !id_at(&c, 0, "an assembly", &assembly) || !id_at(&c, 1, "a thread", &thread) ||
      !id_at(&c, 2, "a queue", &queue) || !text_at(&c, 3, &json)) {
    return NULL;
  }
  int32_t status = fawn_run_start(assembly, thread, queue, json.data, json.len, &handle, &err);
  return made(&c, status, KIND_RUN, handle, &err);
}

/* runSubmit(run, json) */
static napi_value run_submit(napi_env env, napi_callback_info info) {
  call c;
  fawn_run run;
  text json;
  fawn_buf out;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a run", &run) || !text_at(&c, 1, &json)) return NULL;
  int32_t status = fawn_run_submit(run, json.data, json.len, &out);
  return answer(&c, status, &out);
}

/* runWait(run, timeoutMs): the result, or FAWN_TIMEOUT, FAWN_CLOSED. Blocks the loop that long: lib/ asks for 0. */
static napi_value run_wait(napi_env env, napi_callback_info info) {
  call c;
  fawn_run run;
  int64_t timeout_ms;
  fawn_buf out;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a run", &run) || !number_at(&c, 1, "a timeout", -1, INT32_MAX, &timeout_ms)) {
    return NULL;
  }
  int32_t status = fawn_run_wait(run, timeout_ms, &out);
  return answer(&c, status, &out);
}

const named_function RUN_FUNCTIONS[] = {
    {"runStart", run_start}, {"runSubmit", run_submit}, {"runWait", run_wait}, {NULL, NULL}};
