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
	Policy    string // fcfs, easy, easy-sjbf, conservative, gbatch
	Estimates string // user, exact, predicted
	Placement string // random, bestfit, fgd, gbatch; empty: gbatch for that policy, bestfit for the others
	Seed      uint64
	Batch     bool     // one round for all events of a moment
	Set       []string // rules to change, as "max_wait_boost=2d"; see Set
}

// Name is the options in few words.
func (o Options) Name() string { return o.Policy + ", " + o.Estimates + " estimates" }

// maxRun is the limit of a job for which the log has none.
const maxRun = 90 * sched.Day

// controlConfig is the controller's configuration for the replay of a log:
// nobody is preferred, so that jobs go in the order in which they came but
// where the policy says otherwise, and no round is cut short.
//
// In gbatch mode the queue is ordered by the machine time that jobs are
// expected to take, and one that has waited 12 hours and 60 % of the backlog
// goes first: longer than first come, first served would need, but not by much.
func (o Options) controlConfig() (control.Config, error) {
	p := sched.DefaultPolicy()
	p.Mode, p.Placement = sched.Mode(o.Policy), sched.Placement(o.Placement)
	switch {
	case o.Placement != "":
	case p.Mode == sched.Gbatch:
		p.Placement = sched.PlaceGbatch
	default:
		p.Placement = sched.PlaceBestFit
	}
	p.Weights, p.MaxWaitBoost, p.BoostBacklog, p.HaltGrace, p.Seed = sched.Weights{}, 0, 0, 0, o.Seed
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
		p.Weights.Small, p.MaxWaitBoost, p.BoostBacklog = 1000, 12*sched.Hour, 60
		p.BackfillReservations = 1
	}
	cfg := control.Config{
		Policy: p, Accounting: accounting.DefaultConfig(), DefaultRun: maxRun, Grace: sched.Second,
		KeepEnded: 1, KeepCount: 1, NoRecords: true,
	}
	for _, s := range o.Set {
		if err := Set(&cfg, s); err != nil {
			return cfg, err
		}
	}
	return cfg, cfg.Policy.Validate()
}

// Replay runs a workload as the options say, on these nodes.
func (o Options) Replay(w workload, nodes []Node, watch Watch) (config, result, error) {
	cc, err := o.controlConfig()
	if err != nil {
		return config{}, result{}, err
	}
	cc.Policy.Mix = w.Mix
	cfg := w.config(cc, nodes, watch)
	cfg.Batch, cfg.Known = o.Batch || w.Batch, o.Estimates == "exact"
	if len(w.Jobs) == 0 {
		return cfg, result{}, errors.New("the trace has no jobs" + because(w.Notes))
	}
	r, err := run(cfg)
	return cfg, r, err
}

// config is the replay of the workload under these rules.
func (w workload) config(rules control.Config, nodes []Node, watch Watch) config {
	return config{Control: rules, Nodes: nodes, Jobs: w.Jobs, Epoch: w.Epoch, OneShot: w.OneShot, Nanos: watch.Nanos, Progress: watch.Progress}
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
