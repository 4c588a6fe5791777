// The library about itself, and state and descriptors without a runtime.

package fawn

import (
	"encoding/json"

	"fawn/bindings/go/internal/cabi"
)

// Version is the version of the library that is loaded, such as "0.1.0".
func Version() string { return cabi.Version() }

// ABIVersion is the version of the ABI that the loaded library serves. [NewRuntime] refuses to work with another one than
// the binding was compiled for.
func ABIVersion() int { return int(cabi.ABIVersion()) }

// StatusName is the name of a status in the C header, such as "FAWN_ERR_HANDLE" for -102.
func StatusName(status int) string { return cabi.StatusName(int32(status)) }

// Describe answers questions about the library, as JSON. The topic "" lists the topics; "schema/run_request" is one of the
// JSON Schemas; "handles" are the objects that are alive.
func Describe(topic string) (json.RawMessage, error) {
	return answer(cabi.Describe(topic))
}

// Reduce folds updates into the value of a channel, as a thread would, and answers the merged value. The document is
// {"existing": E, "updates": [u1, u2, ...]}.
func Reduce(channel string, document any) (json.RawMessage, error) {
	text, err := encode(document)
	if err != nil {
		return nil, err
	}
	return answer(cabi.Reduce(channel, text))
}

// ConvertMessages brings {"messages": [...]} in any accepted form into the canonical list of messages.
func ConvertMessages(document any) (json.RawMessage, error) {
	text, err := encode(document)
	if err != nil {
		return nil, err
	}
	return answer(cabi.MessagesConvert(text))
}

// DiffDescriptors tells what makes the agent of one descriptor another than that of the other. The document is
// {"before": D, "after": D}, each as [Assembly.Descriptor] answered it, now or in another version. The answer (schema
// "descriptor_diff") has the changes as data and in words; "same" says whether the fingerprints are equal.
func DiffDescriptors(document any) (json.RawMessage, error) {
	text, err := encode(document)
	if err != nil {
		return nil, err
	}
	return answer(cabi.DescriptorDiff(text))
}

// DrawDescriptor draws the agent of a descriptor as a Mermaid flowchart: {"mermaid": "flowchart TD ..."}.
func DrawDescriptor(descriptor any) (json.RawMessage, error) {
	text, err := encode(descriptor)
	if err != nil {
		return nil, err
	}
	return answer(cabi.DescriptorDiagram(text))
}
