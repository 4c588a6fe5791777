/* fawn_runtime. */
#include "binding.h"

/* runtimeNew(json): a handle. */
static napi_value runtime_new(napi_env env, napi_callback_info info) {
  call c;
  text json;
  fawn_runtime handle;
  fawn_buf err;
  if (!begin(env, info, &c) || !text_at(&c, 0, &json)) return NULL;
  int32_t status = fawn_runtime_new(FAWN_ABI_VERSION, json.data, json.len, &handle, &err);
  return made(&c, status, KIND_RUNTIME, handle, &err);
}

/* runtimeSubmit(runtime, json) */
static napi_value runtime_submit(napi_env env, napi_callback_info info) {
  call c;
  fawn_runtime runtime;
  text json;
  fawn_buf out;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a runtime", &runtime) || !text_at(&c, 1, &json)) return NULL;
  int32_t status = fawn_runtime_submit(runtime, json.data, json.len, &out);
  return answer(&c, status, &out);
}

/* runtimeStats(runtime) */
static napi_value runtime_stats(napi_env env, napi_callback_info info) {
  call c;
  fawn_runtime runtime;
  fawn_buf out;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a runtime", &runtime)) return NULL;
  int32_t status = fawn_runtime_stats(runtime, &out);
  return answer(&c, status, &out);
}

/* runtimeShutdown(runtime, timeoutMs): the answer, or FAWN_TIMEOUT. Blocks the loop that long: lib/ asks for 0. */
static napi_value runtime_shutdown(napi_env env, napi_callback_info info) {
  call c;
  fawn_runtime runtime;
  int64_t timeout_ms;
  fawn_buf out;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a runtime", &runtime) ||
      !number_at(&c, 1, "a timeout", -1, INT32_MAX, &timeout_ms)) {
    return NULL;
  }
  int32_t status = fawn_runtime_shutdown(runtime, timeout_ms, &out);
  return answer(&c, status, &out);
}

/* fawn_runtime_free is behind `release`, in text.c. */
const named_function RUNTIME_FUNCTIONS[] = {{"runtimeNew", runtime_new},
                                      {"runtimeSubmit", runtime_submit},
                                      {"runtimeStats", runtime_stats},
                                      {"runtimeShutdown", runtime_shutdown},
                                      {NULL, NULL}};
