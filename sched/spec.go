package sched

import "gbatch/sched/spec"

// What the owner of a State tells it is in package spec, below the parts of the
// scheduler that read it; these are the same types by the name of the package
// that its users import.
type (
	Time       = spec.Time
	JobID      = spec.JobID
	Shape      = spec.Shape
	Job        = spec.Job
	Running    = spec.Running
	Allocation = spec.Allocation
	GPUShare   = spec.GPUShare
	Node       = spec.Node
	NodeState  = spec.NodeState
	GPU        = spec.GPU
	Window     = spec.Window
)

// See package spec.
const (
	Second = spec.Second
	Minute = spec.Minute
	Hour   = spec.Hour
	Day    = spec.Day
	Never  = spec.Never

	WholeGPU = spec.WholeGPU
	MaxGPUs  = spec.MaxGPUs

	Up      = spec.Up
	Drained = spec.Drained
	Down    = spec.Down
)
