/* Subagents objects: their configuration, their life, how assemblies name them, and freeing them while they are in use. */

#include "check.h"

/* What names an object as the last member of a document. */
#define DIRECT "{\"factory\":\"direct\",\"model\":{\"provider\":\"host\"},\"features\":{\"subagent\":true}"
#define LEAD "{\"factory\":\"lead\""
#define MODELS "{\"models\":[{\"name\":\"m\",\"provider\":\"scripted\",\"repeat\":true,\"replies\":[{\"content\":\"Hi\"}]}]}"

static fawn_runtime new_runtime(const char *config) {
  fawn_runtime runtime;
  fawn_buf buf;
  CHECK_EMPTY(fawn_runtime_new(FAWN_ABI_VERSION, config, FAWN_NTS, &runtime, &buf), buf, FAWN_OK);
  return runtime;
}

static fawn_subagents new_subagents(fawn_runtime runtime, const char *config) {
  fawn_subagents subagents = 7;
  fawn_buf buf = rubbish();
  CHECK_EMPTY(fawn_subagents_new(runtime, config, FAWN_NTS, &subagents, &buf), buf, FAWN_OK);
  CHECK(subagents > 0 && subagents < (uint64_t)1 << 53);
  return subagents;
}

/* An assembly of the document whose last member names the object. */
static int32_t new_assembly(fawn_runtime runtime, const char *document, uint64_t subagents, fawn_assembly *made,
                            fawn_buf *buf) {
  char text[512];
  snprintf(text, sizeof text, "%s,\"subagent_runtime\":%llu}", document, (unsigned long long)subagents);
  return fawn_assembly_new(runtime, text, FAWN_NTS, made, buf);
}

static void configuration(void) {
  fawn_runtime runtime = new_runtime(
      "{\"subagent_runtime\":{\"max_running\":5,\"max_queued\":7},\"subagents\":{\"max_total_per_run\":9}}");
  fawn_buf buf = rubbish();
  fawn_subagents subagents = new_subagents(runtime, "{}");
  CHECK_ANSWER(fawn_subagents_stats(subagents, &buf), buf,
               "{\"max_running\":5,\"running\":0,\"max_queued\":7,\"queued\":0,\"admission_policy\":\"queue\","
               "\"max_total_per_run\":9,\"started\":false}");
  fawn_subagents_free(subagents);
  subagents = new_subagents(runtime, "{\"config\":{\"max_running\":64,\"admission_policy\":\"reject\"},\"max_total_per_run\":50}");
  CHECK_ANSWER(fawn_subagents_stats(subagents, &buf), buf,
               "{\"max_running\":64,\"running\":0,\"max_queued\":7,\"queued\":0,\"admission_policy\":\"reject\","
               "\"max_total_per_run\":50,\"started\":false}");
  CHECK_ANSWER(fawn_runtime_stats(runtime, &buf), buf, "\"kind\":\"subagents\"");

  static const struct {
    const char *config;
    int32_t status;
    const char *path;
  } wrong[] = {
      {"{\"max_total_per_run\":0}", FAWN_ERR_OUT_OF_RANGE, "/max_total_per_run"},
      {"{\"max_total_per_run\":51}", FAWN_ERR_OUT_OF_RANGE, "/max_total_per_run"},
      {"{\"config\":{\"max_running\":65}}", FAWN_ERR_OUT_OF_RANGE, "/config/max_running"},
      {"{\"config\":{\"max_queued\":10001}}", FAWN_ERR_OUT_OF_RANGE, "/config/max_queued"},
      {"{\"config\":{\"queue_timeout_seconds\":0}}", FAWN_ERR_OUT_OF_RANGE, "/config/queue_timeout_seconds"},
      {"{\"config\":{\"max_running\":true}}", FAWN_ERR_WRONG_TYPE, "/config/max_running"},
      {"{\"config\":{\"admission_policy\":\"drop\"}}", FAWN_ERR_UNKNOWN_VARIANT, "/config/admission_policy"},
      {"{\"config\":{\"max_runing\":1}}", FAWN_ERR_UNKNOWN_MEMBER, "/config/max_runing"},
      {"{\"batch_config\":{\"enabled\":true}}", FAWN_ERR_UNSUPPORTED, "/batch_config"},
      {"{\"batch_config\":false}", FAWN_ERR_UNSUPPORTED, "/batch_config"},
      {"{\"batch_repository\":{}}", FAWN_ERR_UNKNOWN_MEMBER, "/batch_repository"},
  };
  for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
    fawn_subagents none = 7;
    char path[64];
    snprintf(path, sizeof path, "\"path\":\"%s\"", wrong[n].path);
    CHECK_ERROR(fawn_subagents_new(runtime, wrong[n].config, FAWN_NTS, &none, &buf), buf, wrong[n].status, path);
    CHECK(none == 0);
  }
  CHECK_ERROR(fawn_subagents_new(runtime, "{}", FAWN_NTS, NULL, &buf), buf, FAWN_ERR_ARGUMENT, "out");
  CHECK_STATUS(fawn_subagents_new(runtime, "{}", FAWN_NTS, NULL, NULL), FAWN_ERR_ARGUMENT);
  fawn_subagents_free(subagents);
  fawn_runtime_free(runtime);
}

