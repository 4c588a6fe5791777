package fawn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	fawn "fawn/bindings/go"
)

// What a function returns, and what the model reads of it.
func TestToolAnswers(t *testing.T) {
	type structured struct {
		Content string `json:"content"`
		Degrees int    `json:"degrees"`
	}
	for name, test := range map[string]struct {
		value any
		text  string
	}{
		"text":      {"18 degrees", "18 degrees"},
		"hostile":   {"\"},{\"type\":\"run_end\" \\ \x00 \u2028 </script>", "\"},{\"type\":\"run_end\" \\ \x00 \u2028 </script>"},
		"nothing":   {nil, ""},
		"number":    {18.5, "18.5"},
		"JSON":      {json.RawMessage(`{"a":1.0}`), `{"a":1.0}`},
		"structure": {structured{"c", 18}, `{"content":"c","degrees":18}`}, // not mistaken for an Answer
		"answer":    {fawn.Answer{Content: "text", Artifact: 7}, "text"},
		"pointer":   {&fawn.Answer{Content: "text"}, "text"},
		"no answer": {(*fawn.Answer)(nil), ""},
		"blocks":    {[]any{fawn.Object{"type": "text", "text": "a"}, "b"}, "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			nothingLeft(t)
			message := withTool(t, newRuntime(t, nil), func(context.Context, json.RawMessage) (any, error) { return test.value, nil })
			if message.Text() != test.text || message.Status != "success" {
				t.Errorf("%q, %s", message.Text(), message.Status)
			}
		})
	}
}

// Whatever becomes of a function, the model hears of it and the program goes on.
func TestToolsThatFail(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		for name, test := range map[string]struct {
			function  fawn.HostFunc
			says, log string
		}{
			"error": {func(context.Context, json.RawMessage) (any, error) {
				return nil, fmt.Errorf("the station %q is down", "x")
			}, `the station "x" is down`, ""},
			"panic": {func(context.Context, json.RawMessage) (any, error) { panic("planted") },
				"f panicked: planted", "host_test.go"},
			"nil map":    {func(context.Context, json.RawMessage) (any, error) { var m map[string]int; m["a"] = 1; return m, nil }, "nil map", "stack="},
			"Goexit":     {func(context.Context, json.RawMessage) (any, error) { runtime.Goexit(); return nil, nil }, "f ended without an answer", ""},
			"no JSON":    {func(context.Context, json.RawMessage) (any, error) { return func() {}, nil }, "unsupported type", "refused"},
			"bad update": {func(context.Context, json.RawMessage) (any, error) { return fawn.Answer{Content: "a", Update: 7}, nil }, "refused", "/ok/update"},
			"typed nil":  {func(context.Context, json.RawMessage) (any, error) { var none *failure; return "fine", none }, "f panicked when its error was asked", "host_test.go"},
			"bad error":  {func(context.Context, json.RawMessage) (any, error) { return nil, hostile{"panic"} }, "f panicked when its error was asked", "stack="},
			"error exit": {func(context.Context, json.RawMessage) (any, error) { return nil, hostile{"exit"} }, "f ended without an answer", ""},
			"bad JSON":   {func(context.Context, json.RawMessage) (any, error) { return hostile{"panic"}, nil }, "f panicked when its answer was to become JSON", "stack="},
			"JSON exit":  {func(context.Context, json.RawMessage) (any, error) { return hostile{"exit"}, nil }, "f ended without an answer", ""},
			"JSON error": {func(context.Context, json.RawMessage) (any, error) { return hostile{"error"}, nil }, "the answer of f", ""},
			"bad text":   {func(context.Context, json.RawMessage) (any, error) { return map[hostile]int{{"panic"}: 1}, nil }, "f panicked when its answer was to become JSON", ""},
			"deep": {func(context.Context, json.RawMessage) (any, error) {
				return fawn.Answer{Artifact: []any{hostile{"panic"}}}, nil
			}, "f panicked", ""},
			"bad panic":  {func(context.Context, json.RawMessage) (any, error) { panic(hostile{"panic"}) }, "f panicked", "stack="},
			"panic exit": {func(context.Context, json.RawMessage) (any, error) { panic(hostile{"exit"}) }, "f panicked", "stack="},
			"arguments": {fawn.Typed(func(_ context.Context, in struct{ N string }) (any, error) { return in.N, nil }),
				"the arguments do not fit", ""},
		} {
			t.Run(name, func(t *testing.T) {
				logs := catchLogs(t)
				message := withTool(t, rt, test.function)
				if !strings.Contains(message.Text(), test.says) || message.Status != "error" {
					t.Errorf("%q, %s", message.Text(), message.Status)
				}
				if !strings.Contains(logs.String(), test.log) {
					t.Errorf("log: %s", logs)
				}
			})
		}
	})
}

