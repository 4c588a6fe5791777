/* Many runs in one process: memory, files and OS threads stay where they were after the warm-up. */

#include <dirent.h>
#include <unistd.h>

#include "check.h"

/* Resident memory in KiB; 0 where the system does not tell. */
static long resident(void) {
  long total, pages;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL) {
    return 0;
  }
  CHECK(fscanf(file, "%ld %ld", &total, &pages) == 2);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int entries(const char *path) {
  int count = 0;
  DIR *folder = opendir(path);
  if (folder == NULL) {
    return 0;
  }
  while (readdir(folder) != NULL) {
    count++;
  }
  closedir(folder);
  return count;
}

int main(void) {
  const char *asked = getenv("FAWN_SOAK");
  long runs = asked ? atol(asked) : 300, warm_up = runs / 10;
  long memory = 0;
  int files = 0, threads = 0;
  objects o = make_objects();
  fawn_buf buf;
  for (long n = 0; n < runs; n++) {
    fawn_thread thread;
    fawn_run run;
    if (n == warm_up) {
      memory = resident();
      files = entries("/proc/self/fd");
      threads = os_threads();
    }
    char options[64], op[96];
    snprintf(options, sizeof options, "{\"thread_id\":\"soak-%ld\"}", n);
    CHECK_STATUS(fawn_thread_open(o.runtime, options, FAWN_NTS, &thread, NULL), FAWN_OK);
    CHECK_STATUS(fawn_run_start(o.assembly, thread, o.queue, REQUEST, FAWN_NTS, &run, NULL), FAWN_OK);
    buf = take_until(o.queue, "run_end");
    fawn_buf_free(&buf);
    CHECK_ANSWER(fawn_run_wait(run, -1, &buf), buf, "\"status\":\"success\"");
    CHECK_ANSWER(fawn_thread_state(thread, "{}", 2, &buf), buf, "Done.");
    fawn_run_free(run);
    fawn_thread_free(thread);
    /* The memory store keeps threads until they are deleted. */
    snprintf(op, sizeof op, "{\"op\":\"delete_thread\",\"thread_id\":\"soak-%ld\"}", n);
    CHECK_ANSWER(fawn_runtime_submit(o.runtime, op, FAWN_NTS, &buf), buf, "{");
  }
  /* Under a memory checker resident memory says nothing, and there a soak is short. */
  long grown = resident() - memory;
  CHECK(runs < 10000 || grown < 5 * 1024);
  CHECK(entries("/proc/self/fd") == files);
  CHECK(os_threads() == threads);
  free_objects(o, "01234");
  check_nothing_left();
  return 0;
}
