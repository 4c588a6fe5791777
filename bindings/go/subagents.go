// Subagents: capacity and limits that assemblies share.

package fawn

import (
	"context"
	"encoding/json"
	"runtime"

	"fawn/bindings/go/internal/cabi"
)

// Subagents is capacity and limits for subagents, shared by all assemblies that name it: their subagents compete for the same
// places. Assemblies that name none share the capacity of the process.
//
// An assembly names it by [Runtime.NewAssembly]'s host parts, or in its document, of which it becomes the handle:
//
//	Object{"factory": "lead", "subagent_runtime": subagents}
type Subagents struct {
	object
}

// NewSubagents makes a subagents object (schema "subagents_config"). What the document does not say is as the runtime's
// configuration has it; nil is all of that. It does not change any more.
func (r *Runtime) NewSubagents(config any) (*Subagents, error) {
	defer runtime.KeepAlive(r)
	text, err := encode(config)
	if err != nil {
		return nil, err
	}
	handle, status, object := cabi.SubagentsNew(r.handle, text)
	if status != cabi.OK {
		return nil, failure(status, object)
	}
	s := &Subagents{}
	s.keep("subagents", handle, caller(), cabi.SubagentsFree)
	return s, nil
}

// Start starts what the object owns besides its capacity: durable batches, of which this version has none. Subagents run
// without it. It may be called again, and after a Stop.
func (s *Subagents) Start() error {
	defer runtime.KeepAlive(s)
	return check(cabi.SubagentsStart(s.handle))
}

// Stop stops what Start started, and waits for that; when the context ends first its error is returned, and the stop goes
// on. Subagents go on, and new ones begin. It may be called again, also without a Start.
func (s *Subagents) Stop(ctx context.Context) error {
	defer runtime.KeepAlive(s)
	_, err := wait(ctx, func(timeoutMS int64) (int32, []byte) { return cabi.SubagentsStop(s.handle, timeoutMS) })
	return err
}

// Stats tells how many subagents run and how many wait at this moment, and the limits of both (schema "subagents_stats").
// Works after a shutdown too.
func (s *Subagents) Stats() (json.RawMessage, error) {
	defer runtime.KeepAlive(s)
	return answer(cabi.SubagentsStats(s.handle))
}

// MarshalJSON is the handle, by which the document of an assembly names the object. The object must not be closed, nor
// forgotten, before the assembly is made of it.
func (s *Subagents) MarshalJSON() ([]byte, error) { return json.Marshal(s.handle) }

func (s *Subagents) addTo(c *composition) error {
	text, err := s.MarshalJSON()
	if _, ok := c.document["subagent_runtime"]; !ok {
		c.document["subagent_runtime"] = text
	}
	return err
}

// Close lets go of the object. Assemblies that name it keep it, and their subagents go on.
func (s *Subagents) Close() error { return s.object.Close() }
