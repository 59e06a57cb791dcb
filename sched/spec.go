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
	Storage    = spec.Storage
	License    = spec.License
	Group      = spec.Group
	Root       = spec.Root
	Window     = spec.Window
	Span       = spec.Span

	Policy    = spec.Policy
	Mode      = spec.Mode
	Estimates = spec.Estimates
	Placement = spec.Placement
	Order     = spec.Order
	Weights   = spec.Weights
	Limits    = spec.Limits
	QOS       = spec.QOS
	Partition = spec.Partition
	MixShape  = spec.MixShape
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

	FCFS         = spec.FCFS
	Easy         = spec.Easy
	EasySJBF     = spec.EasySJBF
	Conservative = spec.Conservative
	Gbatch       = spec.Gbatch

	ByUser      = spec.ByUser
	ByPredicted = spec.ByPredicted
	ByExact     = spec.ByExact

	PlaceRandom  = spec.PlaceRandom
	PlaceBestFit = spec.PlaceBestFit
	PlaceFGD     = spec.PlaceFGD
	PlaceGbatch  = spec.PlaceGbatch

	ByPriority = spec.ByPriority
	ByShortest = spec.ByShortest
)

// DefaultPolicy is spec.DefaultPolicy.
func DefaultPolicy() Policy { return spec.DefaultPolicy() }
