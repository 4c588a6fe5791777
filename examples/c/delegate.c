/* An agent that gives three pieces of work away and hears of each while it is done.
 *
 *   delegate
 *
 * The lead agent delegates to three subagents, which work at once, each with a tool of this program. Every line that is printed
 * tells of one of them. At most three run at a time in all agents that share the object `subagents`; the rest waits in a line.
 * Scripts stand in for the models: `main` for the lead agent, `worker` for its subagents. */
#include <fawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The function that the subagents call. */
static void look_up(const char *city, char *answer, size_t size) {
    snprintf(answer, size, "%s: %d people for each tree.", city, (int)strlen(city));
}

/* Where the value of "name" starts in a JSON text. Good enough for the events below; take a JSON library for more. */
static const char *member(const char *json, const char *name) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(json, quoted);
    return at ? at + strlen(quoted) : "";
}

/* Prints at most `most` characters of a JSON string, on one line. */
static void print_text(const char *json, int most) {
    if (*json != '"') return;
    for (const char *c = json + 1; *c && *c != '"' && most > 0; c++, most--) {
        if (*c == '\\' && *++c == 'n') putchar(' ');
        else putchar(*c);
    }
}

/* Begins the line of a subagent. */
static void line(const char *event, const char *what) {
    printf("  [");
    print_text(member(event, "task_id"), 12);
    printf("] %-9s ", what);
}

/* Ends the program with the error object when a call failed. */
static void check(int32_t status, fawn_buf *error) {
    if (status >= 0) return;
    fprintf(stderr, "%s: %s\n", fawn_status_name(status), error && error->data ? error->data : "");
    exit(1);
}

#define TASK(id, city) "{\"name\":\"task\",\"id\":\"" id "\",\"args\":{\"subagent_type\":\"surveyor\"," \
    "\"description\":\"Trees of " city "\",\"prompt\":\"How many people are there for each tree in " city "?\"}}"

static const char *CONFIG = "{\"models\":["
    "{\"name\":\"main\",\"provider\":\"scripted\",\"replies\":["
      "{\"content\":\"I ask about each city.\",\"tool_calls\":[" TASK("oslo", "Oslo") "," TASK("rome", "Rome") "," TASK("lima", "Lima") "]},"
      "{\"content\":\"All three have about as many people for each tree.\"}]},"
    "{\"name\":\"worker\",\"provider\":\"scripted\",\"replies\":["
      "{\"content\":\"I look it up.\",\"tool_calls\":[{\"name\":\"look_up\",\"args\":{\"city\":\"the city\"}}],\"delay_ms\":150,"
       "\"usage\":{\"input_tokens\":40,\"output_tokens\":9}},"
      "{\"content\":\"About eight people for each tree.\",\"delay_ms\":200,\"usage\":{\"input_tokens\":60,\"output_tokens\":8}}]}],"
    "\"title\":{\"enabled\":false},"
    "\"subagents\":{\"custom_agents\":{\"surveyor\":{\"description\":\"Finds figures about cities\","
      "\"system_prompt\":\"Find the figure you are asked for. Use look_up.\",\"model\":\"worker\",\"tools\":[\"look_up\"],"
      "\"max_turns\":5,\"timeout_seconds\":60}}},"
    "\"tools\":[{\"name\":\"look_up\",\"description\":\"Figures about a city\",\"parameters\":{\"type\":\"object\","
      "\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"]}}]}";

int main(void) {
    char json[1024];
    fawn_buf buf = {0};
    fawn_runtime runtime;
    check(fawn_runtime_new(FAWN_ABI_VERSION, CONFIG, FAWN_NTS, &runtime, &buf), &buf);

    /* Three places for subagents, and a line of a hundred for those that find none. */
    fawn_subagents subagents;
    check(fawn_subagents_new(runtime, "{\"config\":{\"max_running\":3,\"max_queued\":100},\"max_total_per_run\":6}", FAWN_NTS,
                             &subagents, &buf), &buf);

    /* Any number of agents may name the object by its handle. */
    fawn_assembly agent;
    snprintf(json, sizeof json, "{\"factory\":\"lead\",\"configurable\":{\"subagent_enabled\":true,\"thinking_enabled\":false},"
             "\"subagent_runtime\":%llu}", (unsigned long long)subagents);
    check(fawn_assembly_new(runtime, json, FAWN_NTS, &agent, &buf), &buf);

    fawn_thread thread;
    fawn_queue queue;
    fawn_run run;
    check(fawn_thread_open(runtime, "{}", FAWN_NTS, &thread, &buf), &buf);
    check(fawn_queue_new(runtime, "{}", FAWN_NTS, &queue, &buf), &buf);
    check(fawn_run_start(agent, thread, queue,
                         "{\"input\":{\"messages\":[{\"role\":\"user\",\"content\":\"Compare the trees of Oslo, Rome and Lima.\"}]}}",
                         FAWN_NTS, &run, &buf), &buf);

    int failed = 0;
    for (int running = 1; running;) {
        check(fawn_queue_take(queue, -1, 1, &buf), &buf); /* one event, as [{...}] */
        const char *type = member(buf.data, "type"), *data = member(buf.data, "data");
        if (!strncmp(type, "\"task_started\"", 14)) {
            line(buf.data, "started");
            print_text(member(data, "description"), 60);
            putchar('\n');
        } else if (!strncmp(type, "\"task_running\"", 14)) { /* a step: a reply of its model, or the result of a tool */
            line(buf.data, "step");
            print_text(member(data, "content"), 60);
            putchar('\n');
        } else if (!strncmp(type, "\"task_completed\"", 16)) {
            line(buf.data, "done");
            print_text(member(data, "result"), 60);
            printf(" (%ld tokens)\n", strtol(member(data, "total_tokens"), NULL, 10));
        } else if (!strncmp(type, "\"task_", 6)) { /* failed, cancelled, timed out */
            line(buf.data, "ended");
            print_text(member(data, "error"), 60);
            putchar('\n');
        } else if (!strncmp(type, "\"host_call\"", 11)) { /* a subagent wants our function: the event says which */
            char city[64] = "", answer[128];
            sscanf(member(data, "city"), "\"%63[^\"]", city);
            look_up(city, answer, sizeof answer);
            line(buf.data, "calls");
            printf("look_up(%s)\n", city);
            snprintf(json, sizeof json, "{\"ok\":{\"content\":\"%s\"}}", answer);
            fawn_buf error = {0};
            check(fawn_call_finish(runtime, strtoull(member(data, "call_id"), NULL, 10), json, FAWN_NTS, &error), &error);
        } else if (!strncmp(type, "\"run_end\"", 9)) {
            failed = !strstr(data, "\"status\":\"success\"");
            printf("agent: ");
            print_text(member(data, "content"), 200);
            printf("\n");
            running = 0;
        }
        fflush(stdout);
        fawn_buf_free(&buf);
    }
    fawn_run_free(run);
    fawn_queue_free(queue);
    fawn_thread_free(thread);
    fawn_assembly_free(agent);
    fawn_subagents_free(subagents);
    fawn_runtime_free(runtime);
    return failed;
}
