/* Taking from queues: timeouts, interrupts, and queues that are freed under those who wait. */

#include <time.h>

#include "check.h"

static fawn_runtime runtime;

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void timeouts(void) {
  fawn_queue queue;
  fawn_buf buf = rubbish();
  CHECK_STATUS(fawn_queue_new(runtime, "{}", 2, &queue, NULL), FAWN_OK);
  CHECK_EMPTY(fawn_queue_take(queue, 0, 0, &buf), buf, FAWN_TIMEOUT);
  double begin = now_ms();
  buf = rubbish();
  CHECK_EMPTY(fawn_queue_take(queue, 30, 1, &buf), buf, FAWN_TIMEOUT);
  double took = now_ms() - begin;
  CHECK(took >= 29 && took < 5000);
  CHECK_STATUS(fawn_queue_take(queue, 0, 0, NULL), FAWN_TIMEOUT);
  fawn_queue_free(queue);
}

static void interrupts_are_not_lost(void) {
  fawn_queue queue;
  fawn_buf buf = rubbish();
  CHECK_STATUS(fawn_queue_new(runtime, "{}", 2, &queue, NULL), FAWN_OK);
  CHECK_STATUS(fawn_queue_interrupt(queue), FAWN_OK);
  CHECK_EMPTY(fawn_queue_take(queue, -1, 0, &buf), buf, FAWN_INTERRUPTED);
  CHECK_EMPTY(fawn_queue_take(queue, 0, 0, &buf), buf, FAWN_TIMEOUT);
  fawn_queue_free(queue);
  CHECK_STATUS(fawn_queue_interrupt(queue), FAWN_ERR_HANDLE);
}

/* An OS thread that waits for ever, and how its wait ended. */
static void *waits(void *argument) {
  fawn_queue queue = *(fawn_queue *)argument;
  fawn_buf buf = rubbish();
  int32_t status = fawn_queue_take(queue, -1, 0, &buf);
  CHECK(status == FAWN_CLOSED || status == FAWN_INTERRUPTED || status == FAWN_ERR_HANDLE);
  fawn_buf_free(&buf);
  return (void *)(intptr_t)status;
}

static int32_t how_it_ended(pthread_t thread) {
  void *result;
  CHECK(pthread_join(thread, &result) == 0);
  return (int32_t)(intptr_t)result;
}

static void those_who_wait_are_told(void) {
  pthread_t threads[4];
  fawn_queue queue;
  fawn_runtime other;
  struct timespec moment = {0, 20 * 1000 * 1000};

  CHECK_STATUS(fawn_queue_new(runtime, "{}", 2, &queue, NULL), FAWN_OK);
  CHECK(pthread_create(&threads[0], NULL, waits, &queue) == 0);
  nanosleep(&moment, NULL);
  CHECK_STATUS(fawn_queue_interrupt(queue), FAWN_OK);
  CHECK_STATUS(how_it_ended(threads[0]), FAWN_INTERRUPTED);

  for (int n = 0; n < 4; n++) {
    CHECK(pthread_create(&threads[n], NULL, waits, &queue) == 0);
  }
  nanosleep(&moment, NULL);
  fawn_queue_free(queue);
  for (int n = 0; n < 4; n++) {
    int32_t status = how_it_ended(threads[n]);
    CHECK(status == FAWN_CLOSED || status == FAWN_ERR_HANDLE);
  }

  CHECK_STATUS(fawn_runtime_new(FAWN_ABI_VERSION, "{}", 2, &other, NULL), FAWN_OK);
  CHECK_STATUS(fawn_queue_new(other, "{}", 2, &queue, NULL), FAWN_OK);
  CHECK(pthread_create(&threads[0], NULL, waits, &queue) == 0);
  nanosleep(&moment, NULL);
  fawn_runtime_free(other);
  CHECK_STATUS(how_it_ended(threads[0]), FAWN_CLOSED);
  fawn_queue_free(queue);
}

int main(void) {
  CHECK_STATUS(fawn_runtime_new(FAWN_ABI_VERSION, "{}", 2, &runtime, NULL), FAWN_OK);
  timeouts();
  interrupts_are_not_lost();
  those_who_wait_are_told();
  fawn_runtime_free(runtime);
  check_nothing_left();
  return 0;
}
