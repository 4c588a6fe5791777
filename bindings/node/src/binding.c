/* Loads the addon into an environment, and cleans up at the environment's end. */
#include "binding.h"

#include <stdlib.h>

/* The environment ends: no more JavaScript. Runs before Node takes the thread-safe function apart, since it was registered
 * after that was made. */
static void on_end(void *data) {
  binding *home = data;
  wakeup_stop(home);
  handles_free_all(&home->handles);
  wakeup_discard(home);
}

/* The last that is heard of an environment. */
static void on_finalize(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  binding *home = data;
  lock_destroy(&home->lock);
  free(home->text);
  free(home);
}

/* connect(makeError, onReady): the two functions that the addon calls. */
static napi_value connect(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(env, info, &c)) return NULL;
  if (c.home->make_error != NULL || c.argc < 2 ||
      napi_create_reference(env, c.argv[0], 1, &c.home->make_error) != napi_ok ||
      napi_create_reference(env, c.argv[1], 1, &c.home->on_ready) != napi_ok) {
    (void)napi_throw_error(env, NULL, "fawn: connect is called once, with two functions");
  }
  return NULL;
}

static const named_function BINDING_FUNCTIONS[] = {{"connect", connect}, {"release", release}, {NULL, NULL}};

static bool export_functions(napi_env env, binding *home, napi_value exports, const named_function *functions) {
  for (; functions->name != NULL; functions++) {
    napi_value value;
    if (napi_create_function(env, functions->name, NAPI_AUTO_LENGTH, functions->run, home, &value) != napi_ok ||
        napi_set_named_property(env, exports, functions->name, value) != napi_ok) {
      return false;
    }
  }
  return true;
}

NAPI_MODULE_INIT(/* napi_env env, napi_value exports */) {
  const named_function *const lists[] = {BINDING_FUNCTIONS,   WAKEUP_FUNCTIONS,   META_FUNCTIONS,   RUNTIME_FUNCTIONS,
                                   SUBAGENTS_FUNCTIONS, ASSEMBLY_FUNCTIONS, THREAD_FUNCTIONS, QUEUE_FUNCTIONS,
                                   RUN_FUNCTIONS,       CALL_FUNCTIONS};
  binding *home = calloc(1, sizeof *home);
  if (home == NULL) {
    (void)napi_throw_error(env, NULL, "fawn: no memory");
    return NULL;
  }
  home->env = env;
  home->alive = home->armed = true;
  lock_init(&home->lock);
  bool good = napi_set_instance_data(env, home, on_finalize, NULL) == napi_ok;
  if (!good) {
    lock_destroy(&home->lock);
    free(home);
  }
  good = good && wakeup_start(home) && napi_add_env_cleanup_hook(env, on_end, home) == napi_ok;
  for (size_t i = 0; good && i < sizeof lists / sizeof *lists; i++) {
    good = export_functions(env, home, exports, lists[i]);
  }
  if (!good) {
    (void)napi_throw_error(env, NULL, "fawn: the addon could not be set up");
    return NULL;
  }
  return exports;
}
