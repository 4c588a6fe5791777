/* What the library says about itself, and what becomes of its buffers. */

#include "check.h"

static void versions_and_names(void) {
  CHECK(fawn_abi_version() == FAWN_ABI_VERSION);
  CHECK(strchr(fawn_version(), '.') != NULL);
  CHECK(strcmp(fawn_status_name(FAWN_OK), "FAWN_OK") == 0);
  CHECK(strcmp(fawn_status_name(FAWN_GONE), "FAWN_GONE") == 0);
  CHECK(strcmp(fawn_status_name(FAWN_ERR_HANDLE), "FAWN_ERR_HANDLE") == 0);
  CHECK(strcmp(fawn_status_name(FAWN_ERR_UNKNOWN_MESSAGE_ID), "FAWN_ERR_UNKNOWN_MESSAGE_ID") == 0);
  CHECK(strcmp(fawn_status_name(12345), "FAWN_UNKNOWN") == 0);
  CHECK(strcmp(fawn_status_name(INT32_MIN), "FAWN_UNKNOWN") == 0);
}

static void topics(void) {
  fawn_buf buf = rubbish();
  CHECK_ANSWER(fawn_describe(NULL, 0, &buf), buf, "\"topic\":\"build\"");
  CHECK_ANSWER(fawn_describe("", FAWN_NTS, &buf), buf, "\"topic\":\"build\"");
  CHECK_ANSWER(fawn_describe("index", FAWN_NTS, &buf), buf, "\"topic\":\"schemas\"");
  CHECK_ANSWER(fawn_describe("build", FAWN_NTS, &buf), buf, "\"abi\":1");
  CHECK_ANSWER(fawn_describe("errors", FAWN_NTS, &buf), buf, "{\"code\":\"handle\",\"status\":-102,");
  CHECK_ANSWER(fawn_describe("schemas", FAWN_NTS, &buf), buf, "{\"name\":\"error\",");
  CHECK_ANSWER(fawn_describe("schema/error", FAWN_NTS, &buf), buf, "\"retryable\"");
  CHECK_ERROR(fawn_describe("weather", FAWN_NTS, &buf), buf, FAWN_ERR_UNKNOWN_VARIANT, "build");
  CHECK_ERROR(fawn_describe("schema/weather", FAWN_NTS, &buf), buf, FAWN_ERR_UNKNOWN_VARIANT, "error");
  CHECK_STATUS(fawn_describe("build", FAWN_NTS, NULL), FAWN_OK);
  CHECK_STATUS(fawn_describe("weather", FAWN_NTS, NULL), FAWN_ERR_UNKNOWN_VARIANT);
}

static void living_handles(void) {
  fawn_runtime runtime;
  fawn_buf buf;
  char entry[80];
  CHECK_STATUS(fawn_runtime_new(FAWN_ABI_VERSION, "{}", 2, &runtime, NULL), FAWN_OK);
  snprintf(entry, sizeof entry, "{\"handle\":%llu,\"kind\":\"runtime\"}", (unsigned long long)runtime);
  CHECK_ANSWER(fawn_describe("handles", FAWN_NTS, &buf), buf, entry);
  fawn_runtime_free(runtime);
  check_nothing_left();
}

static void buffers(void) {
  fawn_buf buf, copy, other, made_up;
  fawn_buf_free(NULL);
  memset(&buf, 0, sizeof buf);
  fawn_buf_free(&buf);

  CHECK_STATUS(fawn_describe("index", FAWN_NTS, &buf), FAWN_OK);
  CHECK(strlen(buf.data) == buf.len);
  copy = buf;
  fawn_buf_free(&buf);
  CHECK(buf.data == NULL && buf.len == 0 && buf.owner == 0);
  fawn_buf_free(&buf);
  /* What was freed through the original is not freed again through a copy, whatever has its place now. */
  CHECK_STATUS(fawn_describe("build", FAWN_NTS, &other), FAWN_OK);
  fawn_buf_free(&copy);
  CHECK(copy.data == NULL);
  CHECK(strstr(other.data, "\"version\"") != NULL);

  /* Owners that were made up, and the right owner with other data. */
  uint64_t random = 88172645463325252u;
  for (int n = 0; n < 100000; n++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    made_up = other;
    made_up.owner = (uintptr_t)random;
    if (made_up.owner != other.owner) {
      fawn_buf_free(&made_up);
    }
  }
  for (unsigned bit = 0; bit < 8 * sizeof made_up.owner; bit++) {
    made_up = other;
    made_up.owner ^= (uintptr_t)1 << bit;
    fawn_buf_free(&made_up);
  }
  made_up = other;
  made_up.data = "not yours";
  fawn_buf_free(&made_up);
  CHECK(strstr(other.data, "\"version\"") != NULL);
  fawn_buf_free(&other);
}

int main(void) {
  versions_and_names();
  topics();
  buffers();
  living_handles();
  return 0;
}
