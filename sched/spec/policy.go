package spec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Mode is the way the queue is worked off.
type Mode string

// The modes. Easy is one reservation, Conservative one for every job; EasySJBF
// tries the candidates for backfill shortest first. Gbatch is the default.
const (
	FCFS         Mode = "fcfs" // the first job that does not fit blocks all after it
	Easy         Mode = "easy"
	EasySJBF     Mode = "easy-sjbf"
	Conservative Mode = "conservative"
	Gbatch       Mode = "gbatch"
)

// Estimates says which run time the plan reckons with. Limits still end jobs,
// and windows are kept clear by limits whatever this says. Gbatch mode orders
// jobs by predictions but reserves by limits, so that a prediction that is
// wrong delays nobody's reservation.
type Estimates string

// The estimates.
const (
	ByUser      Estimates = "user"      // the job's limit
	ByPredicted Estimates = "predicted" // Job.Predicted, lengthened step by step when exceeded
	ByExact     Estimates = "exact"     // Job.Predicted, which the caller knows to be the truth
)

// Placement is the way a node is chosen among those that fit.
type Placement string

// The placements. Each has a file place_NAME.go of package sched.
const (
	PlaceRandom  Placement = "random"  // a pseudo-random node, from Policy.Seed and the job
	PlaceBestFit Placement = "bestfit" // the node that is left with the fewest free GPUs
	PlaceFGD     Placement = "fgd"     // fragmentation gradient descent over Policy.Mix, as published
	PlaceGbatch  Placement = "gbatch"  // the node of the least value, then the one where the mix loses least
)

// Order is the order of the candidates for backfill.
type Order string

// The orders.
const (
	ByPriority Order = "priority"
	ByShortest Order = "shortest" // expected run time
)

// Weights are the priority points of a factor at its highest.
type Weights struct {
	Age       int64 `json:"age" yaml:"age"`
	FairShare int64 `json:"fairShare" yaml:"fairShare"`
	Size      int64 `json:"size" yaml:"size"` // grows with the number of GPUs
	QOS       int64 `json:"qos" yaml:"qos"`
	Partition int64 `json:"partition" yaml:"partition"`
	Slowdown  int64 `json:"slowdown" yaml:"slowdown"` // for each time its expected run time that a job has waited
	Small     int64 `json:"small" yaml:"small"`       // for each halving of the machine time that a job is expected to take
}

// Limits bound what one user, project or qos has at once. 0 means no bound.
type Limits struct {
	Running    int   `json:"running,omitempty"`    // jobs
	Queued     int   `json:"queued,omitempty"`     // jobs
	MilliGPU   int64 `json:"milliGpu,omitempty"`   // of running jobs
	GPUMinutes int64 `json:"gpuMinutes,omitempty"` // of running jobs: GPUs x the time they may still run
}

// QOS is a class of service.
type QOS struct {
	Priority int64    `json:"priority"`           // 0..1000: its share of Weights.QOS
	Preempts []string `json:"preempts,omitempty"` // qos whose restartable jobs may be halted for its jobs
	Limits   Limits   `json:"limits"`             // of all its jobs together
	PerUser  Limits   `json:"perUser"`            // of one user's jobs in it
}

// Partition is what the scheduler needs to know of nodes that have a name
// together. Which nodes those are they say themselves; which jobs may ask for them,
// and for how much, is the owner's to decide.
type Partition struct {
	Priority int64  `json:"priority"`         // 0..1000: its share of Weights.Partition
	Down     bool   `json:"down,omitempty"`   // its jobs wait
	Reason   string `json:"reason,omitempty"` // why it is down
}

