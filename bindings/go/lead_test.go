package fawn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	fawn "fawn/bindings/go"
)

// answers is a function that always says the same.
func answers(value any) fawn.HostFunc {
	return func(context.Context, json.RawMessage) (any, error) { return value, nil }
}

// asks is the configuration of a runtime whose only model follows a script.
func asks(more fawn.Object, replies ...any) fawn.Object {
	config := fawn.Object{"models": []any{fawn.Object{"name": "main", "provider": "scripted", "replies": append([]any{}, replies...), "repeat": true}}}
	for name, section := range more {
		config[name] = section
	}
	return config
}

func runtimeWith(t *testing.T, config any, host ...fawn.RuntimeHost) *fawn.Runtime {
	t.Helper()
	rt := must(fawn.NewRuntime(config, host...))
	t.Cleanup(func() { rt.Close() })
	return rt
}

// said is what an agent says on a new thread, and what its tools answered.
func said(t *testing.T, rt *fawn.Runtime, agent *fawn.Assembly) (text string, tools []string) {
	t.Helper()
	thread := newThread(t, rt)
	result, err := agent.Run(t.Context(), thread, fawn.Ask("go"))
	if err != nil {
		t.Error(err)
		return "", nil
	}
	for _, message := range must(thread.Messages(t.Context(), -1)) {
		if message.Type == "tool" {
			tools = append(tools, message.Text())
		}
	}
	return result.Text(), tools
}

// A model of the runtime answers for every assembly that comes to it, by the name in the host call.
func TestModelsOfTheRuntime(t *testing.T) {
	nothingLeft(t)
	for name, rt := range map[string]*fawn.Runtime{
		"added":   runtimeWith(t, nil, fawn.Model{Name: "main", Deadline: time.Minute, Func: answers("mine")}),
		"there":   runtimeWith(t, `{"models":[{"name":"main","provider":"host"}]}`, fawn.Model{Func: answers("mine")}),
		"by name": runtimeWith(t, `{"models":[{"name":"main","provider":"host","model":"big"}]}`, fawn.Model{Name: "big", Func: answers("mine")}),
		"unnamed": runtimeWith(t, `{"models":[{"name":"main","provider":"host"}]}`, &fawn.Model{Name: "host", Func: answers("mine")}),
	} {
		for _, config := range []any{`{"model":"main"}`, `{"factory":"direct","model":"main"}`, `{"factory":"lead"}`,
			fawn.Object{"factory": "lead_graph"}, `{"factory":"lead","configurable":{"model_name":"main"}}`,
			`{"model":{"provider":"scripted","replies":[],"fallbacks":["main"]}}`} {
			if text, _ := said(t, rt, newAgent(t, rt, config)); text != "mine" {
				t.Errorf("%s, %v: %q", name, config, text)
			}
		}
	}
	// Several, one of which writes titles.
	rt := runtimeWith(t, `{"models":[{"name":"main","provider":"scripted","replies":[],"fallbacks":["second"]}],"title":{"model_name":"titles"}}`,
		fawn.Model{Name: "second", Func: answers("stood in")}, fawn.Model{Name: "titles", Func: answers("A title")})
	agent := newAgent(t, rt, `{"factory":"lead"}`)
	thread := newThread(t, rt)
	if result := must(agent.Run(t.Context(), thread, fawn.Ask("go"))); result.Text() != "stood in" {
		t.Errorf("%+v", result)
	}
	if state := string(must(thread.State(t.Context(), fawn.Object{"channels": []string{"title"}}))); !strings.Contains(state, "A title") {
		t.Error(state)
	}
}

