/* Host calls: what the host tells while it works on one, and its answer. */
#include "binding.h"

typedef int32_t (*call_function)(fawn_runtime, uint64_t, const char *, size_t, fawn_buf *);

static napi_value tell(napi_env env, napi_callback_info info, call_function function) {
  call c;
  fawn_runtime runtime;
  uint64_t id;
  text json;
  fawn_buf err;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a runtime", &runtime) || !id_at(&c, 1, "a call id", &id) ||
      !text_at(&c, 2, &json)) {
    return NULL;
  }
  int32_t status = function(runtime, id, json.data, json.len, &err);
  return outcome(&c, status, &err);
}

/* callEmit(runtime, callId, json): FAWN_OK or FAWN_GONE. */
static napi_value call_emit(napi_env env, napi_callback_info info) { return tell(env, info, fawn_call_emit); }

/* callFinish(runtime, callId, json): FAWN_OK or FAWN_GONE. */
static napi_value call_finish(napi_env env, napi_callback_info info) { return tell(env, info, fawn_call_finish); }

const named_function CALL_FUNCTIONS[] = {{"callEmit", call_emit}, {"callFinish", call_finish}, {NULL, NULL}};