// Policy is the site's rules. It is a plain value; DefaultPolicy is a sane one.
type Policy struct {
	Mode      Mode      `json:"mode"`
	Estimates Estimates `json:"estimates"`
	Placement Placement `json:"placement"`
	Seed      uint64    `json:"seed,omitempty"` // of PlaceRandom

	Weights Weights `json:"weights"`
	MaxAge  Time    `json:"maxAgeMs"` // age at which the age factor is at its highest

	BackfillReservations int   `json:"backfillReservations"` // blocked jobs that get a place in the plan
	BackfillOrder        Order `json:"backfillOrder"`        // of the jobs that may go past them
	Candidates           int   `json:"candidates"`           // nodes with room that are compared for one rank; 0: all
	MaxStarts            int   `json:"maxStarts"`            // in one round; the rest in the next one
	MaxEvaluated         int   `json:"maxEvaluated"`         // jobs looked at in one round
	MaxWaitBoost         Time  `json:"maxWaitBoostMs"`       // older jobs go first, oldest first, by shares; 0: never
	BoostBacklog         int64 `json:"boostBacklog"`         // percent of the backlog that is added to MaxWaitBoost
	DefaultLimit         Time  `json:"defaultLimitMs"`       // of jobs without one
	HaltGrace            Time  `json:"haltGraceMs"`          // from the order to end a job to its end

	DefaultQOS string         `json:"defaultQos,omitempty"`
	QOS        map[string]QOS `json:"qos,omitempty"`

	Partitions map[string]Partition `json:"partitions,omitempty"` // others are up and have no priority

	Licenses map[string]int64 `json:"licenses,omitempty"` // how many of each the site has

	User     Limits            `json:"user"` // of each user
	Users    map[string]Limits `json:"users,omitempty"`
	Project  Limits            `json:"project"` // of each project
	Projects map[string]Limits `json:"projects,omitempty"`

	Values map[string]int64 `json:"values,omitempty"` // of GPU models, by part of the name; 1000 where none matches
	Mix    []MixShape       `json:"mix,omitempty"`    // what fragmentation is measured against; empty: what was submitted
}

// MixShape is a shape and how often it is asked for.
type MixShape struct {
	Shape  Shape `json:"shape"`
	Weight int64 `json:"weight"`
}

// PlansByPrediction says whether reservations reckon with Job.Predicted.
func (p *Policy) PlansByPrediction() bool {
	return p.Estimates == ByExact || p.Estimates == ByPredicted && p.Mode != Gbatch
}

// DefaultPolicy is what a site gets that configures nothing: fair share leads,
// a week of waiting is worth half of it, and 32 blocked jobs have a reservation.
func DefaultPolicy() Policy {
	return Policy{
		Mode: Gbatch, Estimates: ByUser, Placement: PlaceGbatch,
		Weights: Weights{Age: 5_000, FairShare: 10_000, Size: 500, QOS: 10_000, Partition: 10_000},
		MaxAge:  7 * Day,

		BackfillReservations: 32,
		BackfillOrder:        ByPriority,
		Candidates:           16,
		MaxStarts:            500,
		MaxEvaluated:         20_000,
		MaxWaitBoost:         21 * Day,
		DefaultLimit:         Day,
		HaltGrace:            Minute,
	}
}

