// Events: what happened, as the library tells it.

package fawn

import (
	"encoding/json"
	"time"
)

// Types of events. New versions may add to them: ignore what you do not know.
const (
	// EventRunStart is the first event of a run; data [RunStart].
	EventRunStart = "run_start"
	// EventMessageDelta is a piece of a reply; data [MessageDelta].
	EventMessageDelta = "message_delta"
	// EventModelAttempt says that an attempt to have a model reply failed, and what follows; data [ModelAttempt].
	EventModelAttempt = "model_attempt"
	// EventStreamReset says that the pieces of a message so far are void; data [StreamReset].
	EventStreamReset = "stream_reset"
	// EventMessage is a whole message, stored; data [MessageStored].
	EventMessage = "message"
	// EventUpdate is all that a node wrote, stored; data [Update].
	EventUpdate = "update"
	// EventValues is the whole state after a step; data [Values].
	EventValues = "values"
	// EventUsage counts tokens; data [UsageReport].
	EventUsage = "usage"
	// EventCheckpoint says that a step is stored; data [Checkpoint].
	EventCheckpoint = "checkpoint"
	// EventGoal tells how the goal of the thread is judged, and what comes of it; data [GoalReport].
	EventGoal = "goal"
	// EventHostCall asks the host for something; data [HostCall].
	EventHostCall = "host_call"
	// EventHostCallCancelled says that an answer is of no use any more; data [HostCallCancelled].
	EventHostCallCancelled = "host_call_cancelled"
	// EventCustom is what a tool emitted; data [Custom].
	EventCustom = "custom"
	// EventGap says that a lossy queue dropped events; data [Gap].
	EventGap = "gap"
	// EventLog is a warning of the library; data [Log].
	EventLog = "log"
	// EventMiddleware is a record of something that a middleware did; data [MiddlewareRecord].
	EventMiddleware = "middleware"
	// EventAgentAssembled tells of a new assembly of the factory "lead"; data [AgentAssembled].
	EventAgentAssembled = "agent_assembled"
	// EventTaskStarted says that a subagent is to do a piece of work, when it has a place; data [TaskStarted].
	EventTaskStarted = "task_started"
	// EventTaskRunning is a message of a subagent; data [TaskRunning].
	EventTaskRunning = "task_running"
	// EventTaskCompleted says that a subagent has a result; data [TaskEnd].
	EventTaskCompleted = "task_completed"
	// EventTaskFailed says that a subagent has none; data [TaskEnd].
	EventTaskFailed = "task_failed"
	// EventTaskCancelled says that a delegation was ended; data [TaskEnd].
	EventTaskCancelled = "task_cancelled"
	// EventTaskTimedOut says that the time of a delegation was over; data [TaskEnd].
	EventTaskTimedOut = "task_timed_out"
	// EventRunEnd is the last event of a run; data [Result].
	EventRunEnd = "run_end"
)

// Event is something that happened.
type Event struct {
	// Seq grows strictly within a run.
	Seq uint64
	// RunID is the run that it happened in; empty for events of no run.
	RunID string
	// ThreadID is the thread of the run; empty for events of no run.
	ThreadID string
	// TaskID is the task call of the subagent that caused it; empty when the run itself did.
	TaskID string
	// Type says what happened, and what Data is.
	Type string
	// At is when.
	At time.Time
	// Raw is the whole event as the library wrote it. It shares memory with events that were taken with it: do not change
	// it, and copy it if you keep it for long.
	Raw json.RawMessage

	data json.RawMessage
}

// String is the event as the library wrote it.
func (e Event) String() string { return string(e.Raw) }

// RawData is the member "data" as the library wrote it, a part of Raw.
func (e *Event) RawData() json.RawMessage { return e.data }

// Decode reads the event's data into a value of yours, as json.Unmarshal does.
func (e *Event) Decode(into any) error { return json.Unmarshal(e.data, into) }

// Data reads the event's data: a pointer to the type that the event's type names, made for a type switch.
//
//	switch data := event.Data().(type) {
//	case *fawn.MessageDelta:
//		fmt.Print(data.Text)
//	case *fawn.Result:
//		fmt.Println(data.Status)
//	}
//
// Of a type that is not known, or of a shape that this version cannot read, it is the json.RawMessage itself.
func (e *Event) Data() any {
	var data any
	switch e.Type {
	case EventRunStart:
		data = new(RunStart)
	case EventMessageDelta:
		data = new(MessageDelta)
	case EventModelAttempt:
		data = new(ModelAttempt)
	case EventStreamReset:
		data = new(StreamReset)
	case EventMessage:
		data = new(MessageStored)
	case EventUpdate:
		data = new(Update)
	case EventValues:
		data = new(Values)
	case EventUsage:
		data = new(UsageReport)
	case EventCheckpoint:
		data = new(Checkpoint)
	case EventGoal:
		data = new(GoalReport)
	case EventHostCall:
		data = new(HostCall)
	case EventHostCallCancelled:
		data = new(HostCallCancelled)
	case EventCustom:
		data = new(Custom)
	case EventGap:
		data = new(Gap)
	case EventLog:
		data = new(Log)
	case EventMiddleware:
		data = new(MiddlewareRecord)
	case EventTaskStarted:
		data = new(TaskStarted)
	case EventTaskRunning:
		data = new(TaskRunning)
	case EventTaskCompleted, EventTaskFailed, EventTaskCancelled, EventTaskTimedOut:
		data = new(TaskEnd)
	case EventRunEnd:
		data = new(Result)
	default:
		return e.data
	}
	if json.Unmarshal(e.data, data) != nil {
		return e.data
	}
	switch data := data.(type) {
	case *Result:
		data.raw = e.data
	case *HostCall:
		data.TaskID = e.TaskID
	}
	return data
}
