package main

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// kstatus says how an object is doing by kstatus' rules.
func kstatus(raw []byte) (answer, error) {
	var asked struct {
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(raw, &asked); err != nil {
		return answer{}, err
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(asked.Object); err != nil {
		return answer{}, err
	}
	result, err := status.Compute(&object)
	if err != nil {
		return answer{}, err
	}
	return answer{Facts: map[string]any{"status": result.Status.String(), "message": result.Message}}, nil
}
