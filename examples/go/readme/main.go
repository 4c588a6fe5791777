package main

import (
	"context"
	"fmt"
	"log"

	fawn "fawn/bindings/go"
)

// A function of yours, and the tool that the model sees.
type place struct {
	City string `json:"city"`
}

func weather(ctx context.Context, in place) (any, error) {
	return "It is 18 degrees and clear in " + in.City + ".", nil
}

var tool = fawn.Tool{
	Name:        "get_weather",
	Description: "The weather in a city",
	Parameters:  `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`,
	Func:        fawn.Typed(weather),
}

// A script stands in for the model. With a key, a real one is
// {"provider": "openai", "api_key": "$OPENAI_API_KEY", "model": "gpt-4.1-mini"}.
const config = `{"model": {"provider": "scripted", "replies": [
	{"tool_calls": [{"name": "get_weather", "args": {"city": "Paris"}}]},
	{"content": "In Paris it is clear, with 18 degrees."}]}}`

func main() {
	ctx := context.Background()
	runtime, err := fawn.NewRuntime(nil)
	check(err)
	defer runtime.Close()
	agent, err := runtime.NewAssembly(config, tool)
	check(err)
	defer agent.Close()
	thread, err := runtime.OpenThread(ctx, nil)
	check(err)
	defer thread.Close()

	run, err := agent.Start(ctx, thread, fawn.Ask("What is the weather in Paris?"))
	check(err)
	defer run.Close()
	for event, err := range run.Events() {
		check(err)
		switch data := event.Data().(type) {
		case *fawn.HostCall:
			fmt.Printf("calls %s(%s)\n", data.Name, data.Args)
		case *fawn.MessageDelta:
			fmt.Print(data.Text)
		}
	}
	result, err := run.Wait(ctx)
	check(err)
	fmt.Printf("\n%s after %d steps\n", result.Status, result.Steps)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