// A model that comes with a lead agent answers for models of the configuration, and stands in no document.
func TestModelOfALeadAgent(t *testing.T) {
	nothingLeft(t)
	rt := runtimeWith(t, `{"models":[{"name":"a","provider":"host","model":"one"},{"name":"b","provider":"host"}]}`,
		fawn.Model{Name: "one", Func: answers("the runtime")})
	for _, test := range []struct {
		name string
		host []fawn.Host
		says string
	}{
		{"a", nil, "the runtime"},
		{"a", []fawn.Host{fawn.Model{Name: "one", Func: answers("the assembly")}}, "the assembly"},
		{"b", []fawn.Host{fawn.Model{Func: answers("any")}}, "any"},
		{"b", []fawn.Host{fawn.Model{Name: "host", Func: answers("unnamed")}, fawn.Model{Func: answers("any")}}, "unnamed"},
	} {
		config := fawn.Object{"factory": "lead", "configurable": fawn.Object{"model_name": test.name}}
		if text, _ := said(t, rt, newAgent(t, rt, config, test.host...)); text != test.says {
			t.Errorf("%+v: %q", test, text)
		}
	}
	own := `{"factory":"lead","app_config":{"models":[{"name":"z","provider":"host","model":"zed"}]}}`
	if text, _ := said(t, rt, newAgent(t, rt, own, fawn.Model{Name: "zed", Func: answers("z")})); text != "z" {
		t.Errorf("%q", text)
	}
}

// Tools of the configuration are answered by those that have nothing but a name and a function.
func TestToolsOfTheConfiguration(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		declared := `{"name":"orders","description":"Orders","parameters":{"type":"object"}}`
		config := asks(fawn.Object{"tools": []any{json.RawMessage(declared)}}, calls("orders", fawn.Object{}), says("done"))
		bare := fawn.Tool{Name: "orders", Func: answers("of the runtime")}
		plain := runtimeWith(t, config)
		with := runtimeWith(t, config, bare)
		added := runtimeWith(t, asks(nil, calls("orders", fawn.Object{}), says("done")), tool("orders", answers("added")))
		for _, test := range []struct {
			rt   *fawn.Runtime
			host []fawn.Host
			says string
		}{
			{with, nil, "of the runtime"},
			{added, nil, "added"},
			{with, []fawn.Host{fawn.Tool{Name: "orders", Func: answers("of the assembly")}}, "of the assembly"},
			{plain, []fawn.Host{&fawn.Tool{Name: "orders", Func: answers("apart")}}, "apart"},
		} {
			warnings := newQueue(t, test.rt, `{"subscribe":["log"]}`)
			agent := newAgent(t, test.rt, `{"factory":"lead"}`, test.host...)
			if text, tools := said(t, test.rt, agent); text != "done" || !slices.Equal(tools, []string{test.says}) {
				t.Errorf("%s: %q, %q", test.says, text, tools)
			}
			for _, event := range must(warnings.TryTake(0)) {
				if strings.Contains(event.String(), "tool_duplicate") {
					t.Error(event)
				}
			}
		}
		// A tool of the document's own.
		document := scripted(calls("orders", fawn.Object{}), says("done"))
		document["tools"] = []any{json.RawMessage(declared)}
		if _, tools := said(t, rt, newAgent(t, rt, document, fawn.Tool{Name: "orders", Func: answers("own")})); !slices.Equal(tools, []string{"own"}) {
			t.Errorf("%q", tools)
		}
		// What the runtime has is for lead agents: elsewhere a tool of that name is another.
		alone := newAgent(t, with, document)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if result, err := alone.Run(ctx, newThread(t, with), fawn.Ask("go")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v", result, err)
		}
	})
}

// box is a sandbox in memory.
type box struct {
	mu    sync.Mutex
	files map[string]string
	calls []string
}