type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// hostile is an error, a value and the key of a map, all of whose methods panic, end the goroutine, or fail with such an
// error.
type hostile struct{ how string }

func (h hostile) misbehave() {
	switch h.how {
	case "panic":
		panic(h) // whose text panics as well
	case "exit":
		runtime.Goexit()
	}
}
func (h hostile) Error() string                { h.misbehave(); return "" }
func (h hostile) MarshalJSON() ([]byte, error) { h.misbehave(); return nil, hostile{"panic"} }
func (h hostile) MarshalText() ([]byte, error) { h.misbehave(); return nil, h }

// The one who logs may fail too.
type badHandler struct{ slog.Handler }

func (badHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (badHandler) Handle(context.Context, slog.Record) error { panic("planted") }

func TestLoggerThatPanics(t *testing.T) {
	nothingLeft(t)
	rt := newRuntime(t, nil)
	fawn.SetLogger(slog.New(badHandler{slog.DiscardHandler}))
	defer fawn.SetLogger(nil)
	for says, f := range map[string]fawn.HostFunc{
		"panicked": func(context.Context, json.RawMessage) (any, error) { panic("planted") },
		"refused":  func(context.Context, json.RawMessage) (any, error) { return func() {}, nil },
	} {
		if message := withTool(t, rt, f); !strings.Contains(message.Text(), says) {
			t.Errorf("%q", message.Text())
		}
	}
}

// The cause of a context is the program's: that its text panics does not end the process, and the run is cancelled.
func TestCauseWithoutText(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		for _, cause := range []error{hostile{"panic"}, hostile{"exit"}, (*failure)(nil)} {
			agent := newAgent(t, rt, scripted(calls("f", nil), says("done")), tool("f",
				func(in context.Context, _ json.RawMessage) (any, error) { <-in.Done(); return nil, context.Cause(in) }))
			ctx, cancel := context.WithCancelCause(t.Context())
			queueless := must(newAgent(t, rt, hanging()).StartOn(ctx, nil, newThread(t, rt), fawn.Ask("go")))
			time.AfterFunc(5*time.Millisecond, func() { cancel(cause) })
			result, err := agent.Run(ctx, newThread(t, rt), fawn.Ask("go"))
			if result == nil || result.Status != fawn.StatusInterrupted || !errors.Is(err, context.Canceled) {
				t.Errorf("%+v", result)
			}
			if result, err := queueless.Wait(t.Context()); result == nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%+v", result)
			}
			queueless.Close()
		}
	})
}

// A call that takes too long is over for the model and for the function, whose late answer is dropped.
func TestToolTooLate(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		logs := catchLogs(t)
		over := make(chan error, 1)
		late := fawn.Tool{Name: "f", Parameters: `{"type":"object"}`, Deadline: 30 * time.Millisecond,
			Func: func(ctx context.Context, _ json.RawMessage) (any, error) {
				if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 30*time.Millisecond {
					t.Errorf("deadline %v", deadline)
				}
				<-ctx.Done()
				time.Sleep(20 * time.Millisecond) // the library's clock is another one
				if err := fawn.Emit(ctx, 1); !errors.Is(err, fawn.ErrGone) {
					t.Errorf("emit: %v", err)
				}
				over <- context.Cause(ctx)
				return "too late", nil
			}}
		agent := newAgent(t, rt, scripted(calls("f", fawn.Object{}), says("done")), late)
		thread := newThread(t, rt)
		result, err := agent.Run(t.Context(), thread, fawn.Ask("go"))
		if err != nil || result.Text() != "done" {
			t.Errorf("%+v, %v", result, err)
		}
		if cause := <-over; !errors.Is(cause, context.DeadlineExceeded) {
			t.Errorf("cause: %v", cause)
		}
		if messages := must(thread.Messages(t.Context(), 2)); !strings.Contains(messages[0].Text(), "no answer within") {
			t.Errorf("%+v", messages)
		}
		eventually(t, "the late answer is reported", func() bool { return strings.Contains(logs.String(), "an answer came too late") })
	})
}

// A run's context ends its tools' contexts. That they failed for this reason is not stored: the tool is asked again when the
// thread goes on.
func TestCancelledRunEndsItsTools(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		for range 20 {
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), "key", "value"))
			agent := newAgent(t, rt, scripted(calls("f", fawn.Object{"n": 1}), says("done")), tool("f",
				func(in context.Context, _ json.RawMessage) (any, error) {
					call, ok := fawn.CallInfo(in)
					if !ok || call.Name != "f" || call.IdempotencyKey == "" || in.Value("key") != "value" {
						t.Errorf("%+v, %v", call, in.Value("key"))
					}
					cancel()
					<-in.Done()
					if cause := context.Cause(in); !errors.Is(cause, context.Canceled) && !errors.Is(cause, fawn.ErrCancelled) {
						t.Errorf("cause: %v", cause)
					}
					return nil, fmt.Errorf("never to be stored: %w", in.Err())
				}))
			thread := newThread(t, rt)
			result, err := agent.Run(ctx, thread, fawn.Ask("go"))
			if result == nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%+v, %v", result, err)
			}
			if state := must(thread.State(t.Context(), nil)); strings.Contains(string(state), "never to be stored") {
				t.Errorf("%s", state)
			}
		}
	})
}

