/* fawn_run. */
#include "binding.h"

/* runStart(assembly, thread, queue or 0, json): a handle. */
static napi_value run_start(napi_env env, napi_callback_info info) {
  call c;
  text json;
  fawn_run handle;
  fawn_buf err;
  if (!begin(env, info, &c) || !text_at(&c, 3, &json)) return NULL;
  int32_t status = fawn_run_start((fawn_assembly)number_at(&c, 0), (fawn_thread)number_at(&c, 1),
                                  (fawn_queue)number_at(&c, 2), json.data, json.len, &handle, &err);
  return made(&c, status, KIND_RUN, handle, &err);
}

/* runSubmit(run, json) */
static napi_value run_submit(napi_env env, napi_callback_info info) {
  call c;
  text json;
  fawn_buf out;
  if (!begin(env, info, &c) || !text_at(&c, 1, &json)) return NULL;
  int32_t status = fawn_run_submit((fawn_run)number_at(&c, 0), json.data, json.len, &out);
  return answer(&c, status, &out);
}

/* runWait(run, timeoutMs): the result, or FAWN_TIMEOUT, FAWN_CLOSED. Blocks the loop that long: lib/ asks for 0. */
static napi_value run_wait(napi_env env, napi_callback_info info) {
  call c;
  fawn_buf out;
  if (!begin(env, info, &c)) return NULL;
  int32_t status = fawn_run_wait((fawn_run)number_at(&c, 0), number_at(&c, 1), &out);
  return answer(&c, status, &out);
}

const named_function RUN_FUNCTIONS[] = {
    {"runStart", run_start}, {"runSubmit", run_submit}, {"runWait", run_wait}, {NULL, NULL}};
