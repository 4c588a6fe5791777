// What the tests share: runtimes with and without workers, scripted agents, and a check that nothing is left over.

package fawn_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	fawn "fawn/bindings/go"
)

// patience is how long the tests wait for what must happen. Far more than it takes, since machines are busy.
const patience = 30 * time.Second

// modes are the ways to drive a runtime; what runs is tested in both.
var modes = map[string]any{
	"workers": fawn.Object{"workers": 2},
	"driven":  fawn.Object{"workers": 0},
}

func inBothModes(t *testing.T, test func(t *testing.T, rt *fawn.Runtime)) {
	for name, config := range modes {
		t.Run(name, func(t *testing.T) {
			nothingLeft(t)
			test(t, newRuntime(t, config))
		})
	}
}

// nothingLeft checks when the test ends that it leaves no goroutine, no handle and no buffer behind.
func nothingLeft(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		const none = `{"handles":[],"buffers":{"count":0,"bytes":0}}`
		isClean := func() bool {
			return runtime.NumGoroutine() <= before && string(must(fawn.Describe("handles"))) == none
		}
		if eventually(t, "goroutines, handles and buffers are gone", isClean); !isClean() {
			stacks := make([]byte, 1<<16)
			t.Logf("%s\n%s", must(fawn.Describe("handles")), stacks[:runtime.Stack(stacks, true)])
		}
	})
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("not in time: %s", what)
			return
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func newRuntime(t *testing.T, config any) *fawn.Runtime {
	t.Helper()
	rt := must(fawn.NewRuntime(config))
	t.Cleanup(func() { rt.Close() })
	return rt
}

func newThread(t *testing.T, rt *fawn.Runtime) *fawn.Thread {
	t.Helper()
	thread := must(rt.OpenThread(t.Context(), nil))
	t.Cleanup(func() { thread.Close() })
	return thread
}

func newQueue(t *testing.T, rt *fawn.Runtime, config any) *fawn.Queue {
	t.Helper()
	queue := must(rt.NewQueue(config))
	t.Cleanup(func() { queue.Close() })
	return queue
}

// scripted is the configuration of an agent whose model says these replies, over and over.
func scripted(replies ...any) fawn.Object {
	return fawn.Object{"model": fawn.Object{"provider": "scripted", "replies": replies, "repeat": true}}
}

func says(text string) fawn.Object { return fawn.Object{"content": text} }

func calls(tool string, args any) fawn.Object {
	return fawn.Object{"tool_calls": []any{fawn.Object{"name": tool, "args": args}}}
}

func newAgent(t *testing.T, rt *fawn.Runtime, config any, host ...fawn.Host) *fawn.Assembly {
	t.Helper()
	agent := must(rt.NewAssembly(config, host...))
	t.Cleanup(func() { agent.Close() })
	return agent
}

// tool is a tool that takes anything.
func tool(name string, f fawn.HostFunc) fawn.Tool {
	return fawn.Tool{Name: name, Parameters: `{"type":"object"}`, Func: f}
}

func start(t *testing.T, ctx context.Context, agent *fawn.Assembly, thread *fawn.Thread, request any) *fawn.Run {
	t.Helper()
	run := must(agent.Start(ctx, thread, request))
	t.Cleanup(func() { run.Close() })
	return run
}

// withTool runs an agent that calls a function once, and gives the message that the model read as its answer.
func withTool(t *testing.T, rt *fawn.Runtime, f fawn.HostFunc) fawn.Message {
	t.Helper()
	agent := newAgent(t, rt, scripted(calls("f", fawn.Object{"n": 1}), says("done")), tool("f", f))
	thread := newThread(t, rt)
	must(agent.Run(t.Context(), thread, fawn.Ask("go")))
	messages := must(thread.Messages(t.Context(), -1))
	if len(messages) != 4 || messages[2].Type != "tool" {
		t.Fatalf("messages: %+v", messages)
	}
	return messages[2]
}

// logs catches what the binding reports.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func catchLogs(t *testing.T) *logs {
	l := &logs{}
	fawn.SetLogger(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { fawn.SetLogger(nil) })
	return l
}

// status reads a figure of this process, in the unit that the kernel gives, from /proc; 0 where there is none.
func status(name string) int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			figure, _ := strconv.Atoi(strings.Fields(rest)[0])
			return figure
		}
	}
	return 0
}

func unmarshal[T any](t *testing.T, text json.RawMessage) T {
	t.Helper()
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}
