/* fawn_thread. */
#include "binding.h"

/* threadOpen(runtime, json): a handle. */
static napi_value thread_open(napi_env env, napi_callback_info info) {
  call c;
  fawn_runtime runtime;
  text json;
  fawn_thread handle;
  fawn_buf err;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a runtime", &runtime) || !text_at(&c, 1, &json)) return NULL;
  int32_t status = fawn_thread_open(runtime, json.data, json.len, &handle, &err);
  return made(&c, status, KIND_THREAD, handle, &err);
}

/* A function of a thread that takes a text and answers one. */
typedef int32_t (*thread_call)(fawn_thread, const char *, size_t, fawn_buf *);

static napi_value ask(napi_env env, napi_callback_info info, thread_call function) {
  call c;
  fawn_thread thread;
  text json;
  fawn_buf out;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a thread", &thread) || !text_at(&c, 1, &json)) return NULL;
  int32_t status = function(thread, json.data, json.len, &out);
  return answer(&c, status, &out);
}

/* threadUpdate(thread, json) */
static napi_value thread_update(napi_env env, napi_callback_info info) { return ask(env, info, fawn_thread_update); }

/* threadState(thread, json) */
static napi_value thread_state(napi_env env, napi_callback_info info) { return ask(env, info, fawn_thread_state); }

/* threadHistory(thread, json) */
static napi_value thread_history(napi_env env, napi_callback_info info) { return ask(env, info, fawn_thread_history); }

/* threadGoal(thread, json) */
static napi_value thread_goal(napi_env env, napi_callback_info info) { return ask(env, info, fawn_thread_goal); }

const named_function THREAD_FUNCTIONS[] = {{"threadOpen", thread_open},
                                     {"threadUpdate", thread_update},
                                     {"threadState", thread_state},
                                     {"threadHistory", thread_history},
                                     {"threadGoal", thread_goal},
                                     {NULL, NULL}};
