/* Everything a caller can get wrong: each mistake is an answer that says so, and never the end of the process. */

#include "check.h"

/* One of each; the run waits for its model, which is this program. */
static objects o;
static uint64_t call_id;

/* How many handles are made up at random. Fewer on small stacks, where each call starts an OS thread. */
static int made_up_handles = 2000;

/* Every function that takes JSON, with everything else right. */
static int32_t json_reduce(const char *json, size_t len, fawn_buf *buf) {
  return fawn_reduce("messages", FAWN_NTS, json, len, buf);
}
static int32_t json_convert(const char *json, size_t len, fawn_buf *buf) {
  return fawn_messages_convert(json, len, buf);
}
static int32_t json_runtime(const char *json, size_t len, fawn_buf *buf) {
  fawn_runtime made = 7;
  int32_t status = fawn_runtime_new(FAWN_ABI_VERSION, json, len, &made, buf);
  CHECK((status == FAWN_OK) == (made != 0));
  fawn_runtime_free(made);
  return status;
}
static int32_t json_runtime_submit(const char *json, size_t len, fawn_buf *buf) {
  return fawn_runtime_submit(o.runtime, json, len, buf);
}
static int32_t json_subagents(const char *json, size_t len, fawn_buf *buf) {
  fawn_subagents made = 7;
  int32_t status = fawn_subagents_new(o.runtime, json, len, &made, buf);
  CHECK((status == FAWN_OK) == (made != 0));
  fawn_subagents_free(made);
  return status;
}
static int32_t json_assembly(const char *json, size_t len, fawn_buf *buf) {
  fawn_assembly made = 7;
  int32_t status = fawn_assembly_new(o.runtime, json, len, &made, buf);
  CHECK((status == FAWN_OK) == (made != 0));
  fawn_assembly_free(made);
  return status;
}
static int32_t json_thread(const char *json, size_t len, fawn_buf *buf) {
  fawn_thread made = 7;
  int32_t status = fawn_thread_open(o.runtime, json, len, &made, buf);
  CHECK((status == FAWN_OK) == (made != 0));
  fawn_thread_free(made);
  return status;
}
static int32_t json_update(const char *json, size_t len, fawn_buf *buf) {
  return fawn_thread_update(o.thread, json, len, buf);
}
static int32_t json_state(const char *json, size_t len, fawn_buf *buf) {
  return fawn_thread_state(o.thread, json, len, buf);
}
static int32_t json_history(const char *json, size_t len, fawn_buf *buf) {
  return fawn_thread_history(o.thread, json, len, buf);
}
static int32_t json_goal(const char *json, size_t len, fawn_buf *buf) {
  return fawn_thread_goal(o.thread, json, len, buf);
}
static int32_t json_queue(const char *json, size_t len, fawn_buf *buf) {
  fawn_queue made = 7;
  int32_t status = fawn_queue_new(o.runtime, json, len, &made, buf);
  CHECK((status == FAWN_OK) == (made != 0));
  fawn_queue_free(made);
  return status;
}
static int32_t json_run(const char *json, size_t len, fawn_buf *buf) {
  fawn_run made = 7;
  int32_t status = fawn_run_start(o.assembly, o.thread, o.queue, json, len, &made, buf);
  CHECK((status == FAWN_OK) == (made != 0));
  fawn_run_free(made);
  return status;
}
static int32_t json_run_submit(const char *json, size_t len, fawn_buf *buf) {
  return fawn_run_submit(o.run, json, len, buf);
}
static int32_t json_emit(const char *json, size_t len, fawn_buf *buf) {
  return fawn_call_emit(o.runtime, call_id, json, len, buf);
}
static int32_t json_finish(const char *json, size_t len, fawn_buf *buf) {
  return fawn_call_finish(o.runtime, call_id, json, len, buf);
}

typedef struct json_function {
  const char *name;
  int32_t (*call)(const char *json, size_t len, fawn_buf *buf);
  /* A document with one member that no function knows; NULL where such members are let through. */
  const char *unknown_member;
} json_function;

#define UNKNOWN "{\"no_such_member\":1}"

