/* Thread state without a runtime: fold writes into channels, as DeerFlow and LangGraph would. */
#include <fawn.h>
#include <stdio.h>

static void reduce(const char *what, const char *channel, const char *json) {
    fawn_buf out = {0};
    int32_t status = fawn_reduce(channel, FAWN_NTS, json, FAWN_NTS, &out);
    printf("%s\n  %s %s\n", what, fawn_status_name(status), out.data ? out.data : "");
    fawn_buf_free(&out);
}

int main(void) {
    reduce("A message without an id gets one; a known id replaces in place:", "messages",
           "{\"existing\":[],\"ids\":\"sequential\",\"updates\":["
           "[\"hello\",{\"role\":\"ai\",\"content\":\"draft\",\"id\":\"a\"}],"
           "[{\"role\":\"ai\",\"content\":\"final\",\"id\":\"a\"}]]}");
    reduce("Removing what is not there is an error, and it says where:", "messages",
           "{\"existing\":[],\"updates\":[[{\"role\":\"remove\",\"content\":\"\",\"id\":\"nobody\"}]]}");
    reduce("Artifacts keep their first place:", "artifacts",
           "{\"existing\":[\"a.txt\",\"b.txt\"],\"updates\":[[\"b.txt\",\"c.txt\"]]}");
    reduce("A finished delegation does not go back to running:", "delegations",
           "{\"existing\":[{\"id\":\"c1\",\"run_id\":\"r\",\"status\":\"completed\",\"created_at\":\"t0\"}],"
           "\"updates\":[[{\"id\":\"c1\",\"run_id\":\"r\",\"status\":\"in_progress\",\"created_at\":\"t1\"}]]}");

    fawn_buf out = {0};
    fawn_messages_convert("{\"messages\":[[\"user\",\"hi\"],{\"type\":\"ai\",\"content\":\"hello\"}]}", FAWN_NTS, &out);
    printf("Any accepted form in canonical form:\n  %s\n", out.data);
    fawn_buf_free(&out);
    return 0;
}
