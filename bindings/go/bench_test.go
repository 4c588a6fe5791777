package fawn_test

import (
	"context"
	"encoding/json"
	"testing"

	fawn "fawn/bindings/go"
)

func BenchmarkState(b *testing.B) {
	rt := must(fawn.NewRuntime(nil))
	defer rt.Close()
	thread := must(rt.OpenThread(b.Context(), nil))
	defer thread.Close()
	must(thread.Update(b.Context(), fawn.Object{"values": fawn.Object{"messages": []string{"one", "two", "three", "four"}}}))
	b.ReportAllocs()
	for b.Loop() {
		must(thread.State(b.Context(), "{}"))
	}
}

func BenchmarkStatusOnly(b *testing.B) { // what crossing into C costs
	for b.Loop() {
		fawn.ABIVersion()
	}
}

func BenchmarkRun(b *testing.B) {
	for name, config := range modes {
		b.Run(name, func(b *testing.B) {
			rt := must(fawn.NewRuntime(config))
			defer rt.Close()
			agent := must(rt.NewAssembly(scripted(calls("f", fawn.Object{}), says("done")), tool("f",
				func(context.Context, json.RawMessage) (any, error) { return "x", nil })))
			defer agent.Close()
			b.ReportAllocs()
			for b.Loop() {
				thread := must(rt.OpenThread(b.Context(), `{"thread_id":"t"}`))
				must(agent.Run(b.Context(), thread, fawn.Ask("go")))
				thread.Close()
				must(rt.Submit(b.Context(), `{"op":"delete_thread","thread_id":"t"}`))
			}
		})
	}
}
