/* Functions that need no runtime. */
#include <stdlib.h>

#include "binding.h"

/* abiVersion(): the number that the library serves. */
static napi_value abi_version(napi_env env, napi_callback_info info) {
  napi_value value;
  (void)info;
  return napi_create_uint32(env, fawn_abi_version(), &value) == napi_ok ? value : NULL;
}

/* version(): the library's, "0.1.0". */
static napi_value version(napi_env env, napi_callback_info info) {
  napi_value value;
  (void)info;
  return napi_create_string_utf8(env, fawn_version(), NAPI_AUTO_LENGTH, &value) == napi_ok ? value : NULL;
}

/* statusName(status) */
static napi_value status_name(napi_env env, napi_callback_info info) {
  call c;
  int64_t status;
  napi_value value;
  if (!begin(env, info, &c) || !number_at(&c, 0, "a status", INT32_MIN, INT32_MAX, &status)) return NULL;
  const char *name = fawn_status_name((int32_t)status);
  return napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &value) == napi_ok ? value : NULL;
}

/* describe(topic) */
static napi_value describe(napi_env env, napi_callback_info info) {
  call c;
  text topic;
  fawn_buf out;
  if (!begin(env, info, &c) || !text_at(&c, 0, &topic)) return NULL;
  int32_t status = fawn_describe(topic.data, topic.len, &out);
  return answer(&c, status, &out);
}

/* reduce(channel, json) */
static napi_value reduce(napi_env env, napi_callback_info info) {
  call c;
  text channel, json;
  fawn_buf out;
  if (!begin(env, info, &c) || !text_copy_at(&c, 0, &channel)) return NULL;
  napi_value value = NULL;
  if (text_at(&c, 1, &json)) {
    int32_t status = fawn_reduce(channel.data, channel.len, json.data, json.len, &out);
    value = answer(&c, status, &out);
  }
  free((char *)channel.data);
  return value;
}

/* convert(json) */
static napi_value convert(napi_env env, napi_callback_info info) {
  call c;
  text json;
  fawn_buf out;
  if (!begin(env, info, &c) || !text_at(&c, 0, &json)) return NULL;
  int32_t status = fawn_messages_convert(json.data, json.len, &out);
  return answer(&c, status, &out);
}

/* diff(json) */
static napi_value diff(napi_env env, napi_callback_info info) {
  call c;
  text json;
  fawn_buf out;
  if (!begin(env, info, &c) || !text_at(&c, 0, &json)) return NULL;
  int32_t status = fawn_descriptor_diff(json.data, json.len, &out);
  return answer(&c, status, &out);
}

/* diagram(json) */
static napi_value diagram(napi_env env, napi_callback_info info) {
  call c;
  text json;
  fawn_buf out;
  if (!begin(env, info, &c) || !text_at(&c, 0, &json)) return NULL;
  int32_t status = fawn_descriptor_diagram(json.data, json.len, &out);
  return answer(&c, status, &out);
}

const named_function META_FUNCTIONS[] = {
    {"abiVersion", abi_version}, {"version", version}, {"statusName", status_name}, {"describe", describe},
    {"reduce", reduce},          {"convert", convert}, {"diff", diff},              {"diagram", diagram},
    {NULL, NULL}};
