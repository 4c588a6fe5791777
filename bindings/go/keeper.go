// What a program keeps for lead agents: the sandbox where their commands and files live, and the memory of what runs said.

package fawn

// Sandbox is the sandbox of lead agents whose configuration has {"sandbox": {"use": "host"}}. Its functions get a
// [SandboxRequest] as JSON; an error fails what needed the sandbox. Calls of those that are nil come as events, to be answered
// by [Runtime.Finish].
type Sandbox struct {
	// Acquire makes the sandbox of a thread, or finds it, and answers a [SandboxAcquired].
	Acquire HostFunc
	// Release is told that a run has ended which was in it, and answers nil.
	Release HostFunc
	// ReadFile answers a [SandboxFile], or nil when there is no such file.
	ReadFile HostFunc
	// WriteFile answers nil.
	WriteFile HostFunc
}

func (s Sandbox) addTo(c *composition) error {
	for name, f := range map[string]HostFunc{"acquire": s.Acquire, "release": s.Release, "read_file": s.ReadFile, "write_file": s.WriteFile} {
		if f != nil {
			put(&c.funcs.sandbox, name, f)
		}
	}
	return nil
}

// SandboxRequest is what a function of a [Sandbox] is asked.
type SandboxRequest struct {
	UserID   string `json:"user_id"`
	ThreadID string `json:"thread_id"`
	// SandboxID is what Acquire answered; empty there.
	SandboxID string `json:"sandbox_id"`
	// Path is of ReadFile and WriteFile.
	Path string `json:"path"`
	// Text is what WriteFile writes.
	Text string `json:"text"`
}

// SandboxAcquired names the sandbox of a thread.
type SandboxAcquired struct {
	SandboxID string `json:"sandbox_id"`
}

// SandboxFile is what a file holds.
type SandboxFile struct {
	Text string `json:"text"`
}

// Memory is the memory of lead agents whose configuration has {"memory": {"manager_class": "host"}}.
type Memory struct {
	// Add gets a [MemoryTurn] as JSON: it takes it in, answers nil, and remembers later.
	Add HostFunc
}

func (m Memory) addTo(c *composition) error {
	if m.Add != nil {
		put(&c.funcs.memory, "add", m.Add)
	}
	return nil
}

// MemoryTurn is what a run said, for a [Memory].
type MemoryTurn struct {
	UserID string `json:"user_id"`
	// AgentName is empty for the agent without a record.
	AgentName string `json:"agent_name"`
	ThreadID  string `json:"thread_id"`
	// TraceID is "deerflow_trace_id" of the request's context; empty without.
	TraceID string `json:"trace_id"`
	// Messages are the thread's, in canonical form.
	Messages []Message `json:"messages"`
}
