package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gbatch/accounting"
	"gbatch/internal/control"
	"gbatch/sched"
)

// Options is a replay as a person asks for it.
type Options struct {
	Policy       string // fcfs, easy, easy-sjbf, conservative, gbatch
	Estimates    string // user, exact, predicted
	Placement    string // random, bestfit, fgd, gbatch
	Seed         uint64
	Batch        bool
	Reservations int
}

// ControlConfig is the controller's configuration for a replay: nobody is
// preferred, so that jobs go in the order in which they came but where the
// policy says otherwise, and the plan is never cut short.
func (o Options) ControlConfig() (control.Config, error) {
	p := sched.DefaultPolicy()
	p.Mode, p.Placement = sched.Mode(o.Policy), sched.Placement(o.Placement)
	p.Weights, p.MaxWaitBoost, p.HaltGrace, p.Seed = sched.Weights{}, 0, 0, o.Seed
	p.MaxStarts, p.MaxEvaluated = 1_000_000, 10_000_000
	p.DefaultLimit = maxRun
	switch o.Estimates {
	case "user":
		p.Estimates = sched.ByUser
	case "exact":
		p.Estimates = sched.ByExact
	case "predicted":
		p.Estimates = sched.ByPredicted
	default:
		return control.Config{}, fmt.Errorf("estimates is %q: want user, exact or predicted", o.Estimates)
	}
	if p.Mode == sched.Gbatch {
		p.Weights.Small, p.MaxWaitBoost, p.BoostBacklog = 1000, 12*sched.Hour, 40
		p.BackfillReservations = 1
		if o.Reservations > 0 {
			p.BackfillReservations = o.Reservations
		}
	}
	if err := p.Validate(); err != nil {
		return control.Config{}, err
	}
	return control.Config{
		Policy: p, Accounting: accounting.DefaultConfig(), DefaultRun: maxRun, Grace: sched.Second,
		KeepEnded: 1, KeepCount: 1, NoRecords: true,
	}, nil
}

// maxRun is the limit of a job for which the log has none.
const maxRun = 90 * sched.Day

// Replay runs a workload as the options say, on these nodes.
func (o Options) Replay(w Workload, nodes []Node, watch Watch) (Config, Result, error) {
	cc, err := o.ControlConfig()
	if err != nil {
		return Config{}, Result{}, err
	}
	if len(w.Jobs) == 0 {
		return Config{}, Result{}, errors.New("the trace has no jobs" + because(w.Notes))
	}
	cc.Policy.Mix = w.Mix
	cfg := Config{
		Control: cc, Nodes: nodes, Jobs: w.Jobs, Epoch: w.Epoch, Batch: o.Batch, Known: o.Estimates == "exact",
		OneShot: w.OneShot, Nanos: watch.Nanos, Progress: watch.Progress,
	}
	r, err := Run(cfg)
	return cfg, r, err
}

// Watch is how to look on while a replay runs. Both may be nil.
type Watch struct {
	Nanos    func() int64
	Progress func(done, all int)
}

func because(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return ": " + strings.Join(slices.Clone(notes), "; ")
}
