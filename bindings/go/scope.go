// What a configuration asks the host for: which of its models and tools are the host's, and whether anything asks a guardrail,
// a sandbox or a memory. A function that surely nothing can call is an error.

package fawn

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// unnamed is what a host call says of a model that has no "model".
const unnamed = "host"

// modelEntry is what matters here of a model: given in place, or the name of one of the runtime's.
type modelEntry struct {
	ref       string
	provider  string
	key       string // the name in its host calls, of the provider "host"
	fallbacks []modelEntry
}

func (m *modelEntry) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &m.ref)
	}
	var says struct {
		Provider  string       `json:"provider"`
		Model     *string      `json:"model"`
		Fallbacks []modelEntry `json:"fallbacks"`
	}
	if err := json.Unmarshal(text, &says); err != nil {
		return err
	}
	m.provider, m.key, m.fallbacks = says.Provider, unnamed, says.Fallbacks
	if says.Model != nil {
		m.key = *says.Model
	}
	return nil
}

// resolve reads it as one of an application's configuration.
func (m *modelEntry) resolve() {
	m.ref, m.provider, m.key = resolved(m.ref), resolved(m.provider), resolved(m.key)
	for n := range m.fallbacks {
		m.fallbacks[n].resolve()
	}
}

// providerConfig says who is asked, as a guardrail.
type providerConfig struct {
	Use string `json:"use"`
}

// scope is what the configuration of an application says of the host: a runtime's, or the one that an assembly has instead.
type scope struct {
	models  map[string]modelEntry
	entries []modelEntry
	tools   []string // those of the host
	// Whether anything asks.
	guardrail, sandbox, memory bool
}

// scopeOf reads a configuration that the library has accepted. Of one that cannot be read here nothing is known: nil.
func scopeOf(text string) *scope {
	var says struct {
		Models []json.RawMessage `json:"models"`
		Tools  []struct {
			Name string  `json:"name"`
			Use  *string `json:"use"`
		} `json:"tools"`
		Guardrails *struct {
			Enabled  *bool           `json:"enabled"`
			Provider *providerConfig `json:"provider"`
		} `json:"guardrails"`
		Sandbox *struct {
			Use string `json:"use"`
		} `json:"sandbox"`
		Memory *struct {
			Class   string `json:"manager_class"`
			Enabled *bool  `json:"enabled"`
			Mode    string `json:"mode"`
		} `json:"memory"`
	}
	if json.Unmarshal([]byte(text), &says) != nil {
		return nil
	}
	s := &scope{models: make(map[string]modelEntry, len(says.Models))}
	for _, text := range says.Models {
		var named struct {
			Name string `json:"name"`
		}
		var entry modelEntry
		if json.Unmarshal(text, &named) != nil || json.Unmarshal(text, &entry) != nil {
			return nil
		}
		entry.resolve()
		s.models[resolved(named.Name)] = entry
		s.entries = append(s.entries, entry)
	}
	for _, tool := range says.Tools {
		if tool.Use == nil {
			s.tools = append(s.tools, resolved(tool.Name))
		}
	}
	if g := says.Guardrails; g != nil {
		s.guardrail = g.Enabled != nil && *g.Enabled && g.Provider.isHost()
	}
	s.sandbox = says.Sandbox != nil && resolved(says.Sandbox.Use) == "host"
	if m := says.Memory; m != nil {
		s.memory = resolved(m.Class) == "host" && (m.Enabled == nil || *m.Enabled) && resolved(m.Mode) != "tool"
	}
	return s
}

func (p *providerConfig) isHost() bool { return p != nil && resolved(p.Use) == "host" }

// resolved is text of a configuration as the library reads it: $NAME is a variable of the environment, $$ a sign.
func resolved(text string) string {
	name, refers := strings.CutPrefix(text, "$")
	if !refers || strings.HasPrefix(name, "$") {
		return name
	}
	return os.Getenv(name)
}

