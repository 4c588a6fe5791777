/* One queue, two runs at the same time, one of them cancelled while it talks. */
#include <fawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int32_t status, fawn_buf *error) {
    if (status >= 0) return;
    fprintf(stderr, "%s: %s\n", fawn_status_name(status), error->data ? error->data : "");
    exit(1);
}

int main(void) {
    fawn_buf buf = {0};
    fawn_runtime runtime;
    check(fawn_runtime_new(FAWN_ABI_VERSION, "{}", FAWN_NTS, &runtime, &buf), &buf);

    fawn_assembly agent;
    check(fawn_assembly_new(runtime,
        "{\"model\":{\"provider\":\"scripted\",\"repeat\":true,\"replies\":[{\"content\":"
        "\"one two three four five six seven eight nine ten\",\"chunks\":10,\"chunk_delay_ms\":50}]}}",
        FAWN_NTS, &agent, &buf), &buf);
    fawn_queue queue;
    check(fawn_queue_new(runtime, "{}", FAWN_NTS, &queue, &buf), &buf);

    fawn_thread threads[2];
    fawn_run runs[2];
    for (int i = 0; i < 2; i++) {
        char json[128];
        check(fawn_thread_open(runtime, "{}", FAWN_NTS, &threads[i], &buf), &buf);
        snprintf(json, sizeof json, "{\"run_id\":\"run-%c\",\"input\":{\"messages\":[\"Count, please.\"]}}", 'a' + i);
        check(fawn_run_start(agent, threads[i], queue, json, FAWN_NTS, &runs[i], &buf), &buf);
    }

    for (int ended = 0, cancelled = 0; ended < 2;) {
        check(fawn_queue_take(queue, -1, 1, &buf), &buf);
        printf("%s\n", buf.data);
        /* The first piece of text of run-b is enough for us. */
        if (!cancelled && strstr(buf.data, "\"run_id\":\"run-b\"") && strstr(buf.data, "message_delta")) {
            fawn_buf answer = {0};
            check(fawn_run_submit(runs[1], "{\"op\":\"cancel\",\"reason\":\"heard enough\"}", FAWN_NTS, &answer), &answer);
            fawn_buf_free(&answer);
            cancelled = 1;
        }
        if (strstr(buf.data, "\"type\":\"run_end\"")) ended++;
        fawn_buf_free(&buf);
    }

    /* What run-b had said when it was cancelled is in its thread. */
    check(fawn_thread_state(threads[1], "{\"channels\":[\"messages\"]}", FAWN_NTS, &buf), &buf);
    printf("%s\n", buf.data);
    fawn_buf_free(&buf);

    check(fawn_runtime_shutdown(runtime, 1000, &buf), &buf);
    fawn_buf_free(&buf);
    fawn_runtime_free(runtime);
    return 0;
}