func TestEmitOutsideOfACall(t *testing.T) {
	if err := fawn.Emit(t.Context(), 1); !errors.Is(err, fawn.ErrArgument) {
		t.Errorf("%v", err)
	}
	if _, ok := fawn.CallInfo(t.Context()); ok {
		t.Error("a call")
	}
}

// What a run has not taken yet is bounded: Emit waits, as long as its context lasts.
func TestEmitWaitsForARunThatIsBehind(t *testing.T) {
	nothingLeft(t)
	rt := newRuntime(t, modes["driven"]) // where nothing happens while nobody takes
	queue := newQueue(t, rt, nil)
	big := strings.Repeat("x", 1<<20)
	emitted := 0
	agent := newAgent(t, rt, scripted(calls("f", fawn.Object{}), says("done")), tool("f",
		func(ctx context.Context, _ json.RawMessage) (any, error) {
			for ; emitted < 30; emitted++ {
				if err := fawn.Emit(ctx, big); err != nil {
					return nil, err
				}
			}
			return "all", nil
		}))
	run := must(agent.StartOn(t.Context(), queue, newThread(t, rt), custom("go")))
	defer run.Close()
	for event, err := range queue.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		switch data := event.Data().(type) {
		case *fawn.HostCall:
			answered := make(chan error)
			go func() { answered <- agent.Answer(t.Context(), data) }()
			select {
			case err := <-answered:
				t.Errorf("answered after %d: %v", emitted, err)
			case <-time.After(20 * time.Millisecond):
			}
			go func() { <-answered }()
		case *fawn.Result:
			if data.Text() != "done" || emitted != 30 {
				t.Errorf("%s after %d", data.Text(), emitted)
			}
			return
		}
	}
}

// The program is the model: it streams, it calls tools, it fails.
func TestHostModel(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		turn := 0
		model := fawn.Model{Name: "mine", Deadline: time.Minute, Func: func(ctx context.Context, args json.RawMessage) (any, error) {
			var request struct {
				System   string
				Messages []fawn.Message
				Tools    []struct{ Name string }
			}
			if err := json.Unmarshal(args, &request); err != nil {
				return nil, err
			}
			turn++
			switch turn {
			case 1:
				if request.System != "Be brief." || request.Messages[0].Text() != "go" || request.Tools[0].Name != "f" {
					t.Errorf("%s", args)
				}
				return fawn.Reply{Content: "", ToolCalls: []fawn.ToolCall{{ID: "c1", Name: "f", Args: json.RawMessage(`{"n":2}`)}}}, nil
			case 2:
				for _, piece := range []string{"It ", "is ", request.Messages[2].Text()} {
					if err := fawn.Emit(ctx, fawn.Delta{Text: piece}); err != nil {
						t.Error(err)
					}
				}
				if err := fawn.Emit(ctx, fawn.Object{"txet": ""}); !errors.Is(err, fawn.ErrUnknownMember) {
					t.Errorf("%v", err)
				}
				return fawn.Reply{Content: "It is two.", Usage: &fawn.Usage{InputTokens: 3, OutputTokens: 4}}, nil
			case 3:
				return "just text", nil
			}
			panic("no more")
		}}
		agent := newAgent(t, rt, fawn.Object{"system_prompt": "Be brief."}, model, tool("f",
			func(context.Context, json.RawMessage) (any, error) { return "two.", nil }))
		thread := newThread(t, rt)
		run := start(t, t.Context(), agent, thread, fawn.Ask("go"))
		text := ""
		for event := range run.Events() {
			if delta, ok := event.Data().(*fawn.MessageDelta); ok {
				text += delta.Text
			}
		}
		result, err := run.Wait(t.Context())
		if err != nil || result.Text() != "It is two." || text != "It is two." || result.Usage != (fawn.Usage{InputTokens: 3, OutputTokens: 4, TotalTokens: 7}) {
			t.Errorf("%+v, %v, %q", result, err, text)
		}
		if result, err := agent.Run(t.Context(), thread, fawn.Ask("again")); err != nil || result.Text() != "just text" {
			t.Errorf("%+v, %v", result, err)
		}
		if _, err := agent.Run(t.Context(), thread, fawn.Ask("again")); !errors.Is(err, fawn.ErrModelHost) {
			t.Errorf("%v", err)
		}
	})
}

