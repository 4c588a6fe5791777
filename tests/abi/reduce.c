/* Reducing without a runtime: the shapes of calls; what reducers answer is tested elsewhere. */

#include "check.h"

int main(void) {
  fawn_buf buf = rubbish();
  CHECK_ANSWER(fawn_reduce("artifacts", FAWN_NTS, "{\"existing\":null,\"updates\":[[\"a\"],[\"a\",\"b\"]]}",
                           FAWN_NTS, &buf),
               buf, "[\"a\",\"b\"]");
  /* Lengths count: what stands behind the text is not read. */
  CHECK_ANSWER(fawn_reduce("artifacts!", 9, "{\"existing\":null,\"updates\":[[\"a\"]]}!", 35, &buf), buf, "[\"a\"]");
  CHECK_ERROR(fawn_reduce("no_channel", FAWN_NTS, "{\"existing\":null,\"updates\":[]}", FAWN_NTS, &buf), buf,
              FAWN_ERR_UNKNOWN_CHANNEL, "no_channel");
  CHECK_ERROR(fawn_reduce("", 0, "{\"existing\":null,\"updates\":[]}", FAWN_NTS, &buf), buf,
              FAWN_ERR_UNKNOWN_CHANNEL, "");
  CHECK_ERROR(fawn_reduce(NULL, 3, "{}", 2, &buf), buf, FAWN_ERR_ARGUMENT, "`channel`");
  CHECK_ERROR(fawn_reduce("\xff", 1, "{}", 2, &buf), buf, FAWN_ERR_NOT_UTF8, "offset 0");
  CHECK_ERROR(fawn_reduce("artifacts", FAWN_NTS, "", 0, &buf), buf, FAWN_ERR_JSON_SYNTAX, "empty");
  CHECK_STATUS(fawn_reduce("artifacts", FAWN_NTS, "{\"existing\":null,\"updates\":[]}", FAWN_NTS, NULL), FAWN_OK);
  CHECK_ANSWER(fawn_messages_convert("{\"messages\":[]}", FAWN_NTS, &buf), buf, "[]");
  check_nothing_left();
  return 0;
}
