/* Wake-ups: from OS threads of the library to the environment's JavaScript thread.
 *
 * All queues of an environment share one thread-safe function. A hook only puts its queue on a list; the first one after
 * JavaScript was last seen idle tells it. JavaScript then takes the list (`ready`), works for a bounded time, and asks
 * again in the next turn of its loop, until the list is empty; only then do wake-ups tell again. So a busy library costs one
 * call across threads for each time of idleness, and never keeps the loop from its other work.
 *
 * The end: `alive` is cleared under the lock before the environment goes away, so that no hook ever touches a thread-safe
 * function that Node is taking apart. Then the queues are freed, after which no hook runs. */
#include <stdlib.h>

#include "binding.h"

/* The hook of one queue. It lives until the library has called its drop function and it is on no list. */
typedef struct wakeup {
  binding *home;
  fawn_queue queue;
  struct wakeup *next;
  bool listed, dropped;
} wakeup;

static void on_wakeup(uintptr_t user_data) {
  wakeup *hook = (wakeup *)user_data;
  binding *home = hook->home;
  lock_take(&home->lock);
  if (!hook->listed) {
    hook->listed = true;
    hook->next = home->ready;
    home->ready = hook;
  }
  if (home->alive && home->armed) {
    home->armed = false;
    /* Cannot block and cannot be refused: its queue has no bound and the function is alive. */
    (void)napi_call_threadsafe_function(home->tell, NULL, napi_tsfn_nonblocking);
  }
  lock_give(&home->lock);
}

static void on_drop(uintptr_t user_data) {
  wakeup *hook = (wakeup *)user_data;
  binding *home = hook->home;
  lock_take(&home->lock);
  hook->dropped = true;
  bool last = !hook->listed;
  lock_give(&home->lock);
  if (last) free(hook);
}

/* Runs on the JavaScript thread. During the end of the environment `env` is NULL and nothing may be touched. */
static void on_told(napi_env env, napi_value callback, void *context, void *data) {
  (void)callback;
  (void)data;
  if (env == NULL) return;
  binding *home = context;
  napi_value on_ready, global, result;
  if (home->on_ready == NULL) return;
  if (napi_get_reference_value(env, home->on_ready, &on_ready) != napi_ok) return;
  if (napi_get_global(env, &global) != napi_ok) return;
  /* What it throws is left pending: Node reports it as an uncaught exception. */
  (void)napi_call_function(env, global, on_ready, 0, NULL, &result);
}

bool wakeup_start(binding *home) {
  napi_value name;
  return napi_create_string_utf8(home->env, "fawn", NAPI_AUTO_LENGTH, &name) == napi_ok &&
         napi_create_threadsafe_function(home->env, NULL, NULL, name, 0, 1, NULL, NULL, home, on_told,
                                         &home->tell) == napi_ok &&
         /* Idle queues keep no process alive; `hold` does while something is waited for. */
         napi_unref_threadsafe_function(home->env, home->tell) == napi_ok;
}

void wakeup_stop(binding *home) {
  lock_take(&home->lock);
  home->alive = false;
  lock_give(&home->lock);
}

/* Takes the list. The hooks on it that were dropped are freed, unless they are also wanted in `living`. */
static size_t take_ready(binding *home, bool may_arm, wakeup **list) {
  size_t count = 0;
  lock_take(&home->lock);
  *list = home->ready;
  home->ready = NULL;
  for (wakeup *hook = *list; hook != NULL; hook = hook->next) count++;
  if (count == 0 && may_arm) home->armed = true;
  lock_give(&home->lock);
  return count;
}

/* Takes a hook off the list that take_ready gave, and says whether its queue is still there. */
static bool unlist(binding *home, wakeup *hook) {
  lock_take(&home->lock);
  hook->listed = false;
  bool dropped = hook->dropped;
  lock_give(&home->lock);
  if (dropped) free(hook);
  return !dropped;
}

void wakeup_discard(binding *home) {
  wakeup *hook;
  (void)take_ready(home, false, &hook);
  while (hook != NULL) {
    wakeup *next = hook->next;
    (void)unlist(home, hook);
    hook = next;
  }
}

int32_t wakeup_register(binding *home, fawn_queue queue, fawn_buf *err) {
  wakeup *hook = calloc(1, sizeof *hook);
  if (hook == NULL) {
    *err = (fawn_buf){NULL, 0, 0};
    return FAWN_ERR_INTERNAL;
  }
  hook->home = home;
  hook->queue = queue;
  int32_t status = fawn_queue_set_wakeup(queue, on_wakeup, (uintptr_t)hook, on_drop, err);
  if (status != FAWN_OK) free(hook);
  return status;
}

/* ready(mayArm): the handles of the queues that have become ready. If there are none and `mayArm` is true, the next
 * wake-up calls `on_ready`; otherwise the caller has to ask again. */
static napi_value ready(napi_env env, napi_callback_info info) {
  call c;
  bool may_arm = false;
  napi_value list, handle;
  wakeup *hook;
  if (!begin(env, info, &c)) return NULL;
  if (c.argc > 0) (void)napi_get_value_bool(env, c.argv[0], &may_arm);
  size_t count = take_ready(c.home, may_arm, &hook);
  bool good = napi_create_array_with_length(env, count, &list) == napi_ok;
  uint32_t place = 0;
  while (hook != NULL) {
    /* Once it is unlisted the hook may be listed again, or freed: read it before. */
    wakeup *next = hook->next;
    fawn_queue queue = hook->queue;
    (void)unlist(c.home, hook);
    good = good && napi_create_int64(env, (int64_t)queue, &handle) == napi_ok &&
           napi_set_element(env, list, place++, handle) == napi_ok;
    hook = next;
  }
  return good ? list : NULL;
}

/* hold(on): whether what is pending keeps the loop alive. */
static napi_value hold(napi_env env, napi_callback_info info) {
  call c;
  bool on = false;
  if (!begin(env, info, &c)) return NULL;
  if (c.argc > 0) (void)napi_get_value_bool(env, c.argv[0], &on);
  if (on) (void)napi_ref_threadsafe_function(env, c.home->tell);
  else (void)napi_unref_threadsafe_function(env, c.home->tell);
  return NULL;
}

/* stop(): the loop turns no more (the process or the worker is exiting), so nobody is to be told. */
static napi_value stop(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(env, info, &c)) return NULL;
  wakeup_stop(c.home);
  return NULL;
}

const named_function WAKEUP_FUNCTIONS[] = {{"ready", ready}, {"hold", hold}, {"stop", stop}, {NULL, NULL}};
