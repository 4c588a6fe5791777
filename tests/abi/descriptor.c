/* Descriptors as data, without a runtime: the shapes of calls; what is told and drawn is tested elsewhere. */

#include "check.h"

#define AGENT(model, tools)                                                                                            \
  "{\"namespace\":\"deerflow\",\"agent_name\":\"a\",\"effective_model\":\"" model "\",\"model_parameters\":{},"         \
  "\"thinking_enabled\":false,\"reasoning_effort\":null,\"base_prompt_hash\":\"p\",\"tools\":" tools                     \
  ",\"middlewares\":[],\"deferred_tool_names\":[],\"enabled_skills\":[],\"effective_policies\":{}}"
#define TOOL(name) "[{\"name\":\"" name "\",\"description_hash\":\"d\",\"schema_hash\":\"s\",\"source\":\"host\"}]"
#define PAIR(before, after) "{\"before\":" before ",\"after\":" after "}"

static void differences(void) {
  fawn_buf buf = rubbish();
  const char *pair = PAIR(AGENT("m", "[]"), AGENT("m", "[]"));
  CHECK_ANSWER(fawn_descriptor_diff(pair, FAWN_NTS, &buf), buf, "{\"same\":true,");
  pair = PAIR(AGENT("fast", "[]"), AGENT("slow", TOOL("read")));
  CHECK_ANSWER(fawn_descriptor_diff(pair, FAWN_NTS, &buf), buf, "\"what\":\"model_changed\"");
  CHECK_ANSWER(fawn_descriptor_diff(pair, strlen(pair), &buf), buf, "\"path\":\"/tools/0\"");
  CHECK_ANSWER(fawn_descriptor_diff(pair, FAWN_NTS, &buf), buf,
               "\"text\":\"The agent is another. The model changed from \\\"fast\\\" to \\\"slow\\\". "
               "Tool \\\"read\\\" was added.\"");
  CHECK_STATUS(fawn_descriptor_diff(pair, FAWN_NTS, NULL), FAWN_OK);
  CHECK_ERROR(fawn_descriptor_diff(PAIR("null", "{}"), FAWN_NTS, &buf), buf, FAWN_ERR_WRONG_TYPE,
              "\"path\":\"/before\"");
  CHECK_ERROR(fawn_descriptor_diff("{}", FAWN_NTS, &buf), buf, FAWN_ERR_MISSING_MEMBER, "\"path\":\"/before\"");
  pair = PAIR(AGENT("m", "[]"), AGENT("m", "[{\"name\":\"read\"}]"));
  CHECK_ERROR(fawn_descriptor_diff(pair, FAWN_NTS, &buf), buf, FAWN_ERR_MISSING_MEMBER,
              "\"path\":\"/after/tools/0/description_hash\"");
}

static void diagrams(void) {
  fawn_buf buf = rubbish();
  CHECK_ANSWER(fawn_descriptor_diagram(AGENT("m", TOOL("read")), FAWN_NTS, &buf), buf,
               "{\"mermaid\":\"flowchart TD\\n");
  /* A name that tries to end its label. */
  CHECK_ANSWER(fawn_descriptor_diagram(AGENT("m", TOOL("x\\\"]\\nclick t0_0")), FAWN_NTS, &buf), buf,
               "[\\\"x#34;#93;\xEF\xBF\xBD" "click t0_0\\\"]");
  CHECK_ERROR(fawn_descriptor_diagram("null", FAWN_NTS, &buf), buf, FAWN_ERR_WRONG_TYPE, "");
  CHECK_ERROR(fawn_descriptor_diagram("{}", FAWN_NTS, &buf), buf, FAWN_ERR_MISSING_MEMBER, "\"path\":\"/namespace\"");
}

int main(void) {
  differences();
  diagrams();
  check_nothing_left();
  return 0;
}
