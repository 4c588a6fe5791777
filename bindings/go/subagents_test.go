package fawn_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	fawn "fawn/bindings/go"
)

// direct is the configuration of an agent that delegates.
func direct(more fawn.Object) fawn.Object {
	config := scripted(says("hi"))
	config["factory"] = "direct"
	config["features"] = fawn.Object{"subagent": true}
	for member, value := range more {
		config[member] = value
	}
	return config
}

func refusedAt(t *testing.T, err error, code fawn.Code, path string) {
	t.Helper()
	var refused *fawn.Error
	if !errors.As(err, &refused) || refused.Code != code || refused.Path != path {
		t.Errorf("%v, not %s at %s", err, code, path)
	}
}

func TestSubagentsAreSharedByAssemblies(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		subagents := must(rt.NewSubagents(`{"config": {"max_running": 2, "admission_policy": "reject"}, "max_total_per_run": 4}`))
		defer subagents.Close()
		stats := func() (s struct {
			MaxRunning    int    `json:"max_running"`
			Running       int    `json:"running"`
			MaxQueued     int    `json:"max_queued"`
			Policy        string `json:"admission_policy"`
			MaxTotalInRun int    `json:"max_total_per_run"`
			Started       bool   `json:"started"`
		}) {
			if err := json.Unmarshal(must(subagents.Stats()), &s); err != nil {
				t.Error(err)
			}
			return s
		}
		if s := stats(); s.MaxRunning != 2 || s.Running != 0 || s.MaxQueued != 64 || s.Policy != "reject" || s.MaxTotalInRun != 4 || s.Started {
			t.Errorf("stats: %+v", s)
		}
		for range 2 {
			if err := errors.Join(subagents.Start(), subagents.Start()); err != nil || !stats().Started {
				t.Errorf("start: %v", err)
			}
			if err := errors.Join(subagents.Stop(t.Context()), subagents.Stop(context.Background())); err != nil || stats().Started {
				t.Errorf("stop: %v", err)
			}
		}
		// As a part of the host, in the document, and as the number in text.
		newAgent(t, rt, direct(nil), subagents)
		newAgent(t, rt, direct(fawn.Object{"subagent_runtime": subagents}))
		agent := newAgent(t, rt, must(json.Marshal(direct(fawn.Object{"subagent_runtime": subagents}))))

		_, err := rt.NewAssembly(direct(fawn.Object{"features": fawn.Object{}}), subagents)
		refusedAt(t, err, fawn.ErrConflict, "/subagent_runtime")
		_, err = rt.NewAssembly(scripted(says("hi")), subagents)
		refusedAt(t, err, fawn.ErrUnknownMember, "/subagent_runtime")
		_, err = rt.NewSubagents(fawn.Object{"batch_config": fawn.Object{}})
		refusedAt(t, err, fawn.ErrUnsupported, "/batch_config")
		other := newRuntime(t, nil)
		_, err = other.NewAssembly(direct(nil), subagents)
		refusedAt(t, err, fawn.ErrHandle, "/subagent_runtime")

		// Closed, no new assembly has it; those that do keep it.
		subagents.Close()
		_, err = rt.NewAssembly(direct(nil), subagents)
		refusedAt(t, err, fawn.ErrHandle, "/subagent_runtime")
		thread := newThread(t, rt)
		if result := must(agent.Run(t.Context(), thread, fawn.Ask("go"))); result.Status != fawn.StatusSuccess {
			t.Errorf("run: %+v", result)
		}
	})
}

// An object that only the configuration holds lives until the assembly is made.
func TestSubagentsLiveAsLongAsTheirConfiguration(t *testing.T) {
	nothingLeft(t)
	rt := newRuntime(t, nil)
	collecting := make(chan struct{})
	go func() {
		defer close(collecting)
		for range 20 {
			runtime.GC()
		}
	}()
	for range 20 {
		newAgent(t, rt, direct(fawn.Object{"subagent_runtime": must(rt.NewSubagents(nil))}))
	}
	<-collecting
	eventually(t, "the forgotten objects are freed", func() bool {
		runtime.GC()
		return !strings.Contains(string(must(rt.Stats())), `"subagents"`)
	})
}

// A function knows for which subagent it works, and what is told of a delegation has types.
func TestFunctionsKnowForWhomTheyWork(t *testing.T) {
	nothingLeft(t)
	worker := fawn.Object{"name": "worker", "provider": "scripted", "replies": []any{calls("look", fawn.Object{}), says("seen")}}
	lead := fawn.Object{"name": "main", "provider": "scripted", "replies": []any{
		fawn.Object{"tool_calls": []any{fawn.Object{"name": "task", "id": "t1", "args": fawn.Object{
			"description": "Look", "prompt": "Look around.", "subagent_type": "scout"}}}},
		calls("look", fawn.Object{}), says("done"),
	}}
	scout := fawn.Object{"description": "Looks", "system_prompt": "Look.", "model": "worker"}
	rt := runtimeWith(t, fawn.Object{"models": []any{lead, worker}, "title": fawn.Object{"enabled": false},
		"subagents": fawn.Object{"custom_agents": fawn.Object{"scout": scout}}})
	var asked []string
	agent := newAgent(t, rt, `{"factory":"lead","configurable":{"subagent_enabled":true}}`,
		tool("look", func(ctx context.Context, _ json.RawMessage) (any, error) {
			call, _ := fawn.CallInfo(ctx)
			asked = append(asked, call.TaskID)
			return "a tree", nil
		}))
	request := fawn.Object{"input": fawn.Object{"messages": []any{"go"}}, "stream": []string{"messages"}}
	run := start(t, t.Context(), agent, newThread(t, rt), request)
	var told []string
	for event, err := range run.Events() {
		if err != nil {
			t.Fatal(err)
		}
		switch data := event.Data().(type) {
		case *fawn.TaskStarted:
			told = append(told, "started "+data.TaskID+" "+data.SubagentType+" "+data.Description+" "+data.ModelName)
		case *fawn.TaskRunning:
			told = append(told, "running "+data.TaskID+" "+data.Message.Type)
		case *fawn.TaskEnd:
			told = append(told, event.Type+" "+data.TaskID+" "+data.Result+data.StopReason)
		case *fawn.HostCall:
			told = append(told, "asked for "+data.TaskID+" "+event.TaskID)
		}
	}
	want := []string{"started t1 scout Look worker", "running t1 ai", "asked for t1 t1", "running t1 tool", "running t1 ai",
		"task_completed t1 seen", "asked for  "}
	if !slices.Equal(told, want) || !slices.Equal(asked, []string{"t1", ""}) {
		t.Errorf("%q, %q", told, asked)
	}
}