static const json_function json_functions[] = {
    {"fawn_reduce", json_reduce, "{\"existing\":null,\"updates\":[],\"no_such_member\":1}"},
    {"fawn_messages_convert", json_convert, "{\"messages\":[],\"no_such_member\":1}"},
    {"fawn_descriptor_diff", fawn_descriptor_diff, UNKNOWN},
    {"fawn_descriptor_diagram", fawn_descriptor_diagram, NULL},
    {"fawn_runtime_new", json_runtime, UNKNOWN},
    {"fawn_runtime_submit", json_runtime_submit, "{\"op\":\"delete_thread\",\"thread_id\":\"t\",\"no_such_member\":1}"},
    {"fawn_subagents_new", json_subagents, UNKNOWN},
    {"fawn_assembly_new", json_assembly, UNKNOWN},
    {"fawn_thread_open", json_thread, UNKNOWN},
    {"fawn_thread_update", json_update, UNKNOWN},
    {"fawn_thread_state", json_state, UNKNOWN},
    {"fawn_thread_history", json_history, UNKNOWN},
    {"fawn_thread_goal", json_goal, "{\"op\":\"get\",\"no_such_member\":1}"},
    {"fawn_queue_new", json_queue, UNKNOWN},
    {"fawn_run_start", json_run, UNKNOWN},
    {"fawn_run_submit", json_run_submit, "{\"op\":\"cancel\",\"no_such_member\":1}"},
    {"fawn_call_emit", json_emit, UNKNOWN},
    {"fawn_call_finish", json_finish, UNKNOWN},
};
enum { JSON_FUNCTIONS = sizeof json_functions / sizeof json_functions[0] };

/* Calls every function with a text, and finds the same refusal each time, in the error object too. */
static void all_refuse(const char *json, size_t len, int32_t status, const char *needle) {
  for (int n = 0; n < JSON_FUNCTIONS; n++) {
    fawn_buf buf = rubbish();
    int32_t found = json_functions[n].call(json, len, &buf);
    if (found != status) {
      fprintf(stderr, "%s answers %s, not %s: %s\n", json_functions[n].name, fawn_status_name(found),
              fawn_status_name(status), buf.data ? buf.data : "NULL");
      exit(1);
    }
    check_error(__FILE__, __LINE__, &buf, status, needle);
    CHECK_STATUS(json_functions[n].call(json, len, NULL), status);
  }
}

static void texts_that_are_none(void) {
  all_refuse(NULL, 5, FAWN_ERR_ARGUMENT, "NULL");
  all_refuse(NULL, FAWN_NTS, FAWN_ERR_ARGUMENT, "NULL");
  all_refuse(NULL, 0, FAWN_ERR_JSON_SYNTAX, "empty");
  all_refuse("", FAWN_NTS, FAWN_ERR_JSON_SYNTAX, "empty");
  all_refuse(" \n", 2, FAWN_ERR_JSON_SYNTAX, "empty");
  all_refuse("{\"a\":\"\xff\"}", FAWN_NTS, FAWN_ERR_NOT_UTF8, "offset 6");
  all_refuse("{\"\xed\xa0\x80\":1}", FAWN_NTS, FAWN_ERR_NOT_UTF8, "offset 2");
  /* Refused before a byte is read: there are only two. */
  all_refuse("{}", ((size_t)1 << 30) + 1, FAWN_ERR_TOO_LARGE, "1 GiB");
  all_refuse("{}", SIZE_MAX / 2, FAWN_ERR_TOO_LARGE, "1 GiB");
  all_refuse("{}", SIZE_MAX - 1, FAWN_ERR_TOO_LARGE, "1 GiB");
}

static void json_that_is_none(void) {
  const char whole[] = "{\"x-a\":[1,{\"b\":\"c\\u00e9\"},true,null,-1.5e3]}";
  for (size_t len = 1; len < strlen(whole); len++) {
    all_refuse(whole, len, FAWN_ERR_JSON_SYNTAX, "column");
  }
  all_refuse("{} {}", FAWN_NTS, FAWN_ERR_JSON_SYNTAX, "column");
  all_refuse("{}\0", 3, FAWN_ERR_JSON_SYNTAX, "column");
  all_refuse("{'a':1}", FAWN_NTS, FAWN_ERR_JSON_SYNTAX, "column");
  all_refuse("NaN", FAWN_NTS, FAWN_ERR_JSON_SYNTAX, "column");
  all_refuse("{\"x-a\":01}", FAWN_NTS, FAWN_ERR_JSON_SYNTAX, "column");
}