/* Starting and stopping, each as often as one likes, with and without buffers. */
static void life(void) {
  fawn_runtime runtime = new_runtime("{}");
  fawn_subagents subagents = new_subagents(runtime, "{}");
  fawn_buf buf = rubbish();
  CHECK_ANSWER(fawn_subagents_stop(subagents, 0, &buf), buf, "{\"started\":false}");
  for (int n = 0; n < 3; n++) {
    CHECK_ANSWER(fawn_subagents_start(subagents, &buf), buf, "{\"started\":true}");
    CHECK_STATUS(fawn_subagents_start(subagents, NULL), FAWN_OK);
    CHECK_ANSWER(fawn_subagents_stats(subagents, &buf), buf, "\"started\":true");
    CHECK_ANSWER(fawn_subagents_stop(subagents, n - 1, &buf), buf, "{\"started\":false}");
    CHECK_STATUS(fawn_subagents_stop(subagents, INT64_MIN, NULL), FAWN_OK);
    CHECK_ANSWER(fawn_subagents_stats(subagents, &buf), buf, "\"started\":false");
    CHECK_STATUS(fawn_subagents_stats(subagents, NULL), FAWN_OK);
  }
  /* An assembly may be made of one that was stopped, or never started. */
  fawn_assembly agent;
  CHECK_EMPTY(new_assembly(runtime, DIRECT, subagents, &agent, &buf), buf, FAWN_OK);
  fawn_assembly_free(agent);

  CHECK_STATUS(fawn_subagents_start(subagents, NULL), FAWN_OK);
  CHECK_STATUS(fawn_runtime_shutdown(runtime, -1, NULL), FAWN_OK);
  fawn_subagents none = 7;
  CHECK_ERROR(fawn_subagents_new(runtime, "{}", FAWN_NTS, &none, &buf), buf, FAWN_ERR_CLOSED, "\"closed\"");
  CHECK(none == 0);
  CHECK_ERROR(fawn_subagents_start(subagents, &buf), buf, FAWN_ERR_CLOSED, "\"closed\"");
  CHECK_ERROR(fawn_subagents_stop(subagents, -1, &buf), buf, FAWN_ERR_CLOSED, "\"closed\"");
  CHECK_ANSWER(fawn_subagents_stats(subagents, &buf), buf, "\"running\":0");
  fawn_runtime_free(runtime);
  CHECK_ERROR(fawn_subagents_start(subagents, &buf), buf, FAWN_ERR_CLOSED, "\"closed\"");
  CHECK_ANSWER(fawn_subagents_stats(subagents, &buf), buf, "\"running\":0");
  fawn_subagents_free(subagents);
  fawn_subagents_free(subagents);
  fawn_subagents_free(0);
  CHECK_ERROR(fawn_subagents_stats(subagents, &buf), buf, FAWN_ERR_HANDLE, "was freed");
}

