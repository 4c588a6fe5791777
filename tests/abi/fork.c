/* A forked child gets an error, never a deadlock; one that was forked before the first use may go on. */

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static atomic_int stop;

/* Keeps the locks of the library busy while the process forks. */
static void *busy(void *argument) {
  fawn_runtime runtime = *(fawn_runtime *)argument;
  while (!atomic_load(&stop)) {
    fawn_buf buf;
    fawn_queue queue;
    CHECK_STATUS(fawn_runtime_stats(runtime, &buf), FAWN_OK);
    fawn_buf_free(&buf);
    CHECK_STATUS(fawn_queue_new(runtime, "{}", 2, &queue, NULL), FAWN_OK);
    fawn_queue_free(queue);
  }
  return NULL;
}

/* Ends a child well. By exec, so that a memory checker does not ask after what the vanished OS threads had. */
static void end_of_child(void) {
  execlp("true", "true", (char *)NULL);
  _exit(2);
}

static void in_child(objects o) {
  fawn_buf buf = rubbish();
  uint64_t handle = 7;
  alarm(30); /* a deadlock ends the child */
  CHECK_ERROR(fawn_describe("build", FAWN_NTS, &buf), buf, FAWN_ERR_FORKED, "\"code\":\"forked\"");
  CHECK_ERROR(fawn_reduce("artifacts", FAWN_NTS, "{}", 2, &buf), buf, FAWN_ERR_FORKED, "fork");
  CHECK_ERROR(fawn_runtime_new(FAWN_ABI_VERSION, "{}", 2, &handle, &buf), buf, FAWN_ERR_FORKED, "fork");
  CHECK(handle == 0);
  CHECK_ERROR(fawn_runtime_stats(o.runtime, &buf), buf, FAWN_ERR_FORKED, "fork");
  CHECK_ERROR(fawn_runtime_shutdown(o.runtime, -1, &buf), buf, FAWN_ERR_FORKED, "fork");
  CHECK_ERROR(fawn_queue_take(o.queue, -1, 0, &buf), buf, FAWN_ERR_FORKED, "fork");
  CHECK_ERROR(fawn_run_wait(o.run, -1, &buf), buf, FAWN_ERR_FORKED, "fork");
  CHECK_ERROR(fawn_call_finish(o.runtime, 1, "{}", 2, &buf), buf, FAWN_ERR_FORKED, "fork");
  CHECK_STATUS(fawn_queue_interrupt(o.queue), FAWN_ERR_FORKED);
  CHECK(fawn_abi_version() == FAWN_ABI_VERSION);
  CHECK(strcmp(fawn_status_name(FAWN_ERR_FORKED), "FAWN_ERR_FORKED") == 0);
  free_objects(o, "01234");
  end_of_child();
}

static void check_child(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  pthread_t threads[4];

  /* Loaded, asked for its version, but not used: the child is a process like any other. */
  CHECK(fawn_abi_version() == FAWN_ABI_VERSION);
  pid_t child = fork();
  if (child == 0) {
    objects o = make_objects();
    free_objects(o, "43210");
    end_of_child();
  }
  check_child(child);

  objects o = make_objects();
  for (int n = 0; n < 4; n++) {
    CHECK(pthread_create(&threads[n], NULL, busy, &o.runtime) == 0);
  }
  for (int n = 0; n < 50; n++) {
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      in_child(o);
    }
    check_child(child);
  }
  /* The parent has noticed nothing. */
  fawn_buf buf;
  CHECK_ANSWER(fawn_runtime_stats(o.runtime, &buf), buf, "{");
  atomic_store(&stop, 1);
  for (int n = 0; n < 4; n++) {
    CHECK(pthread_join(threads[n], NULL) == 0);
  }
  free_objects(o, "01234");
  check_nothing_left();
  return 0;
}