static void json_that_is_deep(void) {
  enum { DEPTH = 100000 };
  char *json = malloc(7 * DEPTH);
  CHECK(json != NULL);
  memset(json, '[', DEPTH);
  all_refuse(json, DEPTH, FAWN_ERR_JSON_DEPTH, "128");
  memset(json + DEPTH, ']', DEPTH);
  all_refuse(json, 2 * DEPTH, FAWN_ERR_JSON_DEPTH, "128");
  for (int n = 0; n < DEPTH; n++) {
    memcpy(json + 7 * n, "{\"x-a\":", 7);
  }
  all_refuse(json, 7 * DEPTH, FAWN_ERR_JSON_DEPTH, "128");
  free(json);
}

/* As deep as is allowed, where it is dropped: in a member of the caller's own. */
static void json_that_is_as_deep_as_allowed(void) {
  char json[300] = "{\"x-a\":";
  char *end = json + strlen(json);
  memset(end, '[', 126);
  memset(end + 126, ']', 126);
  strcpy(end + 252, "}");
  fawn_buf buf;
  fawn_runtime runtime;
  CHECK_EMPTY(fawn_runtime_new(FAWN_ABI_VERSION, json, FAWN_NTS, &runtime, &buf), buf, FAWN_OK);
  fawn_runtime_free(runtime);
}

static void members_and_types(void) {
  for (int n = 0; n < JSON_FUNCTIONS; n++) {
    const json_function *f = &json_functions[n];
    fawn_buf buf = rubbish();
    if (f->unknown_member != NULL) {
      CHECK_ERROR(f->call(f->unknown_member, FAWN_NTS, &buf), buf, FAWN_ERR_UNKNOWN_MEMBER,
                  "\"path\":\"/no_such_member\"");
    }
    CHECK_ERROR(f->call("[]", 2, &buf), buf, FAWN_ERR_WRONG_TYPE, "");
    CHECK_ERROR(f->call("17", 2, &buf), buf, FAWN_ERR_WRONG_TYPE, "");
    CHECK_ERROR(f->call("null", 4, &buf), buf, FAWN_ERR_WRONG_TYPE, "");
  }
}

/* Every function that takes a handle says that this one is none of its own. */
static void all_refuse_handle(uint64_t handle, const objects *right) {
  fawn_buf buf = rubbish();
  uint64_t made = 7;
#define REFUSED(call) CHECK_ERROR(call, buf, FAWN_ERR_HANDLE, "\"code\":\"handle\"")
  if (handle != right->runtime) {
    REFUSED(fawn_runtime_submit(handle, "{}", 2, &buf));
    REFUSED(fawn_runtime_stats(handle, &buf));
    REFUSED(fawn_runtime_shutdown(handle, -1, &buf));
    REFUSED(fawn_subagents_new(handle, "{}", 2, &made, &buf));
    CHECK(made == 0);
    made = 7;
    REFUSED(fawn_assembly_new(handle, "{}", 2, &made, &buf));
    CHECK(made == 0);
    made = 7;
    REFUSED(fawn_thread_open(handle, "{}", 2, &made, &buf));
    CHECK(made == 0);
    made = 7;
    REFUSED(fawn_queue_new(handle, "{}", 2, &made, &buf));
    CHECK(made == 0);
    REFUSED(fawn_call_emit(handle, 1, "{}", 2, &buf));
    REFUSED(fawn_call_finish(handle, 1, "{}", 2, &buf));
    fawn_runtime_free(handle);
  }
  REFUSED(fawn_subagents_start(handle, &buf));
  REFUSED(fawn_subagents_stop(handle, -1, &buf));
  REFUSED(fawn_subagents_stats(handle, &buf));
  fawn_subagents_free(handle);
  if (handle != right->assembly) {
    REFUSED(fawn_assembly_descriptor(handle, &buf));
    made = 7;
    REFUSED(fawn_run_start(handle, right->thread, right->queue, "{}", 2, &made, &buf));
    CHECK(made == 0);
    fawn_assembly_free(handle);
  }
  if (handle != right->thread) {
    REFUSED(fawn_thread_update(handle, "{}", 2, &buf));
    REFUSED(fawn_thread_state(handle, "{}", 2, &buf));
    REFUSED(fawn_thread_history(handle, "{}", 2, &buf));
    REFUSED(fawn_thread_goal(handle, "{}", 2, &buf));
    REFUSED(fawn_run_start(right->assembly, handle, right->queue, "{}", 2, &made, &buf));
    fawn_thread_free(handle);
  }
  if (handle != right->queue) {
    REFUSED(fawn_queue_take(handle, -1, 0, &buf));
    CHECK_STATUS(fawn_queue_interrupt(handle), FAWN_ERR_HANDLE);
    REFUSED(fawn_queue_set_wakeup(handle, NULL, 0, NULL, &buf));
    if (handle != 0) { /* 0 means that nobody listens */
      REFUSED(fawn_run_start(right->assembly, right->thread, handle, "{}", 2, &made, &buf));
    }
    fawn_queue_free(handle);
  }
  if (handle != right->run) {
    REFUSED(fawn_run_submit(handle, "{}", 2, &buf));
    REFUSED(fawn_run_wait(handle, -1, &buf));
    fawn_run_free(handle);
  }
#undef REFUSED
}

