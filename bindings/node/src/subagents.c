/* fawn_subagents. */
#include "binding.h"

/* subagentsNew(runtime, json): a handle. */
static napi_value subagents_new(napi_env env, napi_callback_info info) {
  call c;
  text json;
  fawn_runtime runtime;
  fawn_subagents handle;
  fawn_buf err;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a runtime", &runtime) || !text_at(&c, 1, &json)) return NULL;
  int32_t status = fawn_subagents_new(runtime, json.data, json.len, &handle, &err);
  return made(&c, status, KIND_SUBAGENTS, handle, &err);
}

/* A function of a subagents object that answers a text. */
typedef int32_t (*subagents_call)(fawn_subagents, fawn_buf *);

static napi_value ask(napi_env env, napi_callback_info info, subagents_call function) {
  call c;
  fawn_subagents subagents;
  fawn_buf out;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a subagents object", &subagents)) return NULL;
  int32_t status = function(subagents, &out);
  return answer(&c, status, &out);
}

/* subagentsStart(subagents) */
static napi_value subagents_start(napi_env env, napi_callback_info info) { return ask(env, info, fawn_subagents_start); }

/* subagentsStop(subagents, timeoutMs): the answer, or FAWN_TIMEOUT. Blocks the loop that long: lib/ asks for 0. */
static napi_value subagents_stop(napi_env env, napi_callback_info info) {
  call c;
  fawn_subagents subagents;
  int64_t timeout_ms;
  fawn_buf out;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a subagents object", &subagents) ||
      !number_at(&c, 1, "a timeout", -1, INT32_MAX, &timeout_ms)) {
    return NULL;
  }
  int32_t status = fawn_subagents_stop(subagents, timeout_ms, &out);
  return answer(&c, status, &out);
}

/* subagentsStats(subagents) */
static napi_value subagents_stats(napi_env env, napi_callback_info info) { return ask(env, info, fawn_subagents_stats); }

const named_function SUBAGENTS_FUNCTIONS[] = {{"subagentsNew", subagents_new},
                                        {"subagentsStart", subagents_start},
                                        {"subagentsStop", subagents_stop},
                                        {"subagentsStats", subagents_stats},
                                        {NULL, NULL}};
