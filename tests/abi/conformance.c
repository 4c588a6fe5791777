/* Runs a conformance script (tests/golden/README.md) and prints what the library answers, byte for byte. The runners of the
 * other languages do the same through their bindings; tests/bindings compares what they print.
 *
 *   conformance SCRIPT...
 *
 * Several scripts are played one after the other, each with objects of its own. */
#include "check.h"

/* What the script works on. A freed object keeps its handle, so that its later use reaches the library. */
static fawn_runtime runtime;
static fawn_assembly assembly;
static fawn_thread thread;
static fawn_queue queue;

/* The script, where its next line begins, and where it ends. Lines are cut apart in place; there may be NULs in them. */
static char *script, *next_line, *script_end;

/* A line: its verb, and the text behind the first space. */
typedef struct command {
  const char *verb;
  const char *text;
  size_t len;
} command;

static void read_script(const char *path) {
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  CHECK(fseek(file, 0, SEEK_END) == 0);
  long size = ftell(file);
  CHECK(size >= 0);
  rewind(file);
  script = malloc((size_t)size + 1);
  CHECK(script != NULL);
  CHECK(fread(script, 1, (size_t)size, file) == (size_t)size);
  CHECK(fclose(file) == 0);
  next_line = script;
  script_end = script + size;
}

/* Gives the next line that is neither empty nor a remark; 0 at the end. */
static int read_command(command *command) {
  while (next_line < script_end) {
    char *line = next_line, *end = memchr(line, '\n', (size_t)(script_end - line));
    if (end == NULL) end = script_end;
    next_line = end + 1;
    *end = 0;
    if (end == line || *line == '#') continue;
    char *space = memchr(line, ' ', (size_t)(end - line));
    command->verb = line;
    command->text = space ? space + 1 : end;
    command->len = (size_t)(end - command->text);
    if (space) *space = 0;
    return 1;
  }
  return 0;
}

static int is(const command *command, const char *verb) { return strcmp(command->verb, verb) == 0; }

/* Prints a line and its text, if there is one. */
static void say(const char *what, const char *text, size_t len) {
  fputs(what, stdout);
  if (text != NULL) {
    putchar(' ');
    fwrite(text, 1, len, stdout);
  }
  putchar('\n');
}

/* Prints an answer or an error object, and frees it. */
static void say_answer(int32_t status, fawn_buf *buf) {
  CHECK(status <= FAWN_OK && buf->data != NULL);
  say(status == FAWN_OK ? "ok" : "error", buf->data, buf->len);
  fawn_buf_free(buf);
}

/* Prints how an answer to a host call went: nothing if it arrived. */
static void say_action(int32_t status, fawn_buf *buf) {
  CHECK(status <= FAWN_OK || status == FAWN_GONE);
  if (status == FAWN_GONE) say("gone", NULL, 0);
  if (status < FAWN_OK) say("error", buf->data, buf->len);
  fawn_buf_free(buf);
}

/* The value of a member of a JSON object, NULL if it has none. The text is an event of the library, so it is JSON. */
static const char *member(const char *json, const char *name) {
  int depth = 0, is_name = 0;
  for (const char *c = json; *c; c++) {
    if (*c == '{' || *c == '[') is_name = ++depth == 1;
    if (*c == '}' || *c == ']') depth--;
    if (*c == ',') is_name = depth == 1;
    if (*c != '"') continue;
    const char *begin = ++c;
    while (*c != '"') c += *c == '\\' ? 2 : 1;
    if (is_name && (size_t)(c - begin) == strlen(name) && memcmp(begin, name, strlen(name)) == 0) return c + 2;
    is_name = 0;
  }
  return NULL;
}

static int is_type(const char *event, const char *type) {
  const char *value = member(event, "type");
  CHECK(value != NULL && *value == '"');
  return strncmp(value + 1, type, strlen(type)) == 0 && value[1 + strlen(type)] == '"';
}

static void run(const command *request);