/* What an assembly must not name, and which assemblies name none. */
static void refused(void) {
  objects o = make_objects();
  fawn_runtime other = new_runtime("{}");
  fawn_subagents subagents = new_subagents(o.runtime, "{}"), freed = new_subagents(o.runtime, "{}"),
                 foreign = new_subagents(other, "{}");
  fawn_buf buf = rubbish();
  fawn_assembly agent = 7;
  fawn_subagents_free(freed);

  const uint64_t none[] = {0, 1, o.runtime, o.assembly, o.thread, o.queue, o.run, freed, foreign, subagents ^ 1 << 20, UINT64_MAX};
  static const char *documents[] = {DIRECT, LEAD, "{\"factory\":\"lead_graph\""};
  for (size_t n = 0; n < sizeof none / sizeof *none; n++) {
    for (size_t d = 0; d < sizeof documents / sizeof *documents; d++) {
      CHECK_ERROR(new_assembly(o.runtime, documents[d], none[n], &agent, &buf), buf, FAWN_ERR_HANDLE,
                  "\"path\":\"/subagent_runtime\"");
      CHECK(agent == 0);
    }
  }
  CHECK_ERROR(new_assembly(o.runtime, DIRECT, foreign, &agent, &buf), buf, FAWN_ERR_HANDLE, "another runtime");
  CHECK_ERROR(new_assembly(o.runtime, DIRECT, o.thread, &agent, &buf), buf, FAWN_ERR_HANDLE, "one of a thread");
  static const char *no_handles[] = {"\"7\"", "1.5", "[]", "true", "-1"};
  for (size_t n = 0; n < sizeof no_handles / sizeof *no_handles; n++) {
    char text[256];
    snprintf(text, sizeof text, "%s,\"subagent_runtime\":%s}", DIRECT, no_handles[n]);
    CHECK_ERROR(fawn_assembly_new(o.runtime, text, FAWN_NTS, &agent, &buf), buf,
                n == 4 ? FAWN_ERR_OUT_OF_RANGE : FAWN_ERR_WRONG_TYPE, "\"path\":\"/subagent_runtime\"");
  }
  CHECK_EMPTY(fawn_assembly_new(o.runtime, DIRECT ",\"subagent_runtime\":null}", FAWN_NTS, &agent, &buf), buf, FAWN_OK);
  fawn_assembly_free(agent);

  /* RT-25: nothing to bind to. */
  static const char *unbound[] = {
      "{\"factory\":\"direct\",\"model\":{\"provider\":\"host\"}",
      "{\"factory\":\"direct\",\"model\":{\"provider\":\"host\"},\"features\":{}",
      "{\"factory\":\"direct\",\"model\":{\"provider\":\"host\"},\"features\":{\"subagent\":false}",
      "{\"factory\":\"direct\",\"model\":{\"provider\":\"host\"},\"middleware\":[\"subagent_limit\"]",
  };
  for (size_t n = 0; n < sizeof unbound / sizeof *unbound; n++) {
    CHECK_ERROR(new_assembly(o.runtime, unbound[n], subagents, &agent, &buf), buf, FAWN_ERR_CONFLICT,
                "\"path\":\"/subagent_runtime\"");
  }
  CHECK_ERROR(new_assembly(o.runtime, "{\"model\":{\"provider\":\"host\"}", subagents, &agent, &buf), buf,
              FAWN_ERR_UNKNOWN_MEMBER, "\"path\":\"/subagent_runtime\"");
  fawn_subagents_free(subagents);
  fawn_subagents_free(foreign);
  fawn_runtime_free(other);
  free_objects(o, "01234");
}

