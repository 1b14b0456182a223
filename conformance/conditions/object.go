package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// object is the smallest thing that both generations accept: a kind, a name, labels, a
// generation and two lists of conditions.
type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	conditions  []metav1.Condition
	conditions1 clusterv1.Conditions
}

func (o *object) GetConditions() []metav1.Condition                    { return o.conditions }
func (o *object) SetConditions(conditions []metav1.Condition)          { o.conditions = conditions }
func (o *object) GetV1Beta1Conditions() clusterv1.Conditions           { return o.conditions1 }
func (o *object) SetV1Beta1Conditions(conditions clusterv1.Conditions) { o.conditions1 = conditions }

func (o *object) DeepCopyObject() runtime.Object {
	copied := *o
	o.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.conditions = append([]metav1.Condition(nil), o.conditions...)
	copied.conditions1 = o.conditions1.DeepCopy()
	return &copied
}

// source is an object as a case spells it.
type source[C any] struct {
	Kind         string `json:"kind"`
	Name         string `json:"name"`
	Generation   int64  `json:"generation"`
	ControlPlane bool   `json:"controlPlane"`
	Conditions   []C    `json:"conditions"`
}

func (s source[C]) bare() *object {
	made := &object{
		TypeMeta:   metav1.TypeMeta{Kind: s.Kind, APIVersion: "example.dev/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Generation: s.Generation},
	}
	if s.ControlPlane {
		made.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	}
	return made
}

func generation2Object(s source[metav1.Condition]) *object {
	made := s.bare()
	made.conditions = s.Conditions
	return made
}

func generation1Object(s source[clusterv1.Condition]) *object {
	made := s.bare()
	made.conditions1 = s.Conditions
	return made
}