// hostModels are the names in the host calls of models and all their fallbacks.
func (s *scope) hostModels(models ...modelEntry) []string {
	var keys []string
	met := make(map[string]bool)
	var walk func(entry modelEntry)
	walk = func(entry modelEntry) {
		if entry.ref != "" {
			if met[entry.ref] {
				return
			}
			met[entry.ref] = true
			entry = s.models[entry.ref]
		}
		if entry.provider == "host" && !slices.Contains(keys, entry.key) {
			keys = append(keys, entry.key)
		}
		for _, fallback := range entry.fallbacks {
			walk(fallback)
		}
	}
	for _, entry := range models {
		walk(entry)
	}
	return keys
}

// assemblyDocument is what matters here of an assembly's configuration.
type assemblyDocument struct {
	Factory    string            `json:"factory"`
	Model      *modelEntry       `json:"model"`
	AppConfig  json.RawMessage   `json:"app_config"`
	Middleware []json.RawMessage `json:"middleware"`
	Extra      []json.RawMessage `json:"extra_middleware"`
	Features   struct {
		Guardrail json.RawMessage `json:"guardrail"`
	} `json:"features"`
}

func (d *assemblyDocument) isLead() bool { return d.Factory == "lead" || d.Factory == "lead_graph" }

// scope is that of the configuration which a lead agent is made of; nil if that is not known.
func (d *assemblyDocument) scope(runtime *scope) *scope {
	if len(d.AppConfig) > 0 && string(d.AppConfig) != "null" {
		return scopeOf(string(d.AppConfig))
	}
	return runtime
}

// namesGuardrail tells whether a chain, or a feature, asks the host as a guardrail.
func (d *assemblyDocument) namesGuardrail() bool {
	asks := func(part json.RawMessage, name string) bool {
		var says struct {
			Name     string          `json:"name"`
			Provider *providerConfig `json:"provider"`
		}
		return json.Unmarshal(part, &says) == nil && says.Name == name && says.Provider != nil && says.Provider.Use == "host"
	}
	isGuardrail := func(part json.RawMessage) bool { return asks(part, "guardrail_provider") }
	return slices.ContainsFunc(d.Middleware, isGuardrail) || slices.ContainsFunc(d.Extra, isGuardrail) || asks(d.Features.Guardrail, "")
}

// checkAsked says which function of an assembly nothing can call. text is its configuration, which the library has accepted.
func (f *funcs) checkAsked(text string, runtime *scope) error {
	var document assemblyDocument
	if json.Unmarshal([]byte(text), &document) != nil || runtime == nil {
		return nil // not known
	}
	app, models := &scope{}, []modelEntry{}
	if document.isLead() {
		if app = document.scope(runtime); app == nil {
			return nil
		}
		models = app.entries
	} else if document.Model != nil {
		app.models = runtime.models
		models = append(models, *document.Model)
	}
	if err := f.checkModels(app.hostModels(models...)); err != nil {
		return err
	}
	for _, test := range []struct {
		is, asked  bool
		what, want string
	}{
		{f.guardrail != nil, app.guardrail || document.namesGuardrail(), "Guardrail", `"guardrails": {"enabled": true, "provider": {"use": "host"}}, a chain "guardrail_provider" with {"use": "host"}`},
		{f.sandbox != nil, app.sandbox, "Sandbox", `"sandbox": {"use": "host"}`},
		{f.memory != nil, app.memory, "Memory", `"memory": {"manager_class": "host"}, switched on`},
	} {
		if test.is && !test.asked {
			return unasked(fmt.Sprintf("there is a %s, but nothing asks it: a lead agent's configuration wants %s", test.what, test.want))
		}
	}
	return nil
}

// checkModels says which function of a model none of these, the host's, asks.
func (f *funcs) checkModels(asked []string) error {
	left := 0
	for _, name := range asked {
		if f.models[name] == nil {
			left++
		}
	}
	if f.model != nil && left == 0 {
		return unasked(`there is a Model, but no model of the provider "host" that it could be`)
	}
	for name := range f.models {
		if !slices.Contains(asked, name) {
			return unasked(fmt.Sprintf(`there is a Model named %q, but no model of the provider "host" with that as its "model"`, name))
		}
	}
	return nil
}

func unasked(message string) error {
	return &Error{Code: ErrConflict, Status: -128, Message: message}
}