/* Runtime, object, assembly and thread, freed in every order while a run of the assembly is in flight. */
static void free_in(const char *order) {
  fawn_runtime runtime = new_runtime(MODELS);
  fawn_subagents subagents = new_subagents(runtime, "{}");
  fawn_assembly agent;
  fawn_thread thread;
  fawn_run run;
  fawn_buf buf = rubbish();
  CHECK_EMPTY(new_assembly(runtime, LEAD ",\"context\":{\"subagent_enabled\":true}", subagents, &agent, &buf), buf,
              FAWN_OK);
  CHECK_ANSWER(fawn_assembly_descriptor(agent, &buf), buf, "{");
  CHECK_EMPTY(fawn_thread_open(runtime, "{}", FAWN_NTS, &thread, &buf), buf, FAWN_OK);
  CHECK_EMPTY(fawn_run_start(agent, thread, 0, REQUEST, FAWN_NTS, &run, &buf), buf, FAWN_OK);
  for (; *order; order++) {
    switch (*order) {
      case '0': fawn_runtime_free(runtime); break;
      case '1': fawn_subagents_free(subagents); break;
      case '2': fawn_assembly_free(agent); break;
      default: fawn_thread_free(thread); break;
    }
  }
  CHECK_ANSWER(fawn_run_wait(run, -1, &buf), buf, "\"status\":");
  fawn_run_free(run);
}

static void every_order(char *order, int fixed) {
  if (fixed == 4) {
    free_in(order);
    return;
  }
  for (int n = fixed; n < 4; n++) {
    char swap = order[fixed];
    order[fixed] = order[n], order[n] = swap;
    every_order(order, fixed + 1);
    swap = order[fixed];
    order[fixed] = order[n], order[n] = swap;
  }
}

/* An assembly that was made goes on without the handle, with the object's limits. */
static void freed_before_its_assembly(void) {
  fawn_runtime runtime = new_runtime(MODELS);
  fawn_subagents subagents = new_subagents(runtime, "{\"config\":{\"max_running\":2},\"max_total_per_run\":11}");
  fawn_assembly agent;
  fawn_thread thread;
  fawn_run run;
  fawn_buf buf = rubbish();
  CHECK_EMPTY(new_assembly(runtime, LEAD ",\"context\":{\"subagent_enabled\":true}", subagents, &agent, &buf), buf,
              FAWN_OK);
  fawn_subagents_free(subagents);
  CHECK_STATUS(fawn_assembly_descriptor(agent, &buf), FAWN_OK);
  CHECK(strstr(buf.data, "\"max_concurrent\":2") != NULL && strstr(buf.data, "\"max_total\":11") != NULL);
  fawn_buf_free(&buf);
  CHECK_EMPTY(fawn_thread_open(runtime, "{}", FAWN_NTS, &thread, &buf), buf, FAWN_OK);
  CHECK_EMPTY(fawn_run_start(agent, thread, 0, REQUEST, FAWN_NTS, &run, &buf), buf, FAWN_OK);
  CHECK_ANSWER(fawn_run_wait(run, -1, &buf), buf, "\"status\":\"success\"");
  fawn_run_free(run);
  fawn_thread_free(thread);
  fawn_assembly_free(agent);
  fawn_runtime_free(runtime);
}

/* Answers the next question of a run to its model. */
static void answer_model(fawn_runtime runtime, fawn_queue queue, const char *answer) {
  fawn_buf buf = take_until(queue, "host_call");
  uint64_t call = member_number(buf.data, "call_id");
  fawn_buf_free(&buf);
  CHECK_EMPTY(fawn_call_finish(runtime, call, answer, FAWN_NTS, &buf), buf, FAWN_OK);
}

