/* A good guest: the dispositions of all signals stay as they were, and the library's OS threads block all of them. */

#include <dirent.h>
#include <signal.h>
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

/* The handlers of all signals, as the kernel has them. */
static void dispositions(struct sigaction *all) {
  for (int signal = 1; signal < 32; signal++) {
    CHECK(sigaction(signal, NULL, &all[signal]) == 0);
  }
}

/* Whether two sets hold the same signals. They are not compared byte by byte: most of a set is never written. */
static int same_set(const sigset_t *a, const sigset_t *b) {
  for (int signal = 1; signal < 32; signal++) {
    if (sigismember(a, signal) != sigismember(b, signal)) {
      return 0;
    }
  }
  return 1;
}

/* Whether every OS thread but this one blocks every signal that can be blocked. */
static int other_threads_block_signals(void) {
  const unsigned long long wanted = 0x7fffffffull & ~(1ull << (SIGKILL - 1)) & ~(1ull << (SIGSTOP - 1));
  char path[64], line[256];
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) {
    return 1; /* no such file system here */
  }
  int all = 1;
  struct dirent *entry;
  while ((entry = readdir(tasks)) != NULL) {
    long id = atol(entry->d_name);
    if (id == 0 || id == syscall(SYS_gettid)) {
      continue;
    }
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", id);
    FILE *status = fopen(path, "r");
    if (status == NULL) {
      continue; /* it has ended */
    }
    while (fgets(line, sizeof line, status)) {
      if (strncmp(line, "SigBlk:", 7) == 0) {
        all = all && (strtoull(line + 7, NULL, 16) & wanted) == wanted;
      }
    }
    fclose(status);
  }
  closedir(tasks);
  return all;
}

/* Under valgrind a thread that is being made shows a mask of valgrind's for a moment. */
static void check_other_threads_block_signals(void) {
  const struct timespec pause = {0, 10 * 1000 * 1000};
  for (int tries = 0; tries < 200 && !other_threads_block_signals(); tries++) {
    nanosleep(&pause, NULL);
  }
  CHECK(other_threads_block_signals());
}

int main(void) {
  struct sigaction before[32], after[32];
  sigset_t mask_before, mask_after;
  fawn_buf buf;
  dispositions(before);
  CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask_before) == 0);
  objects o = make_objects();
  CHECK_ANSWER(fawn_run_wait(o.run, -1, &buf), buf, "{");
  check_other_threads_block_signals();
  dispositions(after);
  for (int signal = 1; signal < 32; signal++) {
    CHECK(before[signal].sa_handler == after[signal].sa_handler);
    CHECK(before[signal].sa_flags == after[signal].sa_flags);
    CHECK(same_set(&before[signal].sa_mask, &after[signal].sa_mask));
  }
  CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask_after) == 0);
  CHECK(same_set(&mask_before, &mask_after));
  free_objects(o, "43210");
  check_nothing_left();
  return 0;
}
