// Documents: how Go values become the JSON text that the library reads.

package fawn

import (
	"encoding/json"
	"fmt"
	"unsafe"
)

// Object is a JSON object written in place. Any other type that encoding/json can marshal does as well.
type Object = map[string]any

// encode gives the JSON text of a document. Text that is JSON already stays as it is, byte for byte, and is not copied:
// the library reads it during the call only.
func encode(document any) (string, error) {
	switch text := document.(type) {
	case nil:
		return "{}", nil
	case string:
		return text, nil
	case json.RawMessage:
		return view(text), nil
	case []byte:
		return view(text), nil
	}
	text, err := json.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("fawn: the document cannot become JSON: %w", err)
	}
	return view(text), nil
}

// view reads bytes as a string without copying them. They must not change while the string is in use.
func view(text []byte) string {
	return unsafe.String(unsafe.SliceData(text), len(text))
}
