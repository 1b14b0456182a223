package main

import (
	"encoding/json"
	"fmt"

	"github.com/gobuffalo/flect"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cluster-api/util/conditions"
)

type metaObject = source[metav1.Condition]

// setCase also serves the plain list functions of apimachinery, which know no object.
type setCase struct {
	Object    metaObject       `json:"object"`
	Condition metav1.Condition `json:"condition"`
	Type      string           `json:"type"`
	// Order is "default", "none" or "byName".
	Order string `json:"order"`
}

func byName(i, j metav1.Condition) bool { return i.Type < j.Type }

func sortFunc(order string) conditions.ConditionSortFunc {
	if order == "byName" {
		return byName
	}
	return nil
}

func generation2Set(raw []byte) (answer, error) {
	c := decode[setCase](raw)
	target := generation2Object(c.Object)
	if c.Order == "default" {
		conditions.Set(target, c.Condition)
	} else {
		conditions.Set(target, c.Condition, sortFunc(c.Order))
	}
	return answer{Conditions: wireAll(target.conditions)}, nil
}

func generation2Delete(raw []byte) (answer, error) {
	c := decode[setCase](raw)
	target := generation2Object(c.Object)
	conditions.Delete(target, c.Type)
	return answer{Conditions: wireAll(target.conditions)}, nil
}

func generation2Get(raw []byte) (answer, error) {
	c := decode[setCase](raw)
	from := generation2Object(c.Object)
	result := answer{Facts: map[string]any{
		"has":       conditions.Has(from, c.Type),
		"isTrue":    conditions.IsTrue(from, c.Type),
		"isFalse":   conditions.IsFalse(from, c.Type),
		"isUnknown": conditions.IsUnknown(from, c.Type),
		"reason":    conditions.GetReason(from, c.Type),
		"message":   conditions.GetMessage(from, c.Type),
	}}
	if found := conditions.Get(from, c.Type); found != nil {
		result.Condition = wire(found)
	}
	return result, nil
}

func metaSet(raw []byte) (answer, error) {
	c := decode[setCase](raw)
	changed := meta.SetStatusCondition(&c.Object.Conditions, c.Condition)
	return answer{Changed: &changed, Conditions: wireAll(c.Object.Conditions)}, nil
}

func metaRemove(raw []byte) (answer, error) {
	c := decode[setCase](raw)
	removed := meta.RemoveStatusCondition(&c.Object.Conditions, c.Type)
	return answer{Changed: &removed, Conditions: wireAll(c.Object.Conditions)}, nil
}

// strategyCase is the default strategy with its options spelled out; absent, the package
// builds its own.
type strategyCase struct {
	NegativeTarget bool     `json:"negativeTarget"`
	Negative       []string `json:"negative"`
	// Reasons for issues, unknown and info, in this order.
	Reasons *[3]string `json:"reasons"`
	// FirstReason takes the reason of the first condition of the top group.
	FirstReason bool `json:"firstReason"`
	// Patient makes an info of whatever waits.
	Patient bool `json:"patient"`
	// MaxLines cuts the lines of a summary.
	MaxLines *int `json:"maxLines"`
}

const waiting = "WaitingForMachine"

func firstReason(issues, unknown, info []conditions.ConditionWithOwnerInfo) string {
	for _, group := range [][]conditions.ConditionWithOwnerInfo{issues, unknown, info} {
		if len(group) > 0 {
			return fmt.Sprintf("%s of %s", group[0].Reason, group[0].OwnerResource.Name)
		}
	}
	return ""
}

func (s *strategyCase) build() conditions.CustomMergeStrategy {
	options := []conditions.DefaultMergeStrategyOption{
		conditions.TargetConditionHasPositivePolarity(!s.NegativeTarget),
		conditions.GetPriorityFunc(conditions.GetDefaultMergePriorityFunc(s.Negative...)),
	}
	if s.Reasons != nil {
		compute := conditions.GetDefaultComputeMergeReasonFunc(s.Reasons[0], s.Reasons[1], s.Reasons[2])
		options = append(options, conditions.ComputeReasonFunc(compute))
	}
	if s.FirstReason {
		options = append(options, conditions.ComputeReasonFunc(firstReason))
	}
	if s.Patient {
		usual := conditions.GetDefaultMergePriorityFunc(s.Negative...)
		options = append(options, conditions.GetPriorityFunc(func(c metav1.Condition) conditions.MergePriority {
			if c.Reason == waiting {
				return conditions.InfoMergePriority
			}
			return usual(c)
		}))
	}
	if s.MaxLines != nil {
		options = append(options, conditions.SummaryMessageTransformFunc(func(lines []string) []string {
			return lines[:min(len(lines), *s.MaxLines)]
		}))
	}
	return conditions.CustomMergeStrategy{MergeStrategy: conditions.DefaultMergeStrategy(options...)}
}

type summaryCase struct {
	Object    metaObject         `json:"object"`
	Target    string             `json:"target"`
	Types     []string           `json:"types"`
	Negative  []string           `json:"negative"`
	Ignore    []string           `json:"ignore"`
	Overrides []metav1.Condition `json:"overrides"`
	Strategy  *strategyCase      `json:"strategy"`
}