static void handles(void) {
  const uint64_t right[5] = {o.runtime, o.assembly, o.thread, o.queue, o.run};
  for (int n = 0; n < 5; n++) {
    all_refuse_handle(right[n], &o);
    for (int bit = 0; bit < 64; bit++) {
      all_refuse_handle(right[n] ^ (uint64_t)1 << bit, &o);
    }
  }
  const uint64_t none[] = {0, 1, 42, UINT64_MAX, (uint64_t)1 << 53, ((uint64_t)1 << 53) - 1, (uint64_t)(uintptr_t)&o};
  for (size_t n = 0; n < sizeof none / sizeof none[0]; n++) {
    all_refuse_handle(none[n], &o);
  }
  uint64_t random = 88172645463325252u;
  for (int n = 0; n < made_up_handles; n++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    all_refuse_handle(random, &o);
  }
  /* None of the many frees above hit an object that is alive. */
  fawn_buf buf;
  CHECK_ANSWER(fawn_thread_state(o.thread, "{}", 2, &buf), buf, "{");
  CHECK_ANSWER(fawn_runtime_stats(o.runtime, &buf), buf, "\"kind\":\"run\"");

  objects freed = make_objects();
  free_objects(freed, "0123401234");
  all_refuse_handle(freed.runtime, &o);
  all_refuse_handle(freed.assembly, &o);
  all_refuse_handle(freed.thread, &o);
  all_refuse_handle(freed.queue, &o);
  all_refuse_handle(freed.run, &o);
}

/* Ids of host calls that were never given, and answers that come twice. */
static void host_calls(void) {
  fawn_buf buf;
  const uint64_t none[] = {0, call_id + 1, UINT64_MAX, o.run};
  for (size_t n = 0; n < sizeof none / sizeof none[0]; n++) {
    CHECK_ERROR(fawn_call_finish(o.runtime, none[n], "{\"ok\":{}}", FAWN_NTS, &buf), buf, FAWN_ERR_HANDLE, "call id");
    CHECK_ERROR(fawn_call_emit(o.runtime, none[n], "{}", FAWN_NTS, &buf), buf, FAWN_ERR_HANDLE, "call id");
  }
  CHECK_ERROR(fawn_call_finish(o.runtime, call_id, "{}", FAWN_NTS, &buf), buf, FAWN_ERR_MISSING_MEMBER, "");
  CHECK_EMPTY(fawn_call_finish(o.runtime, call_id, "{\"ok\":{\"content\":\"Hi\"}}", FAWN_NTS, &buf), buf, FAWN_OK);
  CHECK_EMPTY(fawn_call_finish(o.runtime, call_id, "{\"ok\":{\"content\":\"Hi\"}}", FAWN_NTS, &buf), buf, FAWN_GONE);
  CHECK_EMPTY(fawn_call_emit(o.runtime, call_id, "{}", FAWN_NTS, &buf), buf, FAWN_GONE);
  CHECK_ANSWER(fawn_run_wait(o.run, -1, &buf), buf, "\"status\":\"success\"");
}

