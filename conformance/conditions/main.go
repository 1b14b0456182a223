// The responder answers cases with the Go packages that kube-status is compared with:
// sigs.k8s.io/cluster-api/util/conditions (generation 2), its deprecated v1beta1 sibling
// (generation 1), k8s.io/apimachinery/pkg/api/meta, and kstatus of sigs.k8s.io/cli-utils.
//
// One case per line on stdin, one answer per line on stdout, in the same order. A case is
// {"op": name, ...}; conformance/conditions-diff/src/case.rs describes each. The first line
// of output names the versions that answer.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// answer is what an operation did: the list afterwards, the condition it computed, the
// error it raised. Panic is separate from Error, because a panic is a fault of the Go
// package that the Rust side has to answer with an error value.
type answer struct {
	Changed    *bool             `json:"changed,omitempty"`
	Condition  map[string]any    `json:"condition,omitempty"`
	Conditions *[]map[string]any `json:"conditions,omitempty"`
	Facts      map[string]any    `json:"facts,omitempty"`
	Bench      *benchmark        `json:"bench,omitempty"`
	Error      string            `json:"error,omitempty"`
	Panic      string            `json:"panic,omitempty"`
}

type operation func(raw []byte) (answer, error)

var operations = map[string]operation{
	"set":                generation2Set,
	"delete":             generation2Delete,
	"get":                generation2Get,
	"summary":            generation2Summary,
	"mirror":             generation2Mirror,
	"mirrorUnstructured": generation2MirrorUnstructured,
	"aggregate":          generation2Aggregate,
	"plural":             plural,
	"patch":              generation2Patch,
	"metaSet":            metaSet,
	"metaRemove":         metaRemove,
	"set1":               generation1Set,
	"setWithTime1":       generation1SetWithTime,
	"mark1":              generation1Mark,
	"delete1":            generation1Delete,
	"summary1":           generation1Summary,
	"mirror1":            generation1Mirror,
	"aggregate1":         generation1Aggregate,
	"patch1":             generation1Patch,
	"kstatus":            kstatus,
}

func main() {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	must(encoder.Encode(versions()))
	must(out.Flush())

	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			must(encoder.Encode(respond(line)))
		}
		if err != nil || in.Buffered() == 0 {
			must(out.Flush())
		}
		if err != nil {
			return
		}
	}
}

func respond(line []byte) (result answer) {
	defer func() {
		if fault := recover(); fault != nil {
			result = answer{Panic: fmt.Sprint(fault)}
		}
	}()
	var head struct {
		Op    string          `json:"op"`
		Bench json.RawMessage `json:"bench"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return answer{Panic: "the responder cannot read the case: " + err.Error()}
	}
	if head.Op == "bench" {
		return measure(head.Bench)
	}
	run, known := operations[head.Op]
	if !known {
		return answer{Panic: "the responder has no operation " + head.Op}
	}
	result, err := run(line)
	if err != nil {
		result.Error = err.Error()
	}
	return result
}

// versions names what the answers come from, read from the build itself.
func versions() map[string]string {
	found := map[string]string{"go": runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return found
	}
	for _, module := range info.Deps {
		switch module.Path {
		case "sigs.k8s.io/cluster-api", "k8s.io/apimachinery", "github.com/gobuffalo/flect", "sigs.k8s.io/cli-utils":
			found[module.Path] = module.Version
		}
	}
	return found
}

// started bounds what counts as "now": the Go packages read the clock themselves, the
// cases carry only times of other years.
var started = time.Now().Add(-2 * time.Second)

// wire gives a condition as its JSON says, with the clock's answer replaced by "now" and a
// zero time left out.
func wire(condition any) map[string]any {
	text, err := json.Marshal(condition)
	must(err)
	fields := map[string]any{}
	must(json.Unmarshal(text, &fields))
	switch stamp, isText := fields["lastTransitionTime"].(string); {
	case !isText:
		delete(fields, "lastTransitionTime")
	default:
		moment, err := time.Parse(time.RFC3339, stamp)
		must(err)
		if moment.After(started) && moment.Before(time.Now().Add(time.Second)) {
			fields["lastTransitionTime"] = "now"
		}
	}
	return fields
}

func wireAll[T any](conditions []T) *[]map[string]any {
	all := make([]map[string]any, 0, len(conditions))
	for i := range conditions {
		all = append(all, wire(conditions[i]))
	}
	return &all
}

func decode[T any](raw []byte) T {
	var into T
	must(json.Unmarshal(raw, &into))
	return into
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
