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
// becomes its "model" if it has none, and for a lead agent answers for models of the configuration; a [Subagents] its
// "subagent_runtime". Without them the document passes as it is. What the host brings and the configuration has no use for is
// [ErrConflict].
//
// The document's own tools, and those without a Func, are answered by whoever reads the events, with [Runtime.Finish]. A model
// that has no function here is answered by that of [NewRuntime], and so are the configuration's tools of a lead agent.
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
		if text, err = compose(text, host, &a.funcs, r.scope); err != nil {
			return nil, err
		}
	}
	handle, status, object := cabi.AssemblyNew(r.handle, text)
	if status != cabi.OK {
		return nil, failure(status, object)
	}
	if len(host) > 0 {
		if err := a.funcs.checkAsked(text, r.scope); err != nil {
			cabi.AssemblyFree(handle)
			return nil, err
		}
	}
	a.funcs.runtime, a.funcs.isLead = &r.funcs, r.funcs.tools != nil && isLead(text)
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

// composition is the document of an assembly, or of a runtime, while the host's parts are added to it.
type composition struct {
	document map[string]json.RawMessage
	tools    []json.RawMessage
	funcs    *funcs
	// Names of the tools that are there already.
	known []string
	// Whether it is of an agent whose models stand in the configuration.
	isLead bool
}

// compose adds what the host brings to the document of an assembly, and keeps the functions.
func compose(text string, host []Host, to *funcs, runtime *scope) (string, error) {
	c, err := newComposition(text, to, parts(host))
	if c == nil || err != nil {
		return text, err // no JSON object: the library says so better
	}
	var document assemblyDocument
	if json.Unmarshal([]byte(text), &document) == nil && document.isLead() {
		c.isLead = true
		if app := document.scope(runtime); app != nil {
			c.known = append(c.known, app.tools...)
		}
	}
	for _, part := range host {
		if err := part.addTo(c); err != nil {
			return "", err
		}
	}
	return c.text()
}

// parts are what the host brings, whatever it may bring.
func parts[Part any](host []Part) []any {
	all := make([]any, len(host))
	for n, part := range host {
		all[n] = part
	}
	return all
}

// newComposition reads a document; nil if it is no object with a list of tools.
func newComposition(text string, to *funcs, parts []any) (*composition, error) {
	for n, part := range parts {
		if is := reflect.ValueOf(part); !is.IsValid() || is.Kind() == reflect.Pointer && is.IsNil() {
			return nil, wrongPart("part %d of the host is nil", n)
		}
	}
	c := &composition{funcs: to}
	if err := json.Unmarshal([]byte(text), &c.document); err != nil || c.document == nil {
		return nil, nil
	}
	if given, ok := c.document["tools"]; ok {
		if err := json.Unmarshal(given, &c.tools); err != nil {
			return nil, nil
		}
	}
	for _, tool := range c.tools {
		var says struct {
			Name string  `json:"name"`
			Use  *string `json:"use"`
		}
		if json.Unmarshal(tool, &says) == nil && says.Use == nil {
			c.known = append(c.known, says.Name)
		}
	}
	return c, nil
}

// text is the document with what was added.
func (c *composition) text() (string, error) {
	if len(c.tools) > 0 {
		list, err := json.Marshal(c.tools)
		if err != nil {
			return "", err
		}
		c.document["tools"] = list
	}
	return encode(c.document)
}

// isLead tells whether the document is of an agent that a configuration is made of.
func isLead(text string) bool {
	var document assemblyDocument
	return json.Unmarshal([]byte(text), &document) == nil && document.isLead()
}

func wrongPart(format string, args ...any) error {
	return &Error{Code: ErrArgument, Status: -101, Message: fmt.Sprintf(format, args...)}
}
