// An agent that calls a function of this program, on a thread that is still there the next time.
//
//	quickstart FOLDER [QUESTION]
//
// FOLDER keeps the thread (one SQLite file). Without OPENAI_API_KEY a script stands in for the model; with
// OPENAI_BASE_URL, OPENAI_API_KEY and FAWN_MODEL set, the real one answers.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"

	fawn "fawn/bindings/go"
)

// The function that the agent calls.
type place struct {
	City string `json:"city"`
}

func getWeather(_ context.Context, in place) (any, error) {
	return fmt.Sprintf("It is 18 degrees and clear in %s.", in.City), nil
}

var weatherTool = fawn.Tool{
	Name:        "get_weather",
	Description: "The weather in a city",
	Parameters:  `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`,
	Func:        fawn.Typed(getWeather),
}

const script = `{"provider":"scripted","replies":[
{"tool_calls":[{"name":"get_weather","args":{"city":"Paris"}}]},
{"content":"In Paris it is clear, with 18 degrees.","chunks":5,"chunk_delay_ms":60},
{"tool_calls":[{"name":"get_weather","args":{"city":"Oslo"}}]},
{"content":"Oslo has the same weather as Paris, which we spoke about before.","chunks":7,"chunk_delay_ms":60},
{"content":"My script ends here. Set OPENAI_API_KEY for a real model."}],"repeat":true}`

// The model: the script, or what the environment names.
func model() any {
	if os.Getenv("OPENAI_API_KEY") == "" {
		return json.RawMessage(script)
	}
	return fawn.Object{
		"provider": "openai",
		"api_key":  "$OPENAI_API_KEY", // the library reads the variable itself
		"model":    envOr("FAWN_MODEL", "gpt-4.1-mini"),
		"base_url": envOr("OPENAI_BASE_URL", "https://api.openai.com/v1"),
	}
}

func main() {
	folder, question := ".", "What is the weather in Paris?"
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	if len(os.Args) > 2 {
		question = os.Args[2]
	}
	// Ctrl-C cancels the run, and what the agent has said so far is kept.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := converse(ctx, folder, question); err != nil {
		fmt.Fprintf(os.Stderr, "\n%v\n", err)
		os.Exit(1)
	}
}

func converse(ctx context.Context, folder, question string) error {
	// A runtime that keeps threads in FOLDER/fawn.db.
	runtime, err := fawn.NewRuntime(fawn.Object{"database": fawn.Object{"backend": "sqlite", "sqlite_dir": folder}})
	if err != nil {
		return err
	}
	defer runtime.Close()

	// An agent: a model and one tool, which this program runs.
	agent, err := runtime.NewAssembly(fawn.Object{
		"model":         model(),
		"system_prompt": "Answer in one sentence. Use the tool for weather.",
	}, weatherTool)
	if err != nil {
		return err
	}
	defer agent.Close()

	// The thread "demo", as an earlier start of this program left it.
	thread, err := runtime.OpenThread(ctx, fawn.Object{"thread_id": "demo"})
	if err != nil {
		return err
	}
	defer thread.Close()
	last, err := thread.Messages(ctx, 1)
	if err != nil {
		return err
	}
	if len(last) > 0 {
		fmt.Printf("(last time: %s)\n", last[0].Text())
	}

	fmt.Printf("you:   %s\nagent: ", question)
	run, err := agent.Start(ctx, thread, fawn.Ask(question))
	if err != nil {
		return err
	}
	defer run.Close()
	for event, err := range run.Events() {
		if err != nil {
			return err
		}
		switch data := event.Data().(type) {
		case *fawn.MessageDelta:
			fmt.Print(data.Text)
		case *fawn.HostCall: // the agent calls our function
			var in place
			if err := json.Unmarshal(data.Args, &in); err != nil {
				return err
			}
			fmt.Printf("[calls %s(%s)] ", data.Name, in.City)
		}
	}
	fmt.Println()
	_, err = run.Wait(ctx)
	return err
}

func envOr(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
