/* fawn_queue. Its wake-ups are in wakeup.c. */
#include "binding.h"

/* queueNew(runtime, json): a handle. The queue's wake-ups are registered. */
static napi_value queue_new(napi_env env, napi_callback_info info) {
  call c;
  text json;
  fawn_queue handle;
  fawn_buf err;
  if (!begin(env, info, &c) || !text_at(&c, 1, &json)) return NULL;
  int32_t status = fawn_queue_new((fawn_runtime)number_at(&c, 0), json.data, json.len, &handle, &err);
  if (status == FAWN_OK) {
    status = wakeup_register(c.home, handle, &err);
    if (status != FAWN_OK) fawn_queue_free(handle);
  }
  return made(&c, status, KIND_QUEUE, handle, &err);
}

/* queueTake(queue, maxEvents): a JSON array of events, or FAWN_TIMEOUT, FAWN_INTERRUPTED, FAWN_CLOSED. Never waits. */
static napi_value queue_take(napi_env env, napi_callback_info info) {
  call c;
  fawn_buf out;
  if (!begin(env, info, &c)) return NULL;
  int32_t status = fawn_queue_take((fawn_queue)number_at(&c, 0), 0, (uint32_t)number_at(&c, 1), &out);
  return answer(&c, status, &out);
}

/* queueInterrupt(queue) */
static napi_value queue_interrupt(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(env, info, &c)) return NULL;
  return outcome(&c, fawn_queue_interrupt((fawn_queue)number_at(&c, 0)), NULL);
}

const named_function QUEUE_FUNCTIONS[] = {
    {"queueNew", queue_new}, {"queueTake", queue_take}, {"queueInterrupt", queue_interrupt}, {NULL, NULL}};
