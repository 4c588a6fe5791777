/* What the files of the addon share: the state of one environment (the main thread, or one worker), and how text,
 * handles and statuses cross between JavaScript and the library.
 *
 * The addon decides nothing. Each function takes numbers and texts, makes one call of fawn.h, and answers a text, a
 * handle, or a positive status; a negative status is thrown as what lib/error.cjs makes of it. */
#ifndef FAWN_NODE_BINDING_H
#define FAWN_NODE_BINDING_H

#define NAPI_VERSION 8
#include <fawn.h>
#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handles.h"
#include "lock.h"

/* The most arguments that a function of the addon takes. */
#define MAX_ARGS 5

struct wakeup;

/* One environment. Everything but what `lock` guards belongs to its JavaScript thread. */
typedef struct binding {
  napi_env env;
  /* JavaScript functions, set by `connect`: makes an Error of (status, text); is told that queues may be ready. */
  napi_ref make_error, on_ready;
  /* What this environment has made and not freed, for the end of the environment. */
  handle_set handles;
  /* Where texts from JavaScript are written before a call; kept from call to call. */
  char *text;
  size_t text_size;

  /* Wake-ups come on OS threads of the library. From here on `lock` guards. */
  lock lock;
  /* The environment can still be told. */
  bool alive;
  /* The next wake-up has to tell JavaScript; otherwise it is going to ask by itself. */
  bool armed;
  napi_threadsafe_function tell;
  /* Queues that have something to take, as far as JavaScript has not been told. */
  struct wakeup *ready;
} binding;

/* One call of a function of the addon. */
typedef struct call {
  napi_env env;
  binding *home;
  size_t argc;
  napi_value argv[MAX_ARGS];
} call;

/* A function of the addon, by its name in JavaScript. */
typedef struct named_function {
  const char *name;
  napi_callback run;
} named_function;

/* Reads what every function needs. False: an exception is pending. */
bool begin(napi_env env, napi_callback_info info, call *c);

/* The whole number at a place, within these bounds. Nothing is rounded or converted: false, and a TypeError that says `what`
 * is meant is pending. */
bool number_at(const call *c, size_t at, const char *what, int64_t least, int64_t most, int64_t *out);

/* The handle or call id at a place: 0 or more, as JavaScript holds it exactly. */
bool id_at(const call *c, size_t at, const char *what, uint64_t *out);

/* A text as the library takes it. */
typedef struct text {
  const char *data;
  size_t len;
} text;

/* The text at a place: a string, or the bytes of a Uint8Array. False: an exception is pending.
 * A string is copied into the environment's one buffer: good until the next text_at. */
bool text_at(call *c, size_t at, text *out);

/* The same where two texts are needed at once: copied to memory that the caller frees. */
bool text_copy_at(call *c, size_t at, text *out);

/* A JavaScript string of UTF-8. NULL: an exception is pending. */
napi_value string_of(napi_env env, const char *data, size_t len);

/* Answers a call that fills a buffer: a string for FAWN_OK, a number for other outcomes, else throws. Frees `buf`. */
napi_value answer(call *c, int32_t status, fawn_buf *buf);

/* Answers a call whose status is all it has, and an error object at most. */
napi_value outcome(call *c, int32_t status, fawn_buf *err);

/* Answers a call that made a handle, and notes it down. */
napi_value made(call *c, int32_t status, handle_kind kind, uint64_t handle, fawn_buf *err);

/* Frees the handle at a place and strikes it off. Answers undefined. */
napi_value release(napi_env env, napi_callback_info info);

/* Registers the hook of a queue that was just made. */
int32_t wakeup_register(binding *home, fawn_queue queue, fawn_buf *err);
/* Makes the thread-safe function. False: an exception is pending. */
bool wakeup_start(binding *home);
/* From here on no wake-up touches JavaScript. May be called twice. */
void wakeup_stop(binding *home);
/* Lets go of what the hooks that have ended left behind. All hooks must have ended. */
void wakeup_discard(binding *home);

extern const named_function META_FUNCTIONS[], RUNTIME_FUNCTIONS[], SUBAGENTS_FUNCTIONS[], ASSEMBLY_FUNCTIONS[],
    THREAD_FUNCTIONS[], QUEUE_FUNCTIONS[], RUN_FUNCTIONS[], CALL_FUNCTIONS[], WAKEUP_FUNCTIONS[];

#endif