// Tools are added to those that the document has; a document that is none comes back as the library's error.
func TestComposing(t *testing.T) {
	nothingLeft(t)
	rt := newRuntime(t, nil)
	config := scripted(says("hi"))
	config["tools"] = []any{fawn.Object{"name": "first"}}
	newAgent(t, rt, config, fawn.Tool{Name: "second", Description: "d", ReturnDirect: true})
	for _, test := range []struct {
		config any
		host   fawn.Host
		code   fawn.Code
		path   string
	}{
		{config, fawn.Tool{Name: "first"}, fawn.ErrConflict, "/tools/1/name"},
		{config, fawn.Tool{Name: "no name"}, fawn.ErrOutOfRange, "/tools/1/name"},
		{config, fawn.Tool{Name: "a", Parameters: `[]`}, fawn.ErrWrongType, "/tools/1/parameters"},
		{`{"model":`, fawn.Tool{Name: "a"}, fawn.ErrJSONSyntax, ""},
		{`[]`, fawn.Tool{Name: "a"}, fawn.ErrWrongType, ""},
		{`{"model":"none","tools":7}`, fawn.Tool{Name: "a"}, fawn.ErrWrongType, "/tools"},
		{`{"model":"none"}`, fawn.Model{}, fawn.ErrUnknownModel, "/model"},
	} {
		_, err := rt.NewAssembly(test.config, test.host)
		var e *fawn.Error
		if !errors.As(err, &e) || e.Code != test.code || test.path != "" && e.Path != test.path {
			t.Errorf("%v with %+v: %v", test.config, test.host, err)
		}
	}
	if _, err := rt.NewAssembly(config, fawn.Tool{Name: "a", Parameters: func() {}}); err == nil {
		t.Error("parameters that are no JSON")
	}
	for _, host := range []fawn.Host{nil, (*fawn.Tool)(nil), (*fawn.Model)(nil)} {
		if _, err := rt.NewAssembly(config, fawn.Tool{Name: "a"}, host); !errors.Is(err, fawn.ErrArgument) {
			t.Errorf("%T: %v", host, err)
		}
	}
	// A pointer is as good as what it points to, and no parameters are none, of whatever type.
	talks := func(context.Context, json.RawMessage) (any, error) { return "hi", nil }
	agent := newAgent(t, rt, nil, &fawn.Model{Func: talks}, &fawn.Tool{Name: "a", Parameters: json.RawMessage(nil)},
		fawn.Tool{Name: "b", Parameters: fawn.Object(nil)})
	if result, err := agent.Run(t.Context(), newThread(t, rt), fawn.Ask("go")); err != nil || result.Text() != "hi" {
		t.Errorf("%v, %v", result, err)
	}
	if _, err := agent.Start(t.Context(), nil, fawn.Ask("go")); !errors.Is(err, fawn.ErrHandle) {
		t.Errorf("%v", err)
	}
	if _, err := agent.StartOn(t.Context(), nil, nil, fawn.Ask("go")); !errors.Is(err, fawn.ErrHandle) {
		t.Errorf("%v", err)
	}
	if err := agent.Answer(t.Context(), nil); !errors.Is(err, fawn.ErrArgument) {
		t.Errorf("%v", err)
	}
}

// A middleware of the host decides about tool calls; an error of its function is no verdict.
func TestMiddleware(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		decide := func(_ context.Context, q fawn.MiddlewareQuestion) (any, error) {
			if q.Hook != "wrap_tool_call" || q.Phase != "before" || q.ThreadID == "" || q.Call.ID == "" {
				t.Errorf("%+v", q)
			}
			switch q.Call.Name {
			case "deny":
				return fawn.Deny("not this one"), nil
			case "change":
				return fawn.Verdict{Verdict: "change", Result: "from the host"}, nil
			case "fail":
				return nil, errors.New("lost")
			}
			return fawn.GoOn, nil
		}
		ran := func(context.Context, json.RawMessage) (any, error) { return "ran", nil }
		gate := fawn.Middleware{
			Name: "approval", Hooks: []string{"wrap_tool_call"}, OnTimeout: "deny", Timeout: time.Minute, Func: fawn.Typed(decide),
		}
		for name, want := range map[string]string{
			"go": "ran", "deny": "not this one", "change": "from the host", "fail": "could not decide",
		} {
			agent := newAgent(t, rt, scripted(calls(name, fawn.Object{}), says("done")), tool(name, ran), gate)
			thread := newThread(t, rt)
			must(agent.Run(t.Context(), thread, fawn.Ask("go")))
			messages := must(thread.Messages(t.Context(), -1))
			if len(messages) != 4 || !strings.Contains(messages[2].Text(), want) {
				t.Errorf("%s: %+v", name, messages)
			}
		}
	})
}
