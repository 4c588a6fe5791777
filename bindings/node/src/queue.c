/* fawn_queue. Its wake-ups are in wakeup.c. */
#include "binding.h"

/* queueNew(runtime, json): a handle. The queue's wake-ups are registered. */
static napi_value queue_new(napi_env env, napi_callback_info info) {
  call c;
  fawn_runtime runtime;
  text json;
  fawn_queue handle;
  fawn_buf err;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a runtime", &runtime) || !text_at(&c, 1, &json)) return NULL;
  int32_t status = fawn_queue_new(runtime, json.data, json.len, &handle, &err);
  if (status == FAWN_OK) {
    status = wakeup_register(c.home, handle, &err);
    if (status != FAWN_OK) fawn_queue_free(handle);
  }
  return made(&c, status, KIND_QUEUE, handle, &err);
}

/* queueTake(queue, maxEvents): a JSON array of events, or FAWN_TIMEOUT, FAWN_INTERRUPTED, FAWN_CLOSED. Never waits. */
static napi_value queue_take(napi_env env, napi_callback_info info) {
  call c;
  fawn_queue queue;
  int64_t max;
  fawn_buf out;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a queue", &queue) || !number_at(&c, 1, "max", 0, UINT32_MAX, &max)) return NULL;
  int32_t status = fawn_queue_take(queue, 0, (uint32_t)max, &out);
  return answer(&c, status, &out);
}

/* queueInterrupt(queue) */
static napi_value queue_interrupt(napi_env env, napi_callback_info info) {
  call c;
  fawn_queue queue;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a queue", &queue)) return NULL;
  return outcome(&c, fawn_queue_interrupt(queue), NULL);
}

const named_function QUEUE_FUNCTIONS[] = {
    {"queueNew", queue_new}, {"queueTake", queue_take}, {"queueInterrupt", queue_interrupt}, {NULL, NULL}};