/* After its runtime is gone an object still answers, and says so. */
static void use_what_is_left(const objects *left, const char *freed) {
  fawn_buf buf;
  int32_t status;
  if (strchr(freed, '1') == NULL) {
    status = fawn_assembly_descriptor(left->assembly, &buf);
    CHECK(status == FAWN_OK || status == FAWN_ERR_CLOSED);
    fawn_buf_free(&buf);
  }
  if (strchr(freed, '2') == NULL) {
    status = fawn_thread_state(left->thread, "{}", 2, &buf);
    CHECK(status == FAWN_OK || status == FAWN_ERR_CLOSED);
    fawn_buf_free(&buf);
  }
  if (strchr(freed, '3') == NULL) {
    status = fawn_queue_take(left->queue, 0, 1, &buf);
    CHECK(status == FAWN_OK || status == FAWN_TIMEOUT || status == FAWN_CLOSED);
    fawn_buf_free(&buf);
  }
  if (strchr(freed, '4') == NULL) {
    status = fawn_run_wait(left->run, 0, &buf);
    CHECK(status == FAWN_OK || status == FAWN_TIMEOUT || status == FAWN_ERR_CLOSED);
    fawn_buf_free(&buf);
  }
}

/* Frees one of each in all 120 orders, and uses what is left after each step. */
static void every_order(char *order, int fixed) {
  if (fixed == 5) {
    objects made = make_objects();
    char freed[6] = "";
    for (int n = 0; n < 5; n++) {
      char one[2] = {order[n], 0};
      free_objects(made, one);
      strcat(freed, one);
      use_what_is_left(&made, freed);
    }
    return;
  }
  for (int n = fixed; n < 5; n++) {
    char swap = order[fixed];
    order[fixed] = order[n], order[n] = swap;
    every_order(order, fixed + 1);
    swap = order[fixed];
    order[fixed] = order[n], order[n] = swap;
  }
}

/* Objects of another runtime are refused, not mixed. */
static void objects_of_two_runtimes(void) {
  objects other = make_objects();
  fawn_run run = 7;
  fawn_buf buf;
  CHECK_ERROR(fawn_run_start(o.assembly, other.thread, o.queue, REQUEST, FAWN_NTS, &run, &buf), buf, FAWN_ERR_HANDLE,
              "one runtime");
  CHECK(run == 0);
  CHECK_ERROR(fawn_run_start(o.assembly, o.thread, other.queue, REQUEST, FAWN_NTS, &run, &buf), buf, FAWN_ERR_HANDLE,
              "one runtime");
  CHECK_ERROR(fawn_run_start(other.assembly, o.thread, o.queue, REQUEST, FAWN_NTS, &run, &buf), buf, FAWN_ERR_HANDLE,
              "one runtime");
  free_objects(other, "01234");
}

static void after_shutdown(void) {
  objects down = make_objects();
  uint64_t made = 7;
  fawn_buf buf;
  CHECK_STATUS(fawn_runtime_shutdown(down.runtime, -1, NULL), FAWN_OK);
#define CLOSED(call) CHECK_ERROR(call, buf, FAWN_ERR_CLOSED, "\"code\":\"closed\"")
  CLOSED(fawn_runtime_submit(down.runtime, "{\"op\":\"reset_agent\"}", FAWN_NTS, &buf));
  CLOSED(fawn_subagents_new(down.runtime, "{}", 2, &made, &buf));
  CHECK(made == 0);
  made = 7;
  CLOSED(fawn_assembly_new(down.runtime, ASSEMBLY, FAWN_NTS, &made, &buf));
  CHECK(made == 0);
  CLOSED(fawn_thread_open(down.runtime, "{}", 2, &made, &buf));
  CLOSED(fawn_thread_state(down.thread, "{}", 2, &buf));
  CLOSED(fawn_queue_new(down.runtime, "{}", 2, &made, &buf));
  CLOSED(fawn_run_start(down.assembly, down.thread, down.queue, REQUEST, FAWN_NTS, &made, &buf));
#undef CLOSED
  free_objects(down, "40123");
}

static void *everything(void *unused) {
  (void)unused;
  o = make_objects_of("{}", HOST_ASSEMBLY);
  fawn_buf call = take_until(o.queue, "host_call");
  call_id = member_number(call.data, "call_id");
  fawn_buf_free(&call);
  char order[] = "01234";
  texts_that_are_none();
  json_that_is_none();
  json_that_is_deep();
  json_that_is_as_deep_as_allowed();
  members_and_types();
  handles();
  host_calls();
  every_order(order, 0);
  objects_of_two_runtimes();
  after_shutdown();
  free_objects(o, "01234");
  check_nothing_left();
  return NULL;
}

int main(void) {
  everything(NULL);
  made_up_handles = 10;
  on_threads(1, SMALL_STACK, everything, NULL);
  return 0;
}
