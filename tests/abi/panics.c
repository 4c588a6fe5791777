/* Panics of the library: each is a status and an error object, nothing is printed, and everything else goes on. */

#include "check.h"

/* Whether the library was built with calls that panic on purpose. */
static int can_panic(void) {
  fawn_buf buf;
  CHECK_STATUS(fawn_describe("build", FAWN_NTS, &buf), FAWN_OK);
  int can = strstr(buf.data, "\"test-panics\"") != NULL;
  fawn_buf_free(&buf);
  return can;
}

static void *panics(void *unused) {
  (void)unused;
  for (int n = 0; n < 200; n++) {
    fawn_buf buf = rubbish();
    CHECK_ERROR(fawn_describe("panic:planted", FAWN_NTS, &buf), buf, FAWN_ERR_PANIC, "planted (at src/ffi/meta.rs:");
    CHECK_STATUS(fawn_describe("panic:planted", FAWN_NTS, NULL), FAWN_ERR_PANIC);
    CHECK_ANSWER(fawn_describe("build", FAWN_NTS, &buf), buf, "\"abi\"");
  }
  return NULL;
}

int main(void) {
  fawn_buf buf;
  int can = can_panic();
  /* Set by whoever built the library that is meant to be tested here. */
  CHECK(can == (getenv("FAWN_EXPECT_PANICS") != NULL));
  if (!can) {
    CHECK_ERROR(fawn_describe("panic:planted", FAWN_NTS, &buf), buf, FAWN_ERR_UNKNOWN_VARIANT, "panic:planted");
    return 0;
  }
  objects o = make_objects();
  panics(NULL);
  on_threads(8, SMALL_STACK, panics, NULL);
  CHECK_ANSWER(fawn_runtime_stats(o.runtime, &buf), buf, "{");
  free_objects(o, "01234");
  check_nothing_left();
  return 0;
}