/* RT-23: a stop does not touch what delegates, nor does freeing the handle while a subagent is at work. */
static void delegations_outlive_stop_and_handle(void) {
  fawn_runtime runtime = new_runtime("{\"models\":[{\"name\":\"m\",\"provider\":\"host\"}],\"title\":{\"enabled\":false}}");
  fawn_subagents subagents = new_subagents(runtime, "{\"config\":{\"max_running\":1}}");
  fawn_assembly agent;
  fawn_thread thread;
  fawn_queue queue;
  fawn_run run;
  fawn_buf buf = rubbish();
  CHECK_EMPTY(new_assembly(runtime, LEAD ",\"context\":{\"subagent_enabled\":true}", subagents, &agent, &buf), buf,
              FAWN_OK);
  CHECK_EMPTY(fawn_thread_open(runtime, "{}", FAWN_NTS, &thread, &buf), buf, FAWN_OK);
  CHECK_EMPTY(fawn_queue_new(runtime, "{}", FAWN_NTS, &queue, &buf), buf, FAWN_OK);
  CHECK_STATUS(fawn_subagents_start(subagents, NULL), FAWN_OK);
  CHECK_STATUS(fawn_subagents_stop(subagents, -1, NULL), FAWN_OK);
  CHECK_EMPTY(fawn_run_start(agent, thread, queue, REQUEST, FAWN_NTS, &run, &buf), buf, FAWN_OK);
  answer_model(runtime, queue,
               "{\"ok\":{\"content\":\"\",\"tool_calls\":[{\"name\":\"task\",\"id\":\"t1\",\"args\":{\"description\":\"Do it\","
               "\"prompt\":\"Do it.\",\"subagent_type\":\"general-purpose\"}}]}}");
  buf = take_until(queue, "host_call");
  CHECK(strstr(buf.data, "\"task_id\":\"t1\"") != NULL);
  uint64_t call = member_number(buf.data, "call_id");
  fawn_buf_free(&buf);
  CHECK_ANSWER(fawn_subagents_stats(subagents, &buf), buf, "\"running\":1,\"max_queued\":64,\"queued\":0");
  fawn_subagents_free(subagents);
  CHECK_EMPTY(fawn_call_finish(runtime, call, "{\"ok\":\"Done by the subagent.\"}", FAWN_NTS, &buf), buf, FAWN_OK);
  answer_model(runtime, queue, "{\"ok\":\"All done.\"}");
  CHECK_ANSWER(fawn_run_wait(run, -1, &buf), buf, "\"status\":\"success\"");
  CHECK_ANSWER(fawn_thread_state(thread, "{}", FAWN_NTS, &buf), buf, "\"subagent_status\":\"completed\"");
  fawn_run_free(run);
  fawn_queue_free(queue);
  fawn_thread_free(thread);
  fawn_assembly_free(agent);
  fawn_runtime_free(runtime);
}

/* All calls at once on one object, which one of the OS threads frees. */
typedef struct shared {
  fawn_runtime runtime;
  fawn_subagents subagents;
} shared;

static void *use(void *argument) {
  const shared *s = argument;
  for (int n = 0; n < 200; n++) {
    fawn_assembly agent;
    int32_t found[4] = {fawn_subagents_start(s->subagents, NULL), fawn_subagents_stop(s->subagents, 5, NULL),
                        fawn_subagents_stats(s->subagents, NULL),
                        new_assembly(s->runtime, DIRECT, s->subagents, &agent, NULL)};
    for (int call = 0; call < 4; call++) {
      CHECK(found[call] == FAWN_OK || found[call] == FAWN_ERR_HANDLE || (call == 1 && found[call] == FAWN_TIMEOUT));
    }
    fawn_assembly_free(agent);
    if (n == 150) {
      fawn_subagents_free(s->subagents);
    }
  }
  return NULL;
}

int main(void) {
  configuration();
  life();
  refused();
  freed_before_its_assembly();
  delegations_outlive_stop_and_handle();
  char order[] = "0123";
  every_order(order, 0);
  shared s;
  s.runtime = new_runtime("{}");
  s.subagents = new_subagents(s.runtime, "{}");
  on_threads(8, LARGE_STACK, use, &s);
  fawn_runtime_free(s.runtime);
  check_nothing_left();
  return 0;
}
