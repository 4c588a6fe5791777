/* Texts and statuses between JavaScript and the library, with as few copies as Node-API allows: one each way. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

/* A buffer that one large text has made larger than this is not kept. */
#define KEEP_TEXT ((size_t)1 << 20)
#define FIRST_TEXT ((size_t)1 << 14)
/* The largest whole number up to which JavaScript has them all. */
#define MAX_SAFE_INTEGER ((INT64_C(1) << 53) - 1)

static void throw_if_none(napi_env env, const char *message) {
  bool pending = false;
  (void)napi_is_exception_pending(env, &pending);
  if (!pending) (void)napi_throw_error(env, NULL, message);
}

bool begin(napi_env env, napi_callback_info info, call *c) {
  c->env = env;
  c->argc = MAX_ARGS;
  if (napi_get_cb_info(env, info, &c->argc, c->argv, NULL, (void **)&c->home) != napi_ok) {
    throw_if_none(env, "fawn: the arguments cannot be read");
    return false;
  }
  return true;
}

bool number_at(const call *c, size_t at, const char *what, int64_t least, int64_t most, int64_t *out) {
  double number;
  if (at < c->argc && napi_get_value_double(c->env, c->argv[at], &number) == napi_ok && number >= (double)least &&
      number <= (double)most && number == (double)(int64_t)number) {
    *out = (int64_t)number;
    return true;
  }
  char message[128];
  (void)snprintf(message, sizeof message, "fawn: %s must be a whole number, %" PRId64 " to %" PRId64, what, least, most);
  (void)napi_throw_type_error(c->env, NULL, message);
  return false;
}

bool id_at(const call *c, size_t at, const char *what, uint64_t *out) {
  int64_t number;
  if (!number_at(c, at, what, 0, MAX_SAFE_INTEGER, &number)) return false;
  *out = (uint64_t)number;
  return true;
}

/* Makes room for so many bytes in the environment's buffer. */
static bool reserve(binding *home, size_t size) {
  if (home->text_size >= size && (home->text_size <= KEEP_TEXT || size > KEEP_TEXT)) return true;
  free(home->text);
  if (size < FIRST_TEXT) size = FIRST_TEXT;
  home->text = malloc(size);
  home->text_size = home->text ? size : 0;
  return home->text != NULL;
}

/* The bytes of a Uint8Array (a Buffer is one). False: it is none. */
static bool bytes_of(napi_env env, napi_value value, text *out) {
  bool is_array = false;
  napi_typedarray_type type;
  size_t len;
  void *data;
  if (napi_is_typedarray(env, value, &is_array) != napi_ok || !is_array) return false;
  if (napi_get_typedarray_info(env, value, &type, &len, &data, NULL, NULL) != napi_ok) return false;
  if (type != napi_uint8_array) return false;
  /* No bytes are empty text, which has no address. */
  *out = (text){len ? data : NULL, len};
  return true;
}

bool text_at(call *c, size_t at, text *out) {
  napi_env env = c->env;
  napi_value value = at < c->argc ? c->argv[at] : NULL;
  size_t units;
  /* Asked in this form the length is known without looking at the text. */
  if (value != NULL && napi_get_value_string_utf16(env, value, NULL, 0, &units) == napi_ok) {
    /* A unit of UTF-16 is at most 3 bytes of UTF-8. With room for that the engine writes without measuring first; of the
     * memory only what is written is ever touched. */
    if (!reserve(c->home, 3 * units + 1)) {
      (void)napi_throw_error(env, NULL, "fawn: no memory for a text");
      return false;
    }
    if (napi_get_value_string_utf8(env, value, c->home->text, c->home->text_size, &out->len) != napi_ok) {
      throw_if_none(env, "fawn: a text cannot be read");
      return false;
    }
    out->data = c->home->text;
    return true;
  }
  if (value != NULL && bytes_of(env, value, out)) return true;
  (void)napi_throw_type_error(env, NULL, "fawn: a text must be a string or a Uint8Array");
  return false;
}