func (b *box) host() fawn.Sandbox {
	in := func(f func(fawn.SandboxRequest) any) fawn.HostFunc {
		return fawn.Typed(func(ctx context.Context, request fawn.SandboxRequest) (any, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			call, _ := fawn.CallInfo(ctx)
			b.calls = append(b.calls, fmt.Sprintf("%s %s %s", call.Kind, call.Name, request.SandboxID))
			if request.UserID == "" || request.ThreadID == "" {
				return nil, fmt.Errorf("%+v", request)
			}
			return f(request), nil
		})
	}
	return fawn.Sandbox{
		Acquire: in(func(fawn.SandboxRequest) any { return fawn.SandboxAcquired{SandboxID: "s1"} }),
		Release: in(func(fawn.SandboxRequest) any { return nil }),
		ReadFile: in(func(request fawn.SandboxRequest) any {
			text, ok := b.files[request.Path]
			if !ok {
				return (*fawn.SandboxFile)(nil)
			}
			return &fawn.SandboxFile{Text: text}
		}),
		WriteFile: in(func(request fawn.SandboxRequest) any { b.files[request.Path] = request.Text; return nil }),
	}
}

// The program is the sandbox and the memory of a lead agent.
func TestSandboxAndMemory(t *testing.T) {
	for _, workers := range []int{0, 2} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			nothingLeft(t)
			const path = "/mnt/user-data/workspace/a.txt"
			keeps := fawn.Object{"workers": workers, "sandbox": fawn.Object{"use": "host"}, "memory": fawn.Object{"manager_class": "host"}}
			rt := runtimeWith(t, asks(keeps, calls("write_file", fawn.Object{"path": path, "content": "new"}), says("done")))
			b := &box{files: map[string]string{path: "old"}}
			var turns []fawn.MemoryTurn
			memory := fawn.Memory{Add: fawn.Typed(func(_ context.Context, turn fawn.MemoryTurn) (any, error) {
				turns = append(turns, turn)
				return nil, nil
			})}
			agent := newAgent(t, rt, `{"factory":"lead","context":{"user_id":"u-1"}}`, b.host(), memory, tool("write_file", answers("written")))
			text, tools := said(t, rt, agent)
			if text != "done" || len(tools) != 1 || !strings.Contains(tools[0], "not read") {
				t.Errorf("%q, %q", text, tools)
			}
			if want := []string{"sandbox acquire ", "sandbox read_file s1", "sandbox release s1"}; !slices.Equal(b.calls, want) {
				t.Errorf("%q", b.calls)
			}
			if len(turns) != 1 || turns[0].UserID != "u-1" || turns[0].AgentName != "" || turns[0].Messages[len(turns[0].Messages)-1].Text() != "done" {
				t.Errorf("%+v", turns)
			}
		})
	}
}

// What a sandbox or a memory answers is for the library to judge.
func TestAnswersOfKeepersAreChecked(t *testing.T) {
	nothingLeft(t)
	logs := catchLogs(t)
	keeps := fawn.Object{"sandbox": fawn.Object{"use": "host"}, "memory": fawn.Object{"manager_class": "host"}}
	rt := runtimeWith(t, asks(keeps, calls("bash", fawn.Object{}), says("done")))
	agent := newAgent(t, rt, `{"factory":"lead"}`, fawn.Sandbox{Acquire: answers("s1")}, &fawn.Memory{Add: answers(true)}, tool("bash", answers("ran")))
	if text, tools := said(t, rt, agent); text != "done" || len(tools) != 1 || !strings.Contains(tools[0], "the sandbox's acquire") {
		t.Errorf("%q, %q", text, tools)
	}
	for _, name := range []string{"acquire", "add"} {
		if !strings.Contains(logs.String(), "refused\" name="+name) {
			t.Errorf("%s: %s", name, logs)
		}
	}
}