func (c summaryCase) options(from *object) []conditions.SummaryOption {
	overrides := conditions.OverrideConditions{}
	for _, condition := range c.Overrides {
		owner := conditions.ConditionOwnerInfo{Kind: from.Kind, Name: from.Name}
		overrides = append(overrides, conditions.ConditionWithOwnerInfo{OwnerResource: owner, Condition: condition})
	}
	options := []conditions.SummaryOption{
		conditions.ForConditionTypes(c.Types),
		conditions.NegativePolarityConditionTypes(c.Negative),
		conditions.IgnoreTypesIfMissing(c.Ignore),
		overrides,
	}
	if c.Strategy != nil {
		options = append(options, c.Strategy.build())
	}
	return options
}

func generation2Summary(raw []byte) (answer, error) {
	c := decode[summaryCase](raw)
	from := generation2Object(c.Object)
	computed, err := conditions.NewSummaryCondition(from, c.Target, c.options(from)...)
	if err != nil {
		return answer{}, err
	}
	return answer{Condition: wire(computed)}, nil
}

type fallbackCase struct {
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

type mirrorCase struct {
	Object   metaObject    `json:"object"`
	Type     string        `json:"type"`
	Target   string        `json:"target"`
	Fallback *fallbackCase `json:"fallback"`
}

func (c mirrorCase) options() []conditions.MirrorOption {
	options := []conditions.MirrorOption{}
	if c.Target != "" {
		options = append(options, conditions.TargetConditionType(c.Target))
	}
	if c.Fallback != nil {
		options = append(options, conditions.FallbackCondition(*c.Fallback))
	}
	return options
}

func generation2Mirror(raw []byte) (answer, error) {
	c := decode[mirrorCase](raw)
	computed := conditions.NewMirrorCondition(generation2Object(c.Object), c.Type, c.options()...)
	return answer{Condition: wire(computed)}, nil
}

func generation2MirrorUnstructured(raw []byte) (answer, error) {
	var c struct {
		Content  json.RawMessage `json:"content"`
		Type     string          `json:"type"`
		Target   string          `json:"target"`
		Fallback *fallbackCase   `json:"fallback"`
	}
	must(json.Unmarshal(raw, &c))
	from := &unstructured.Unstructured{}
	must(from.UnmarshalJSON(c.Content))
	options := mirrorCase{Target: c.Target, Fallback: c.Fallback}.options()
	computed, err := conditions.NewMirrorConditionFromUnstructured(from, c.Type, options...)
	if err != nil {
		return answer{}, err
	}
	return answer{Condition: wire(computed)}, nil
}

func plural(raw []byte) (answer, error) {
	kind := decode[struct {
		Kind string `json:"kind"`
	}](raw).Kind
	return answer{Facts: map[string]any{"plural": flect.Pluralize(kind)}}, nil
}

type aggregateCase struct {
	Objects  []metaObject  `json:"objects"`
	Type     string        `json:"type"`
	Target   string        `json:"target"`
	Negative []string      `json:"negative"`
	Strategy *strategyCase `json:"strategy"`
}

func (c aggregateCase) sources() []*object {
	from := make([]*object, 0, len(c.Objects))
	for i := range c.Objects {
		from = append(from, generation2Object(c.Objects[i]))
	}
	return from
}

func (c aggregateCase) options() []conditions.AggregateOption {
	options := []conditions.AggregateOption{}
	if c.Target != "" {
		options = append(options, conditions.TargetConditionType(c.Target))
	}
	if c.Negative != nil {
		options = append(options, conditions.NegativePolarityConditionTypes(c.Negative))
	}
	if c.Strategy != nil {
		options = append(options, c.Strategy.build())
	}
	return options
}

func generation2Aggregate(raw []byte) (answer, error) {
	c := decode[aggregateCase](raw)
	computed, err := conditions.NewAggregateCondition(c.sources(), c.Type, c.options()...)
	if err != nil {
		return answer{}, err
	}
	return answer{Condition: wire(computed)}, nil
}

type patchCase[C any] struct {
	Before source[C] `json:"before"`
	After  source[C] `json:"after"`
	Latest source[C] `json:"latest"`
	Owned  []string  `json:"owned"`
	Force  bool      `json:"force"`
	Order  string    `json:"order"`
}

func generation2Patch(raw []byte) (answer, error) {
	c := decode[patchCase[metav1.Condition]](raw)
	patch, err := conditions.NewPatch(generation2Object(c.Before), generation2Object(c.After))
	if err != nil {
		return answer{}, err
	}
	options := []conditions.PatchApplyOption{
		conditions.OwnedConditionTypes(c.Owned),
		conditions.ForceOverwrite(c.Force),
	}
	if c.Order != "default" {
		options = append(options, orderOption{sortFunc(c.Order)})
	}
	latest := generation2Object(c.Latest)
	if err := patch.Apply(latest, options...); err != nil {
		return answer{}, err
	}
	return answer{Conditions: wireAll(latest.conditions)}, nil
}

// orderOption carries a nil sort function past Apply's check for nil options.
type orderOption struct{ sort conditions.ConditionSortFunc }

func (o orderOption) ApplyToPatchApply(options *conditions.PatchApplyOptions) {
	o.sort.ApplyToPatchApply(options)
}
