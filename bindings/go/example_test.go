package fawn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	fawn "fawn/bindings/go"
)

// Context and objects that the examples below go on from.
func exampleObjects(config any, host ...fawn.Host) (context.Context, *fawn.Assembly, *fawn.Thread, func()) {
	ctx := context.Background()
	runtime := must(fawn.NewRuntime(nil))
	agent := must(runtime.NewAssembly(config, host...))
	thread := must(runtime.OpenThread(ctx, nil))
	return ctx, agent, thread, func() { thread.Close(); agent.Close(); runtime.Close() }
}

func Example() {
	ctx := context.Background()
	runtime, err := fawn.NewRuntime(nil)
	if err != nil {
		panic(err)
	}
	defer runtime.Close()

	agent, err := runtime.NewAssembly(
		`{"model": {"provider": "scripted", "replies": [
			{"tool_calls": [{"name": "add", "args": {"a": 19, "b": 23}}]},
			{"content": "It is 42."}]}}`,
		fawn.Tool{
			Name:       "add",
			Parameters: `{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}`,
			Func: fawn.Typed(func(ctx context.Context, in struct{ A, B int }) (any, error) {
				return in.A + in.B, nil
			}),
		})
	if err != nil {
		panic(err)
	}
	defer agent.Close()

	thread, err := runtime.OpenThread(ctx, nil)
	if err != nil {
		panic(err)
	}
	defer thread.Close()

	result, err := agent.Run(ctx, thread, fawn.Ask("How much is 19 and 23?"))
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Text())
	// Output: It is 42.
}

func ExampleRun_Events() {
	ctx, agent, thread, end := exampleObjects(`{"model": {"provider": "scripted", "replies": [
		{"content": "To be or not to be.", "chunks": ["To be ", "or not to be."], "chunk_delay_ms": 20}]}}`)
	defer end()

	run, err := agent.Start(ctx, thread, fawn.Ask("That is the question?"))
	if err != nil {
		panic(err)
	}
	defer run.Close()
	for event, err := range run.Events() {
		if err != nil {
			panic(err)
		}
		switch data := event.Data().(type) {
		case *fawn.MessageDelta:
			fmt.Printf("%q\n", data.Text)
		case *fawn.Result:
			fmt.Println(data.Status)
		}
	}
	// Output:
	// "To be "
	// "or not to be."
	// success
}

func ExampleModel() {
	model := fawn.Model{Func: func(ctx context.Context, request json.RawMessage) (any, error) {
		for _, word := range []string{"I ", "stream."} {
			if err := fawn.Emit(ctx, fawn.Delta{Text: word}); err != nil {
				return nil, err
			}
		}
		return "I stream.", nil
	}}
	ctx, agent, thread, end := exampleObjects(fawn.Object{"system_prompt": "Be brief."}, model)
	defer end()
	fmt.Println(must(agent.Run(ctx, thread, fawn.Ask("What do you do?"))).Text())
	// Output: I stream.
}

func ExampleError() {
	_, err := fawn.NewRuntime(fawn.Object{"workers": -1})
	fmt.Println(errors.Is(err, fawn.ErrOutOfRange))
	var e *fawn.Error
	if errors.As(err, &e) {
		fmt.Println(e.Code, e.Path, e.Retryable)
	}
	// Output:
	// true
	// out_of_range /workers false
}

func ExampleRun_cancel() {
	ctx, agent, thread, end := exampleObjects(`{"model": {"provider": "scripted", "replies": [{"hang": true}]}}`)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	result, err := agent.Run(ctx, thread, fawn.Ask("Are you there?"))
	fmt.Println(result.Status, errors.Is(err, fawn.ErrCancelled), errors.Is(err, context.DeadlineExceeded))
	// Output: interrupted true true
}

func ExampleReduce() {
	merged, err := fawn.Reduce("artifacts", fawn.Object{"existing": []string{"a.txt"}, "updates": []any{[]string{"b.txt", "a.txt"}}})
	fmt.Println(string(merged), err)
	// Output: ["a.txt","b.txt"] <nil>
}
