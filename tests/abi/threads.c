/* Many OS threads, with large and with small stacks, on the same handles, freeing each other's buffers. */

#include "check.h"

enum { THREADS = 16, ROUNDS = 100, PLACES = 8 };

/* Where an OS thread leaves a buffer for whoever comes next. */
static struct {
  pthread_mutex_t lock;
  fawn_buf buf;
} places[PLACES];

static void leave(int place, fawn_buf *buf) {
  place %= PLACES;
  CHECK(pthread_mutex_lock(&places[place].lock) == 0);
  fawn_buf found = places[place].buf;
  places[place].buf = *buf;
  CHECK(pthread_mutex_unlock(&places[place].lock) == 0);
  if (found.data != NULL) {
    CHECK(found.data[0] == '{' && found.data[found.len] == 0);
  }
  fawn_buf_free(&found);
}

static void *works(void *argument) {
  const objects *o = argument;
  for (int round = 0; round < ROUNDS; round++) {
    fawn_buf buf = rubbish();
    fawn_queue queue;
    fawn_thread thread;
    CHECK_STATUS(fawn_runtime_stats(o->runtime, &buf), FAWN_OK);
    leave(round, &buf);
    CHECK_STATUS(fawn_thread_state(o->thread, "{}", 2, &buf), FAWN_OK);
    leave(round + 3, &buf);
    CHECK_STATUS(fawn_queue_new(o->runtime, "{}", 2, &queue, NULL), FAWN_OK);
    CHECK_EMPTY(fawn_queue_take(queue, 0, 0, &buf), buf, FAWN_TIMEOUT);
    CHECK_STATUS(fawn_queue_interrupt(queue), FAWN_OK);
    fawn_queue_free(queue);
    CHECK_ERROR(fawn_queue_take(queue, -1, 0, &buf), buf, FAWN_ERR_HANDLE, "freed");
    CHECK_STATUS(fawn_thread_open(o->runtime, "{}", 2, &thread, NULL), FAWN_OK);
    fawn_thread_free(thread);
    fawn_thread_free(thread);
    CHECK_ANSWER(fawn_reduce("artifacts", FAWN_NTS, "{\"existing\":null,\"updates\":[[\"a\"]]}", FAWN_NTS, &buf),
                 buf, "[\"a\"]");
    CHECK_STATUS(fawn_describe("schema/error", FAWN_NTS, &buf), FAWN_OK);
    leave(round + 5, &buf);
  }
  return NULL;
}

/* Several free the same handles while others use them; whoever comes too late is told. */
static void *uses_what_others_free(void *argument) {
  const objects *o = argument;
  for (int round = 0; round < 20; round++) {
    fawn_buf buf;
    int32_t status = fawn_thread_state(o->thread, "{}", 2, &buf);
    CHECK(status == FAWN_OK || status == FAWN_ERR_HANDLE || status == FAWN_ERR_CLOSED);
    fawn_buf_free(&buf);
    status = fawn_queue_take(o->queue, 1, 0, &buf);
    CHECK(status == FAWN_OK || status == FAWN_TIMEOUT || status == FAWN_CLOSED || status == FAWN_ERR_HANDLE);
    fawn_buf_free(&buf);
    status = fawn_run_wait(o->run, 1, &buf);
    CHECK(status == FAWN_OK || status == FAWN_TIMEOUT || status == FAWN_ERR_HANDLE || status == FAWN_ERR_CLOSED);
    fawn_buf_free(&buf);
    if (round == 10) {
      free_objects(*o, "30214");
    }
  }
  return NULL;
}

int main(void) {
  for (int n = 0; n < PLACES; n++) {
    CHECK(pthread_mutex_init(&places[n].lock, NULL) == 0);
  }
  objects o = make_objects();
  on_threads(THREADS, LARGE_STACK, works, &o);
  on_threads(THREADS, SMALL_STACK, works, &o);
  for (int n = 0; n < PLACES; n++) {
    fawn_buf_free(&places[n].buf);
  }
  free_objects(o, "01234");
  check_nothing_left();

  for (int n = 0; n < 20; n++) {
    o = make_objects();
    on_threads(4, SMALL_STACK, uses_what_others_free, &o);
  }
  check_nothing_left();
  return 0;
}