bool text_copy_at(call *c, size_t at, text *out) {
  if (!text_at(c, at, out)) return false;
  char *copy = malloc(out->len + 1);
  if (copy == NULL) {
    (void)napi_throw_error(c->env, NULL, "fawn: no memory for a text");
    return false;
  }
  if (out->len > 0) memcpy(copy, out->data, out->len);
  out->data = copy;
  return true;
}

/* Whether all bytes are below 128; eight at a time. */
static bool is_ascii(const char *data, size_t len) {
  const uint64_t high = UINT64_C(0x8080808080808080);
  uint64_t seen = 0, word;
  size_t at = 0;
  for (; at + 32 <= len; at += 32) {
    uint64_t four[4];
    memcpy(four, data + at, sizeof four);
    if ((four[0] | four[1] | four[2] | four[3]) & high) return false;
  }
  for (; at + sizeof word <= len; at += sizeof word) {
    memcpy(&word, data + at, sizeof word);
    seen |= word;
  }
  for (; at < len; at++) seen |= (uint64_t)(unsigned char)data[at];
  return (seen & high) == 0;
}

napi_value string_of(napi_env env, const char *data, size_t len) {
  napi_value string = NULL;
  /* ASCII, which most JSON is, is copied as it is; other text is decoded. */
  napi_status status = data != NULL && is_ascii(data, len)
                           ? napi_create_string_latin1(env, data, len, &string)
                           : napi_create_string_utf8(env, data ? data : "", len, &string);
  if (status != napi_ok) {
    throw_if_none(env, "fawn: an answer is too long for a JavaScript string");
    return NULL;
  }
  return string;
}

/* Throws what JavaScript makes of a status and, if there is one, an error object. Answers NULL. */
static napi_value fail(call *c, int32_t status, const fawn_buf *err) {
  napi_env env = c->env;
  napi_value make, global, error, argv[2];
  if (napi_create_int32(env, status, &argv[0]) != napi_ok) goto broken;
  argv[1] = string_of(env, err ? err->data : NULL, err ? err->len : 0);
  if (argv[1] == NULL) goto broken;
  if (napi_get_reference_value(env, c->home->make_error, &make) != napi_ok) goto broken;
  if (napi_get_global(env, &global) != napi_ok) goto broken;
  if (napi_call_function(env, global, make, 2, argv, &error) != napi_ok) goto broken;
  if (napi_throw(env, error) == napi_ok) return NULL;
broken:
  throw_if_none(env, fawn_status_name(status));
  return NULL;
}

napi_value answer(call *c, int32_t status, fawn_buf *buf) {
  napi_value value = NULL;
  if (status == FAWN_OK) {
    value = string_of(c->env, buf->data, buf->len);
  } else if (status > 0) {
    if (napi_create_int32(c->env, status, &value) != napi_ok) value = NULL;
  } else {
    (void)fail(c, status, buf);
  }
  fawn_buf_free(buf);
  return value;
}

napi_value outcome(call *c, int32_t status, fawn_buf *err) {
  napi_value value = NULL;
  if (status < 0) (void)fail(c, status, err);
  else if (napi_create_int32(c->env, status, &value) != napi_ok) value = NULL;
  if (err != NULL) fawn_buf_free(err);
  return value;
}

napi_value made(call *c, int32_t status, handle_kind kind, uint64_t handle, fawn_buf *err) {
  napi_value value = NULL;
  if (status != FAWN_OK) return outcome(c, status, err);
  if (!handles_add(&c->home->handles, handle, kind)) {
    handle_free(handle, kind);
    (void)napi_throw_error(c->env, NULL, "fawn: no memory for a handle");
    return NULL;
  }
  if (napi_create_int64(c->env, (int64_t)handle, &value) != napi_ok) return NULL;
  return value;
}

napi_value release(napi_env env, napi_callback_info info) {
  call c;
  handle_kind kind;
  uint64_t handle;
  if (!begin(env, info, &c) || !id_at(&c, 0, "a handle", &handle)) return NULL;
  if (handles_remove(&c.home->handles, handle, &kind)) handle_free(handle, kind);
  return NULL;
}
