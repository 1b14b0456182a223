package main

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions/deprecated/v1beta1"
)

type severityObject = source[clusterv1.Condition]

type setCase1 struct {
	Object    severityObject      `json:"object"`
	Condition clusterv1.Condition `json:"condition"`
	Type      string              `json:"type"`
}

func generation1Set(raw []byte) (answer, error) {
	c := decode[setCase1](raw)
	target := generation1Object(c.Object)
	v1beta1.Set(target, &c.Condition)
	return answer{Conditions: wireAll(target.conditions1)}, nil
}

func generation1SetWithTime(raw []byte) (answer, error) {
	c := decode[setCase1](raw)
	target := generation1Object(c.Object)
	v1beta1.SetWithCustomLastTransitionTime(target, &c.Condition)
	return answer{Conditions: wireAll(target.conditions1)}, nil
}

// generation1Mark goes through the constructors: polarity and status choose which.
func generation1Mark(raw []byte) (answer, error) {
	c := decode[struct {
		setCase1
		Negative bool `json:"negative"`
	}](raw)
	target := generation1Object(c.Object)
	wanted := c.Condition
	switch {
	case wanted.Status == "Unknown":
		v1beta1.MarkUnknown(target, wanted.Type, wanted.Reason, "%s", wanted.Message)
	case wanted.Status == "True" && c.Negative:
		v1beta1.MarkTrueWithNegativePolarity(target, wanted.Type, wanted.Reason, wanted.Severity, "%s", wanted.Message)
	case wanted.Status == "True":
		v1beta1.MarkTrue(target, wanted.Type)
	case c.Negative:
		v1beta1.MarkFalseWithNegativePolarity(target, wanted.Type)
	default:
		v1beta1.MarkFalse(target, wanted.Type, wanted.Reason, wanted.Severity, "%s", wanted.Message)
	}
	return answer{Conditions: wireAll(target.conditions1)}, nil
}

func generation1Delete(raw []byte) (answer, error) {
	c := decode[setCase1](raw)
	target := generation1Object(c.Object)
	v1beta1.Delete(target, clusterv1.ConditionType(c.Type))
	return answer{Conditions: wireAll(target.conditions1)}, nil
}

// mergeCase is every option of generation 1's summary and aggregate.
type mergeCase struct {
	Types           []clusterv1.ConditionType `json:"types"`
	Negative        []clusterv1.ConditionType `json:"negative"`
	StepCounter     bool                      `json:"stepCounter"`
	StepCounterOnly []clusterv1.ConditionType `json:"stepCounterOnly"`
	SourceRef       bool                      `json:"sourceRef"`
}

func (m mergeCase) options() []v1beta1.MergeOption {
	options := []v1beta1.MergeOption{}
	if m.Types != nil {
		options = append(options, v1beta1.WithConditions(m.Types...))
	}
	if m.Negative != nil {
		options = append(options, v1beta1.WithNegativePolarityConditions(m.Negative...))
	}
	options = append(options, v1beta1.WithStepCounterIf(m.StepCounter))
	if m.StepCounterOnly != nil {
		options = append(options, v1beta1.WithStepCounterIfOnly(m.StepCounterOnly...))
	}
	if m.SourceRef {
		options = append(options, v1beta1.AddSourceRef())
	}
	return options
}

func generation1Summary(raw []byte) (answer, error) {
	c := decode[struct {
		Object severityObject `json:"object"`
		mergeCase
	}](raw)
	target := generation1Object(c.Object)
	v1beta1.SetSummary(target, c.options()...)
	return answer{Conditions: wireAll(target.conditions1)}, nil
}

func generation1Mirror(raw []byte) (answer, error) {
	c := decode[struct {
		Object   severityObject `json:"object"`
		From     severityObject `json:"from"`
		Target   string         `json:"target"`
		Fallback *struct {
			Value    bool                        `json:"value"`
			Reason   string                      `json:"reason"`
			Severity clusterv1.ConditionSeverity `json:"severity"`
			Message  string                      `json:"message"`
		} `json:"fallback"`
	}](raw)
	target := generation1Object(c.Object)
	options := []v1beta1.MirrorOptions{}
	if f := c.Fallback; f != nil {
		options = append(options, v1beta1.WithFallbackValue(f.Value, f.Reason, f.Severity, f.Message))
	}
	v1beta1.SetMirror(target, clusterv1.ConditionType(c.Target), generation1Object(c.From), options...)
	return answer{Conditions: wireAll(target.conditions1)}, nil
}

func generation1Aggregate(raw []byte) (answer, error) {
	c := decode[struct {
		Object  severityObject   `json:"object"`
		Objects []severityObject `json:"objects"`
		Target  string           `json:"target"`
		mergeCase
	}](raw)
	target := generation1Object(c.Object)
	from := make([]v1beta1.Getter, 0, len(c.Objects))
	for i := range c.Objects {
		from = append(from, generation1Object(c.Objects[i]))
	}
	v1beta1.SetAggregate(target, clusterv1.ConditionType(c.Target), from, c.options()...)
	return answer{Conditions: wireAll(target.conditions1)}, nil
}

func generation1Patch(raw []byte) (answer, error) {
	c := decode[patchCase[clusterv1.Condition]](raw)
	patch, err := v1beta1.NewPatch(generation1Object(c.Before), generation1Object(c.After))
	if err != nil {
		return answer{}, err
	}
	owned := make([]clusterv1.ConditionType, 0, len(c.Owned))
	for _, name := range c.Owned {
		owned = append(owned, clusterv1.ConditionType(name))
	}
	latest := generation1Object(c.Latest)
	err = patch.Apply(latest, v1beta1.WithOwnedConditions(owned...), v1beta1.WithForceOverwrite(c.Force))
	if err != nil {
		return answer{}, err
	}
	return answer{Conditions: wireAll(latest.conditions1)}, nil
}
