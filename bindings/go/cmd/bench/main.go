// Command bench measures the binding and prints one JSON object a line. Its first two cases are those of the C program
// benches/peers/bindings/bench.c, to be compared with it.
//
//   - state_small: Thread.State of a thread with four short messages, the text owned by Go.
//   - events: 1,000 runs, 64 at a time, driven by one worker thread of the library, while one goroutine takes from their
//     queue with max 0 and looks at each event's type; from the first start to the last run_end. A run has 107 events,
//     most of them message_delta events of some 270 bytes.
//   - run_events: the same runs by Assembly.Start, 64 at a time, each with its own range over Run.Events.
//   - run_tool: a whole run with one call of a Go function, one run after another; with two workers, and with none
//     (run_tool_driven).
//   - run_tool_inline: the same with no workers and Assembly.StartOn, one goroutine taking, answering and driving.
//
// Each figure is the best of several rounds, so that a pause of the machine does not count.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	fawn "fawn/bindings/go"
)

const (
	rounds = 7
	reads  = 20_000
	runs   = 1_000
	window = 64
	deltas = 100
)

var ctx = context.Background()

func main() {
	stateSmall()
	events()
	runEvents()
	runTool("run_tool", 2)
	runTool("run_tool_driven", 0)
	runToolInline()
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// best gives the shortest of several rounds.
func best(round func()) time.Duration {
	shortest := time.Duration(1<<63 - 1)
	for range rounds {
		begin := time.Now()
		round()
		shortest = min(shortest, time.Since(begin))
	}
	return shortest
}

func tell(name, unit string, figure float64) {
	fmt.Printf("{\"lang\":\"go\",\"case\":%q,%q:%.1f}\n", name, unit, figure)
}

func stateSmall() {
	runtime := must(fawn.NewRuntime(`{"workers":0}`))
	defer runtime.Close()
	thread := must(runtime.OpenThread(ctx, nil))
	defer thread.Close()
	must(thread.Update(ctx, `{"values":{"messages":[{"role":"user","content":"What is the weather in Paris?"},
		{"role":"ai","content":"It is clear, with 18 degrees."},{"role":"user","content":"And in Oslo?"},
		{"role":"ai","content":"The same."}]}}`))
	took := best(func() {
		for range reads {
			must(thread.State(ctx, "{}"))
		}
	})
	tell("state_small", "ns", float64(took.Nanoseconds())/reads)
}

// streaming is an agent whose reply has many deltas that do not merge: tool calls that are cut off, and not carried out.
func streaming(runtime *fawn.Runtime) *fawn.Assembly {
	calls := strings.Repeat(`{"name":"get_weather","args":"{"},`, deltas)
	return must(runtime.NewAssembly(`{"model":{"provider":"scripted","replies":[{"content":"Done.","invalid_tool_calls":[` +
		calls[:len(calls)-1] + `]}]}}`))
}

var request = json.RawMessage(`{"input":{"messages":[{"role":"user","content":"Weather?"}]}}`)

func events() {
	runtime := must(fawn.NewRuntime(`{"workers":1}`))
	defer runtime.Close()
	agent := streaming(runtime)
	defer agent.Close()
	queue := must(runtime.NewQueue(nil))
	defer queue.Close()
	taken := 0
	took := best(func() {
		taken = 0
		for started, ended := 0, 0; ended < runs; {
			for ; started < runs && started-ended < window; started++ {
				thread := must(runtime.OpenThread(ctx, "{}"))
				must(agent.StartOn(ctx, queue, thread, request)).Close()
				thread.Close()
			}
			batch := must(queue.Take(ctx, 0))
			taken += len(batch)
			for n := range batch {
				if batch[n].Type == fawn.EventRunEnd {
					ended++
				}
			}
		}
	})
	tell("events", "per_s", float64(taken)/took.Seconds())
}

func runEvents() {
	runtime := must(fawn.NewRuntime(`{"workers":1}`))
	defer runtime.Close()
	agent := streaming(runtime)
	defer agent.Close()
	var perRun atomic.Int64
	took := best(func() {
		var all sync.WaitGroup
		for range window {
			all.Add(1)
			go func() {
				defer all.Done()
				for range runs / window {
					thread := must(runtime.OpenThread(ctx, "{}"))
					run := must(agent.Start(ctx, thread, request))
					count := 0
					for _, err := range run.Events() {
						check(err)
						count++
					}
					perRun.Store(int64(count))
					run.Close()
					thread.Close()
				}
			}()
		}
		all.Wait()
	})
	tell("run_events", "per_s", float64(runs/window*window*int(perRun.Load()))/took.Seconds())
}

// adding is an agent that calls a Go function once.
func adding(runtime *fawn.Runtime) *fawn.Assembly {
	return must(runtime.NewAssembly(`{"model":{"provider":"scripted","repeat":true,"replies":[
		{"tool_calls":[{"name":"add","args":{"a":1,"b":2}}]},{"content":"Three."}]}}`,
		fawn.Tool{Name: "add", Parameters: `{"type":"object"}`,
			Func: func(context.Context, json.RawMessage) (any, error) { return 3, nil }}))
}

func runTool(name string, workers int) {
	runtime := must(fawn.NewRuntime(fawn.Object{"workers": workers}))
	defer runtime.Close()
	agent := adding(runtime)
	defer agent.Close()
	took := best(func() {
		for range runs {
			thread := must(runtime.OpenThread(ctx, "{}"))
			must(agent.Run(ctx, thread, request))
			thread.Close()
		}
	})
	tell(name, "us", float64(took.Nanoseconds())/1e3/runs)
}

func runToolInline() {
	runtime := must(fawn.NewRuntime(`{"workers":0}`))
	defer runtime.Close()
	agent := adding(runtime)
	defer agent.Close()
	queue := must(runtime.NewQueue(nil))
	defer queue.Close()
	took := best(func() {
		for range runs {
			thread := must(runtime.OpenThread(ctx, "{}"))
			must(agent.StartOn(ctx, queue, thread, request)).Close()
			for ended := false; !ended; {
				batch := must(queue.Take(ctx, 0))
				for n := range batch {
					switch batch[n].Type {
					case fawn.EventHostCall:
						check(agent.Answer(ctx, batch[n].Data().(*fawn.HostCall)))
					case fawn.EventRunEnd:
						ended = true
					}
				}
			}
			thread.Close()
		}
	})
	tell("run_tool_inline", "us", float64(took.Nanoseconds())/1e3/runs)
}
