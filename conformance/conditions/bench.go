package main

import (
	"encoding/json"
	"math"
	goruntime "runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// benchmark is what one case costs here.
type benchmark struct {
	NanosecondsPerOp float64 `json:"nanosecondsPerOp"`
	AllocationsPerOp uint64  `json:"allocationsPerOp"`
}

// Both sides measure in the same way: the processor time of the calling thread, the best of many batches, because
// everything else on the host only adds time. What the garbage collector does on other threads is not counted.
const (
	batch   = 15 * time.Millisecond
	batches = 40
)

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
	return answer{Bench: &benchmark{
		NanosecondsPerOp: best(body),
		AllocationsPerOp: uint64(testing.AllocsPerRun(3, body)),
	}}
}

func best(body func()) float64 {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	least := math.Inf(1)
	for runs, measured := 1, 0; measured < batches; {
		start := threadTime()
		for range runs {
			body()
		}
		taken := threadTime() - start
		if taken < batch {
			runs *= 2
			continue
		}
		least = min(least, float64(taken.Nanoseconds())/float64(runs))
		measured++
	}
	return least
}

func threadTime() time.Duration {
	var now unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now))
	return time.Duration(now.Nano())
}