// A function that nothing can ask is an error, and so is what stands elsewhere.
func TestFunctionsThatNothingAsks(t *testing.T) {
	nothingLeft(t)
	guardrail, memory := fawn.Guardrail{Func: answers(nil)}, fawn.Memory{Add: answers(nil)}
	sandbox := fawn.Sandbox{Acquire: answers(nil)}
	model := func(name string) fawn.Model { return fawn.Model{Name: name, Func: answers("")} }
	plain := runtimeWith(t, asks(nil))
	hosted := runtimeWith(t, `{"models":[{"name":"main","provider":"host","model":"m"}]}`)
	off := runtimeWith(t, asks(fawn.Object{"guardrails": fawn.Object{"provider": fawn.Object{"use": "host"}},
		"memory": fawn.Object{"manager_class": "host", "enabled": false}}))
	on := runtimeWith(t, asks(fawn.Object{"guardrails": fawn.Object{"enabled": true, "provider": fawn.Object{"use": "host"}},
		"memory": fawn.Object{"manager_class": "host"}, "sandbox": fawn.Object{"use": "host"}}))
	const lead = `{"factory":"lead"}`
	for n, test := range []struct {
		rt     *fawn.Runtime
		config any
		host   fawn.Host
		code   fawn.Code
	}{
		{plain, lead, guardrail, fawn.ErrConflict},
		{plain, lead, memory, fawn.ErrConflict},
		{plain, lead, sandbox, fawn.ErrConflict},
		{plain, lead, model(""), fawn.ErrConflict},
		{plain, scripted(says("")), guardrail, fawn.ErrConflict},
		{plain, scripted(says("")), sandbox, fawn.ErrConflict},
		{plain, scripted(says("")), model(""), fawn.ErrConflict},
		{off, lead, guardrail, fawn.ErrConflict},
		{off, lead, memory, fawn.ErrConflict},
		{on, `{"factory":"lead","app_config":{"models":[{"name":"m","provider":"scripted","replies":[]}]}}`, guardrail, fawn.ErrConflict},
		{hosted, lead, model("n"), fawn.ErrConflict},
		{hosted, `{"model":"main"}`, model("main"), fawn.ErrConflict},
		{hosted, lead, fawn.Model{Deadline: time.Second, Func: answers("")}, fawn.ErrArgument},
		{on, lead, guardrail, ""},
		{on, lead, memory, ""},
		{on, lead, sandbox, ""},
		{plain, `{"factory":"lead","extra_middleware":[{"name":"guardrail_provider","provider":{"use":"host"}}]}`, guardrail, ""},
		{plain, `{"factory":"direct","model":"main","features":{"guardrail":{"provider":{"use":"host"}}}}`, guardrail, ""},
		{plain, `{"model":"main","middleware":[{"name":"guardrail_provider","provider":{"use":"allowlist","config":{"allowed_tools":[]}}}]}`, guardrail, fawn.ErrConflict},
		{hosted, lead, model("m"), ""},
		{hosted, `{"model":"main"}`, model(""), ""},
	} {
		agent, err := test.rt.NewAssembly(test.config, test.host)
		if code := test.code; code == "" && err != nil || code != "" && !errors.Is(err, code) {
			t.Errorf("%d, %T: %v", n, test.host, err)
		}
		if agent != nil {
			agent.Close()
		}
	}
	if _, err := hosted.NewAssembly(lead, model("m"), model("m")); !errors.Is(err, fawn.ErrArgument) {
		t.Error(err)
	}
	for _, host := range []fawn.RuntimeHost{nil, (*fawn.Model)(nil)} {
		if _, err := fawn.NewRuntime(nil, host); !errors.Is(err, fawn.ErrArgument) {
			t.Error(err)
		}
	}
	if _, err := fawn.NewRuntime(asks(nil), fawn.Model{Func: answers("")}); !errors.Is(err, fawn.ErrConflict) {
		t.Error(err)
	}
}

// The configuration may name variables of the environment.
func TestScopeOfTheEnvironment(t *testing.T) {
	nothingLeft(t)
	t.Setenv("FAWN_TEST_USE", "host")
	t.Setenv("FAWN_TEST_MODEL", "mine")
	rt := runtimeWith(t, `{"models":[{"name":"main","provider":"$FAWN_TEST_USE","model":"$FAWN_TEST_MODEL"}],"sandbox":{"use":"$FAWN_TEST_USE"}}`,
		fawn.Model{Name: "mine", Func: answers("read")})
	if text, _ := said(t, rt, newAgent(t, rt, `{"factory":"lead"}`, fawn.Sandbox{Acquire: answers(nil)})); text != "read" {
		t.Errorf("%q", text)
	}
}
