package main

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/cluster-api/util/conditions"
)

// benchmark is what one case costs here.
type benchmark struct {
	NanosecondsPerOp float64 `json:"nanosecondsPerOp"`
	AllocationsPerOp int64   `json:"allocationsPerOp"`
	BytesPerOp       int64   `json:"bytesPerOp"`
}

// measure runs one case again and again, the decoding of the case outside of the clock.
func measure(raw json.RawMessage) answer {
	var head struct {
		Op string `json:"op"`
	}
	must(json.Unmarshal(raw, &head))
	var body func()
	switch head.Op {
	case "set":
		c := decode[setCase](raw)
		target := generation2Object(c.Object)
		body = func() { conditions.Set(target, c.Condition) }
	case "summary":
		c := decode[summaryCase](raw)
		from := generation2Object(c.Object)
		options := c.options(from)
		body = func() {
			_, err := conditions.NewSummaryCondition(from, c.Target, options...)
			must(err)
		}
	case "aggregate":
		c := decode[aggregateCase](raw)
		from := c.sources()
		options := c.options()
		body = func() {
			_, err := conditions.NewAggregateCondition(from, c.Type, options...)
			must(err)
		}
	default:
		return answer{Panic: "no benchmark for " + head.Op}
	}
	outcome := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			body()
		}
	})
	return answer{Bench: &benchmark{
		NanosecondsPerOp: float64(outcome.T.Nanoseconds()) / float64(outcome.N),
		AllocationsPerOp: outcome.AllocsPerOp(),
		BytesPerOp:       outcome.AllocedBytesPerOp(),
	}}
}
