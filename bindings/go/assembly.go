// Assemblies: an agent, composed once.

package fawn

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"

	"fawn/bindings/go/internal/cabi"
)

// Assembly is an agent: a model, a prompt and tools, composed once and not changed any more.
type Assembly struct {
	object
	runtime *Runtime
	funcs   funcs
}

// NewAssembly composes an agent (schema "assembly_config"). Each [Tool] is added to the document's "tools"; a [Model]
// becomes its "model" if it has none, a [Subagents] its "subagent_runtime". Without them the document passes as it is.
//
// The document's own tools, and those without a Func, are answered by whoever reads the events, with [Runtime.Finish].
func (r *Runtime) NewAssembly(config any, host ...Host) (*Assembly, error) {
	defer runtime.KeepAlive(r)
	// Either may hold a Subagents, whose handle must be good until the assembly is made.
	defer runtime.KeepAlive(config)
	defer runtime.KeepAlive(host)
	text, err := encode(config)
	if err != nil {
		return nil, err
	}
	a := &Assembly{runtime: r}
	if len(host) > 0 {
		if text, err = compose(text, host, &a.funcs); err != nil {
			return nil, err
		}
	}
	handle, status, object := cabi.AssemblyNew(r.handle, text)
	if status != cabi.OK {
		return nil, failure(status, object)
	}
	a.keep("assembly", handle, caller(), cabi.AssemblyFree)
	return a, nil
}

// Descriptor is what the agent turned out to be: model, prompt hash, tools, order of middleware; the JSON text null for a
// bare graph.
func (a *Assembly) Descriptor() (json.RawMessage, error) {
	defer runtime.KeepAlive(a)
	return answer(cabi.AssemblyDescriptor(a.handle))
}

// Run starts a run, as [Assembly.Start] does, and waits for its end. Nobody sees its events.
func (a *Assembly) Run(ctx context.Context, thread *Thread, request any) (*Result, error) {
	run, err := a.Start(ctx, thread, request)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	// The context cancels the run, and then its end comes soon; until it is there the thread is not free.
	return run.Wait(context.WithoutCancel(ctx))
}

// Close lets go of the assembly. Runs that were started with it go on.
func (a *Assembly) Close() error { return a.object.Close() }

// composition is the document of an assembly while the host's parts are added to it.
type composition struct {
	document map[string]json.RawMessage
	tools    []json.RawMessage
	funcs    *funcs
}

// compose adds what the host brings to the document of an assembly, and keeps the functions.
func compose(text string, host []Host, to *funcs) (string, error) {
	for n, part := range host {
		if is := reflect.ValueOf(part); !is.IsValid() || is.Kind() == reflect.Pointer && is.IsNil() {
			return "", &Error{Code: ErrArgument, Status: -101, Message: fmt.Sprintf("part %d of the host is nil", n)}
		}
	}
	c := composition{funcs: to}
	if err := json.Unmarshal([]byte(text), &c.document); err != nil || c.document == nil {
		return text, nil // no JSON object: the library says so better
	}
	if given, ok := c.document["tools"]; ok {
		if err := json.Unmarshal(given, &c.tools); err != nil {
			return text, nil
		}
	}
	for _, part := range host {
		if err := part.addTo(&c); err != nil {
			return "", err
		}
	}
	if len(c.tools) > 0 {
		list, err := json.Marshal(c.tools)
		if err != nil {
			return "", err
		}
		c.document["tools"] = list
	}
	return encode(c.document)
}