/* Carries out a command that prints one line, or a run. */
static void carry_out(const command *c) {
  fawn_buf buf = rubbish();
  fawn_runtime made;
  int32_t status;

/* Makes an object in place of the current one, which is freed. */
#define MAKE(current, call)                                                                  \
  do {                                                                                       \
    status = (call);                                                                         \
    if (status != FAWN_OK) {                                                                 \
      CHECK(made == 0);                                                                      \
      say_answer(status, &buf);                                                              \
      return;                                                                                \
    }                                                                                        \
    fawn_##current##_free(current);                                                          \
    current = made;                                                                          \
    say("ok", NULL, 0);                                                                      \
    return;                                                                                  \
  } while (0)

  if (is(c, "runtime")) MAKE(runtime, fawn_runtime_new(FAWN_ABI_VERSION, c->text, c->len, &made, &buf));
  if (is(c, "assembly")) MAKE(assembly, fawn_assembly_new(runtime, c->text, c->len, &made, &buf));
  if (is(c, "thread")) MAKE(thread, fawn_thread_open(runtime, c->text, c->len, &made, &buf));
  if (is(c, "queue")) MAKE(queue, fawn_queue_new(runtime, c->text, c->len, &made, &buf));
#undef MAKE

  if (is(c, "run")) {
    run(c);
  } else if (is(c, "free")) {
    if (strcmp(c->text, "runtime") == 0) fawn_runtime_free(runtime);
    else if (strcmp(c->text, "assembly") == 0) fawn_assembly_free(assembly);
    else if (strcmp(c->text, "thread") == 0) fawn_thread_free(thread);
    else if (strcmp(c->text, "queue") == 0) fawn_queue_free(queue);
    else CHECK(!"an object to free");
    say("ok", NULL, 0);
  } else if (is(c, "describe")) {
    say_answer(fawn_describe(c->text, c->len, &buf), &buf);
  } else if (is(c, "reduce")) {
    const char *space = memchr(c->text, ' ', c->len);
    size_t name = space ? (size_t)(space - c->text) : c->len, used = space ? name + 1 : name;
    say_answer(fawn_reduce(c->text, name, c->text + used, c->len - used, &buf), &buf);
  } else if (is(c, "convert")) {
    say_answer(fawn_messages_convert(c->text, c->len, &buf), &buf);
  } else if (is(c, "update")) {
    say_answer(fawn_thread_update(thread, c->text, c->len, &buf), &buf);
  } else if (is(c, "state")) {
    say_answer(fawn_thread_state(thread, c->text, c->len, &buf), &buf);
  } else if (is(c, "goal")) {
    say_answer(fawn_thread_goal(thread, c->text, c->len, &buf), &buf);
  } else if (is(c, "history")) {
    say_answer(fawn_thread_history(thread, c->text, c->len, &buf), &buf);
  } else if (is(c, "submit")) {
    say_answer(fawn_runtime_submit(runtime, c->text, c->len, &buf), &buf);
  } else if (is(c, "descriptor")) {
    say_answer(fawn_assembly_descriptor(assembly, &buf), &buf);
  } else if (is(c, "stats")) {
    say_answer(fawn_runtime_stats(runtime, &buf), &buf);
  } else if (is(c, "shutdown")) {
    say_answer(fawn_runtime_shutdown(runtime, -1, &buf), &buf);
  } else {
    fprintf(stderr, "unknown command %s\n", c->verb);
    exit(1);
  }
}

/* Carries out the lines up to the one that answers a host call. */
static void answer(fawn_run run, uint64_t call_id) {
  command c;
  while (read_command(&c)) {
    fawn_buf buf = rubbish();
    if (is(&c, "emit")) {
      say_action(fawn_call_emit(runtime, call_id, c.text, c.len, &buf), &buf);
    } else if (is(&c, "finish")) {
      say_action(fawn_call_finish(runtime, call_id, c.text, c.len, &buf), &buf);
      return;
    } else if (is(&c, "cancel")) {
      int32_t status = fawn_run_submit(run, "{\"op\":\"cancel\",\"reason\":\"golden\"}", FAWN_NTS, &buf);
      say_action(status, &buf);
      return;
    } else {
      CHECK(!is(&c, "end"));
      carry_out(&c);
    }
  }
  CHECK(!"an answer for each host call");
}

static void run(const command *request) {
  command c;
  fawn_run run;
  fawn_buf buf = rubbish();
  int32_t status = fawn_run_start(assembly, thread, queue, request->text, request->len, &run, &buf);
  if (status == FAWN_OK) {
    for (int ended = queue == 0; !ended;) {
      CHECK_STATUS(fawn_queue_take(queue, -1, 1, &buf), FAWN_OK);
      const char *event = buf.data + 1; /* without the array's brackets */
      say("event", event, buf.len - 2);
      ended = is_type(event, "run_end");
      if (is_type(event, "host_call")) {
        const char *data = member(event, "data");
        const char *call_id = data ? member(data, "call_id") : NULL;
        CHECK(call_id != NULL);
        answer(run, strtoull(call_id, NULL, 10));
      }
      fawn_buf_free(&buf);
    }
    CHECK_STATUS(fawn_run_wait(run, -1, &buf), FAWN_OK);
    say("result", buf.data, buf.len);
    fawn_buf_free(&buf);
    fawn_run_free(run);
  } else {
    say_answer(status, &buf);
  }
  while (read_command(&c) && !is(&c, "end")) continue;
}

static void play(const char *path) {
  command c;
  runtime = assembly = thread = queue = 0;
  read_script(path);
  while (read_command(&c)) carry_out(&c);
  fawn_queue_free(queue);
  fawn_thread_free(thread);
  fawn_assembly_free(assembly);
  fawn_runtime_free(runtime);
  free(script);
  check_nothing_left();
}

int main(int argc, char **argv) {
  CHECK(argc > 1);
  for (int n = 1; n < argc; n++) play(argv[n]);
  return 0;
}