// Validate reports everything that is wrong with the policy.
func (p Policy) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	oneOf(&errs, "mode", p.Mode, FCFS, Easy, EasySJBF, Conservative, Gbatch)
	oneOf(&errs, "estimates", p.Estimates, ByUser, ByPredicted, ByExact)
	oneOf(&errs, "placement", p.Placement, PlaceRandom, PlaceBestFit, PlaceFGD, PlaceGbatch)
	oneOf(&errs, "backfillOrder", p.BackfillOrder, ByPriority, ByShortest)
	within := func(name string, v, low, high int64) {
		if v < low || v > high {
			bad("%s is %d: want %d..%d", name, v, low, high)
		}
	}
	for _, w := range []struct {
		name string
		v    int64
	}{{"age", p.Weights.Age}, {"fairShare", p.Weights.FairShare}, {"size", p.Weights.Size}, {"qos", p.Weights.QOS}, {"partition", p.Weights.Partition}, {"slowdown", p.Weights.Slowdown}, {"small", p.Weights.Small}} {
		within("weights."+w.name, w.v, 0, MaxPriority)
	}
	within("maxAgeMs", int64(p.MaxAge), 1, int64(MaxTime))
	within("backfillReservations", int64(p.BackfillReservations), 0, 1_000_000)
	within("candidates", int64(p.Candidates), 0, 1_000_000)
	within("maxStarts", int64(p.MaxStarts), 1, 1_000_000)
	within("maxEvaluated", int64(p.MaxEvaluated), 1, 10_000_000)
	within("maxWaitBoostMs", int64(p.MaxWaitBoost), 0, int64(MaxTime))
	within("boostBacklog", p.BoostBacklog, 0, 1000)
	within("defaultLimitMs", int64(p.DefaultLimit), 1, int64(MaxTime))
	within("haltGraceMs", int64(p.HaltGrace), 0, int64(MaxTime))
	checkLimits(&errs, "user", p.User)
	checkLimits(&errs, "project", p.Project)
	for _, name := range slices.Sorted(maps.Keys(p.Users)) {
		checkLimits(&errs, "users."+name, p.Users[name])
	}
	for _, name := range slices.Sorted(maps.Keys(p.Projects)) {
		checkLimits(&errs, "projects."+name, p.Projects[name])
	}
	p.checkQOS(&errs)
	for _, name := range slices.Sorted(maps.Keys(p.Partitions)) {
		within("partitions."+name+".priority", p.Partitions[name].Priority, 0, 1000)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Licenses)) {
		within("licenses."+name, p.Licenses[name], 0, MaxAmount)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Values)) {
		within("values."+name, p.Values[name], 0, MaxPriority)
	}
	for i, m := range p.Mix {
		within(fmt.Sprintf("mix[%d].weight", i), m.Weight, 1, MaxPriority)
		if err := m.Shape.validate(); err != nil {
			bad("mix[%d].shape: %w", i, err)
		}
	}
	return errors.Join(errs...)
}

func (p Policy) checkQOS(errs *[]error) {
	bad := func(format string, args ...any) { *errs = append(*errs, fmt.Errorf(format, args...)) }
	if _, ok := p.QOS[p.DefaultQOS]; !ok && p.DefaultQOS != "" {
		bad("defaultQos is %q, which is not in qos", p.DefaultQOS)
	}
	for _, name := range slices.Sorted(maps.Keys(p.QOS)) {
		q := p.QOS[name]
		if q.Priority < 0 || q.Priority > 1000 {
			bad("qos.%s.priority is %d: want 0..1000", name, q.Priority)
		}
		for _, other := range q.Preempts {
			if _, ok := p.QOS[other]; !ok {
				bad("qos.%s.preempts names %q, which is not in qos", name, other)
			} else if slices.Contains(p.QOS[other].Preempts, name) {
				bad("qos.%s and qos.%s preempt each other", name, other)
			}
		}
		checkLimits(errs, "qos."+name+".limits", q.Limits)
		checkLimits(errs, "qos."+name+".perUser", q.PerUser)
	}
}

func checkLimits(errs *[]error, name string, l Limits) {
	if l.Running < 0 || l.Queued < 0 || l.MilliGPU < 0 || l.GPUMinutes < 0 || l.MilliGPU > MaxAmount || l.GPUMinutes > MaxAmount {
		*errs = append(*errs, fmt.Errorf("%s has a limit below 0 or too large: %+v", name, l))
	}
}

func oneOf[T ~string](errs *[]error, name string, v T, known ...T) {
	if !slices.Contains(known, v) {
		*errs = append(*errs, fmt.Errorf("%s is %q: want one of %q", name, v, known))
	}
}

// Clone is a copy that shares nothing.
func (p Policy) Clone() Policy {
	p.QOS, p.Users, p.Projects = maps.Clone(p.QOS), maps.Clone(p.Users), maps.Clone(p.Projects)
	p.Values, p.Mix, p.Partitions, p.Licenses = maps.Clone(p.Values), slices.Clone(p.Mix), maps.Clone(p.Partitions), maps.Clone(p.Licenses)
	return p
}

// Timed says whether some limit counts GPU-minutes.
func (p *Policy) Timed() bool {
	all := []Limits{p.User, p.Project}
	for _, l := range p.Users { // any of them: order does not matter
		all = append(all, l)
	}
	for _, l := range p.Projects {
		all = append(all, l)
	}
	for _, q := range p.QOS {
		all = append(all, q.Limits, q.PerUser)
	}
	return slices.ContainsFunc(all, func(l Limits) bool { return l.GPUMinutes > 0 })
}
