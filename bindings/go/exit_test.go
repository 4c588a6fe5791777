package fawn_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	fawn "fawn/bindings/go"
)

const exitingProcess = "FAWN_TEST_EXIT"

// TestMain is also the process that TestExitWhileRunsStream starts.
func TestMain(m *testing.M) {
	if os.Getenv(exitingProcess) != "" {
		rt := must(fawn.NewRuntime(nil))
		agent := must(rt.NewAssembly(scripted(fawn.Object{"content": "a b c d", "chunks": 4, "chunk_delay_ms": 1})))
		for range 20 {
			must(agent.Start(context.Background(), must(rt.OpenThread(context.Background(), nil)), fawn.Ask("go")))
		}
		time.Sleep(2 * time.Millisecond)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A process may end at any time, with the library's OS threads at work and calling the wake-up hook.
func TestExitWhileRunsStream(t *testing.T) {
	for range 30 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), exitingProcess+"=1")
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v: %s", err, out)
		}
	}
}
