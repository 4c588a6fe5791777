/* The wake-up function of a queue: registered, replaced, cleared; its drop function runs once, whatever ends it. */

#include <stdatomic.h>

#include "check.h"

typedef struct host {
  atomic_int calls;
  atomic_int drops;
  /* Freed from inside the wake-up function. */
  fawn_queue frees;
} host;

static void on_wakeup(uintptr_t user_data) {
  host *h = (host *)user_data;
  fawn_buf buf = rubbish();
  CHECK(atomic_load(&h->drops) == 0);
  atomic_fetch_add(&h->calls, 1);
  /* No call of the library is carried out from here, and none deadlocks; freeing is. */
  CHECK_ERROR(fawn_queue_take(1, -1, 0, &buf), buf, FAWN_ERR_WRONG_THREAD, "wrong_thread");
  CHECK_ERROR(fawn_describe("build", FAWN_NTS, &buf), buf, FAWN_ERR_WRONG_THREAD, "wrong_thread");
  CHECK_STATUS(fawn_queue_interrupt(1), FAWN_ERR_WRONG_THREAD);
  CHECK(fawn_abi_version() == FAWN_ABI_VERSION);
  fawn_queue_free(h->frees);
}

static void on_drop(uintptr_t user_data) {
  host *h = (host *)user_data;
  CHECK(atomic_fetch_add(&h->drops, 1) == 0);
  CHECK_STATUS(fawn_queue_interrupt(1), FAWN_ERR_WRONG_THREAD);
}

/* A run puts at least its end into the queue, which was empty. */
static void start_and_finish_a_run(objects o) {
  fawn_run run;
  fawn_buf buf;
  CHECK_STATUS(fawn_run_start(o.assembly, o.thread, o.queue, REQUEST, FAWN_NTS, &run, NULL), FAWN_OK);
  CHECK_ANSWER(fawn_run_wait(run, -1, &buf), buf, "{");
  fawn_run_free(run);
}

static void empty_the_queue(fawn_queue queue) {
  int32_t status;
  fawn_buf buf;
  while ((status = fawn_queue_take(queue, 0, 0, &buf)) == FAWN_OK) {
    fawn_buf_free(&buf);
  }
  CHECK_STATUS(status, FAWN_TIMEOUT);
}

int main(void) {
  objects o = make_objects();
  fawn_buf buf = rubbish();
  host hosts[6];
  memset(hosts, 0, sizeof hosts);
  uintptr_t data[6];
  for (int n = 0; n < 6; n++) {
    data[n] = (uintptr_t)&hosts[n];
  }
  CHECK_ANSWER(fawn_run_wait(o.run, -1, &buf), buf, "{");
  empty_the_queue(o.queue);

  /* A call that fails registers nothing and drops nothing. */
  CHECK_ERROR(fawn_queue_set_wakeup(o.thread, on_wakeup, data[0], on_drop, &buf), buf, FAWN_ERR_HANDLE, "thread");
  CHECK(hosts[0].drops == 0);

  /* Replaced. */
  CHECK_EMPTY(fawn_queue_set_wakeup(o.queue, on_wakeup, data[0], on_drop, &buf), buf, FAWN_OK);
  start_and_finish_a_run(o);
  CHECK(hosts[0].calls >= 1);
  empty_the_queue(o.queue);
  CHECK_STATUS(fawn_queue_set_wakeup(o.queue, on_wakeup, data[1], on_drop, NULL), FAWN_OK);
  CHECK(hosts[0].drops == 1);
  int calls = hosts[0].calls;
  start_and_finish_a_run(o);
  CHECK(hosts[0].calls == calls && hosts[1].calls >= 1);
  empty_the_queue(o.queue);

  /* Cleared, twice; the arguments of clearing are ignored. */
  CHECK_STATUS(fawn_queue_set_wakeup(o.queue, NULL, data[2], on_drop, NULL), FAWN_OK);
  CHECK_STATUS(fawn_queue_set_wakeup(o.queue, NULL, 0, NULL, NULL), FAWN_OK);
  CHECK(hosts[1].drops == 1 && hosts[2].drops == 0);

  /* Without a drop function. */
  CHECK_STATUS(fawn_queue_set_wakeup(o.queue, on_wakeup, data[2], NULL, NULL), FAWN_OK);
  start_and_finish_a_run(o);
  CHECK(hosts[2].calls >= 1);
  empty_the_queue(o.queue);

  /* Queue freed. */
  CHECK_STATUS(fawn_queue_set_wakeup(o.queue, on_wakeup, data[3], on_drop, NULL), FAWN_OK);
  CHECK(hosts[2].drops == 0);
  fawn_queue_free(o.queue);
  CHECK(hosts[3].drops == 1);

  /* Queue freed by its own wake-up function. */
  CHECK_STATUS(fawn_queue_new(o.runtime, "{}", 2, &o.queue, NULL), FAWN_OK);
  hosts[4].frees = o.queue;
  CHECK_STATUS(fawn_queue_set_wakeup(o.queue, on_wakeup, data[4], on_drop, NULL), FAWN_OK);
  CHECK_STATUS(fawn_run_start(o.assembly, o.thread, o.queue, REQUEST, FAWN_NTS, NULL, NULL), FAWN_OK);
  while (atomic_load(&hosts[4].drops) == 0) {
    sched_yield();
  }
  CHECK(hosts[4].calls == 1 && hosts[4].drops == 1);
  CHECK_STATUS(fawn_queue_take(o.queue, 0, 0, NULL), FAWN_ERR_HANDLE);

  /* Runtime freed; the queue is freed later. */
  CHECK_STATUS(fawn_queue_new(o.runtime, "{}", 2, &o.queue, NULL), FAWN_OK);
  CHECK_STATUS(fawn_queue_set_wakeup(o.queue, on_wakeup, data[5], on_drop, NULL), FAWN_OK);
  free_objects(o, "0");
  CHECK(hosts[5].drops == 1);
  free_objects(o, "1234");
  for (int n = 0; n < 6; n++) {
    CHECK(hosts[n].drops == (n != 2));
  }
  check_nothing_left();
  return 0;
}
