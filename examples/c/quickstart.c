/* An agent that calls a function of this program, on a thread that is still there the next time.
 *
 *   quickstart FOLDER [QUESTION]
 *
 * FOLDER keeps the thread (one SQLite file). Without OPENAI_API_KEY a script stands in for the model; with
 * OPENAI_BASE_URL, OPENAI_API_KEY and FAWN_MODEL set, the real one answers. */
#include <fawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The function that the agent calls. */
static void get_weather(const char *city, char *answer, size_t size) {
    snprintf(answer, size, "It is 18 degrees and clear in %s.", city);
}

/* Where the value of "name" starts in a JSON text. Good enough for the events below; take a JSON library for more. */
static const char *member(const char *json, const char *name) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(json, quoted);
    return at ? at + strlen(quoted) : "";
}

/* Prints a JSON string, without its quotes. */
static void print_text(const char *json) {
    for (const char *c = json + 1; *c && *c != '"'; c++) {
        if (*c == '\\' && *++c == 'n') putchar('\n');
        else putchar(*c);
    }
    fflush(stdout);
}

/* The same into a buffer. */
static void copy_text(char *out, size_t size, const char *json) {
    size_t used = 0;
    for (const char *c = json + 1; *json == '"' && *c && *c != '"' && used + 1 < size; c++) {
        if (*c == '\\' && *++c == 'n') out[used++] = '\n';
        else out[used++] = *c;
    }
    out[used] = 0;
}

/* The text as a JSON string, with its quotes; whatever stands in it, the JSON around stays whole. Yours to free. */
static char *quote(const char *text) {
    char *json = malloc(6 * strlen(text) + 3), *end = json;
    if (!json) exit(1);
    *end++ = '"';
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20) { end += sprintf(end, "\\u%04x", c); continue; }
        if (c == '"' || c == '\\') *end++ = '\\';
        *end++ = (char)c;
    }
    *end++ = '"';
    *end = 0;
    return json;
}

/* Ends the program with the error object when a call failed. */
static void check(int32_t status, fawn_buf *error) {
    if (status >= 0) return;
    fprintf(stderr, "%s: %s\n", fawn_status_name(status), error && error->data ? error->data : "");
    exit(1);
}

static const char *SCRIPT = "{\"provider\":\"scripted\",\"replies\":["
    "{\"tool_calls\":[{\"name\":\"get_weather\",\"args\":{\"city\":\"Paris\"}}]},"
    "{\"content\":\"In Paris it is clear, with 18 degrees.\",\"chunks\":5,\"chunk_delay_ms\":60},"
    "{\"tool_calls\":[{\"name\":\"get_weather\",\"args\":{\"city\":\"Oslo\"}}]},"
    "{\"content\":\"Oslo has the same weather as Paris, which we spoke about before.\",\"chunks\":7,\"chunk_delay_ms\":60},"
    "{\"content\":\"My script ends here. Set OPENAI_API_KEY for a real model.\"}],\"repeat\":true}";

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : ".";
    const char *question = argc > 2 ? argv[2] : "What is the weather in Paris?";
    const char *model = getenv("FAWN_MODEL"), *url = getenv("OPENAI_BASE_URL");
    char json[4096], provider[2048];
    fawn_buf buf = {0};

    /* A runtime that keeps threads in FOLDER/fawn.db and lets this OS thread do all the work. */
    fawn_runtime runtime;
    char *quoted = quote(folder);
    snprintf(json, sizeof json,
             "{\"workers\":0,\"database\":{\"backend\":\"sqlite\",\"sqlite_dir\":%s}}", quoted);
    free(quoted);
    check(fawn_runtime_new(FAWN_ABI_VERSION, json, FAWN_NTS, &runtime, &buf), &buf);

    /* An agent: a model and one tool, which this program runs. */
    fawn_assembly agent;
    if (getenv("OPENAI_API_KEY"))
        snprintf(provider, sizeof provider,
                 "{\"provider\":\"openai\",\"api_key\":\"$OPENAI_API_KEY\",\"model\":\"%s\",\"base_url\":\"%s\"}",
                 model ? model : "gpt-4.1-mini", url ? url : "https://api.openai.com/v1");
    else
        snprintf(provider, sizeof provider, "%s", SCRIPT);
    snprintf(json, sizeof json,
             "{\"model\":%s,\"system_prompt\":\"Answer in one sentence. Use the tool for weather.\",\"tools\":[{"
             "\"name\":\"get_weather\",\"description\":\"The weather in a city\",\"parameters\":{\"type\":\"object\","
             "\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"]}}]}", provider);
    check(fawn_assembly_new(runtime, json, FAWN_NTS, &agent, &buf), &buf);

    /* The thread "demo", as an earlier start of this program left it. */
    fawn_thread thread;
    check(fawn_thread_open(runtime, "{\"thread_id\":\"demo\"}", FAWN_NTS, &thread, &buf), &buf);
    check(fawn_thread_state(thread, "{\"channels\":[\"messages\"],\"last_messages\":1}", FAWN_NTS, &buf), &buf);
    if (strstr(buf.data, "\"content\":")) {
        printf("(last time: ");
        print_text(member(buf.data, "content"));
        printf(")\n");
    }
    fawn_buf_free(&buf);

    fawn_queue queue;
    check(fawn_queue_new(runtime, "{}", FAWN_NTS, &queue, &buf), &buf);
    fawn_run run;
    printf("you:   %s\nagent: ", question);
    quoted = quote(question);
    size_t size = strlen(quoted) + 64;
    char *request = malloc(size);
    if (!request) return 1;
    snprintf(request, size, "{\"input\":{\"messages\":[{\"role\":\"user\",\"content\":%s}]}}", quoted);
    check(fawn_run_start(agent, thread, queue, request, FAWN_NTS, &run, &buf), &buf);
    free(request);
    free(quoted);

    int failed = 0;
    for (int running = 1; running;) {
        check(fawn_queue_take(queue, -1, 1, &buf), &buf); /* one event, as [{...}] */
        const char *type = member(buf.data, "type");
        if (!strncmp(type, "\"message_delta\"", 15) && *member(buf.data, "text")) {
            print_text(member(buf.data, "text"));
        } else if (!strncmp(type, "\"host_call\"", 11)) { /* the agent wants our function */
            char city[64] = "", answer[256];
            copy_text(city, sizeof city, member(buf.data, "city"));
            get_weather(city, answer, sizeof answer);
            printf("[calls get_weather(%s)] ", city);
            quoted = quote(answer);
            snprintf(json, sizeof json, "{\"ok\":{\"content\":%s}}", quoted);
            free(quoted);
            fawn_buf error = {0};
            check(fawn_call_finish(runtime, strtoull(member(buf.data, "call_id"), NULL, 10), json, FAWN_NTS, &error), &error);
        } else if (!strncmp(type, "\"run_end\"", 9)) {
            failed = strstr(buf.data, "\"error\":{") != NULL;
            if (failed) printf("\n%s", buf.data);
            running = 0;
        }
        fawn_buf_free(&buf);
    }
    printf("\n");
    fawn_run_free(run);
    fawn_queue_free(queue);
    fawn_thread_free(thread);
    fawn_assembly_free(agent);
    fawn_runtime_free(runtime);
    return failed;
}
