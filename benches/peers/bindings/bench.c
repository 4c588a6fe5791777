/* The yardstick of the bindings' benchmarks: the same calls from C, without a language between. Prints one JSON object a line.
 *
 * state_small: fawn_thread_state of a thread with four short messages, and the release of its text.
 * events:      1,000 runs, 64 at a time, driven by one worker thread of the library, while the main thread takes with
 *              max_events 0; from the first start to the last run_end. The scripted reply has 100 tool calls whose arguments
 *              are cut off: each comes as a delta that does not merge with the one before, and none is carried out. So a run
 *              has 107 events, most of them message_delta events of some 270 bytes.
 *
 * Each figure is the best of several rounds, so that a pause of the machine does not count. */
#include <fawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 7, READS = 20000, RUNS = 1000, WINDOW = 64, CALLS = 100 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(int32_t status, fawn_buf *buf) {
    if (status == FAWN_OK) return;
    fprintf(stderr, "%s: %s\n", fawn_status_name(status), buf->data ? buf->data : "");
    exit(1);
}

static void state_small(void) {
    fawn_runtime runtime;
    fawn_thread thread;
    fawn_buf buf;
    check(fawn_runtime_new(FAWN_ABI_VERSION, "{\"workers\":0}", FAWN_NTS, &runtime, &buf), &buf);
    check(fawn_thread_open(runtime, "{}", FAWN_NTS, &thread, &buf), &buf);
    const char *write = "{\"values\":{\"messages\":[{\"role\":\"user\",\"content\":\"What is the weather in Paris?\"},"
                        "{\"role\":\"ai\",\"content\":\"It is clear, with 18 degrees.\"},"
                        "{\"role\":\"user\",\"content\":\"And in Oslo?\"},"
                        "{\"role\":\"ai\",\"content\":\"The same.\"}]}}";
    check(fawn_thread_update(thread, write, FAWN_NTS, &buf), &buf);
    fawn_buf_free(&buf);
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now();
        for (int n = 0; n < READS; n++) {
            check(fawn_thread_state(thread, "{}", 2, &buf), &buf);
            fawn_buf_free(&buf);
        }
        double took = (now() - begin) / READS;
        if (took < best) best = took;
    }
    printf("{\"lang\":\"c\",\"case\":\"state_small\",\"ns\":%.1f}\n", best * 1e9);
    fawn_thread_free(thread);
    fawn_runtime_free(runtime);
}

/* How often a text comes in another one. */
static int count(const char *text, const char *what) {
    int count = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what)) count++;
    return count;
}

static void events(void) {
    fawn_runtime runtime;
    fawn_assembly agent;
    fawn_queue queue;
    fawn_buf buf;
    check(fawn_runtime_new(FAWN_ABI_VERSION, "{\"workers\":1}", FAWN_NTS, &runtime, &buf), &buf);
    static char model[64 * CALLS + 256];
    strcpy(model, "{\"model\":{\"provider\":\"scripted\",\"replies\":[{\"content\":\"Done.\",\"invalid_tool_calls\":[");
    for (int n = 0; n < CALLS; n++) {
        strcat(model, n ? "," : "");
        strcat(model, "{\"name\":\"get_weather\",\"args\":\"{\"}");
    }
    strcat(model, "]}]}}");
    check(fawn_assembly_new(runtime, model, FAWN_NTS, &agent, &buf), &buf);
    check(fawn_queue_new(runtime, "{}", FAWN_NTS, &queue, &buf), &buf);
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int started = 0, ended = 0, taken = 0;
        double begin = now();
        while (ended < RUNS) {
            for (; started < RUNS && started - ended < WINDOW; started++) {
                fawn_thread thread;
                check(fawn_thread_open(runtime, "{}", 2, &thread, &buf), &buf);
                const char *request = "{\"input\":{\"messages\":[{\"role\":\"user\",\"content\":\"Weather?\"}]}}";
                check(fawn_run_start(agent, thread, queue, request, strlen(request), NULL, &buf), &buf);
                fawn_thread_free(thread);
            }
            check(fawn_queue_take(queue, -1, 0, &buf), &buf);
            taken += count(buf.data, "{\"seq\":");
            ended += count(buf.data, "\"type\":\"run_end\"");
            fawn_buf_free(&buf);
        }
        double per_s = taken / (now() - begin);
        if (per_s > best) best = per_s;
    }
    printf("{\"lang\":\"c\",\"case\":\"events\",\"per_s\":%.0f}\n", best);
    fawn_queue_free(queue);
    fawn_assembly_free(agent);
    fawn_runtime_free(runtime);
}

int main(void) {
    state_small();
    events();
    return 0;
}
