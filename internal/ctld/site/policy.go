package site

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"gbatch/accounting"
	"gbatch/internal/api"
	"gbatch/sched"
)

// Policy is the part of gctld.yaml that decides who goes first.
type Policy struct {
	Mode         string           `yaml:"mode"`          // gbatch, fcfs, easy, easy-sjbf, conservative
	Estimates    string           `yaml:"estimates"`     // user: plan by limits; predicted: by what the user's jobs took before
	Placement    string           `yaml:"placement"`     // gbatch, bestfit, fgd, random
	Weights      sched.Weights    `yaml:"weights"`       // priority points of each factor at its highest
	MaxAge       Seconds          `yaml:"maxAge"`        // waiting this long gives the whole age factor
	Reservations int              `yaml:"reservations"`  // blocked jobs that get a place in the plan
	Order        string           `yaml:"backfillOrder"` // of the jobs that may go past those: priority, shortest
	MaxWait      Seconds          `yaml:"maxWaitBoost"`  // the oldest job of a user goes first then; 0: never
	BoostBacklog int64            `yaml:"boostBacklog"`  // percent of the time that the queue will take, added to maxWaitBoost
	HalfLife     Seconds          `yaml:"halfLife"`      // of usage
	GPUWeights   map[string]int64 `yaml:"gpuWeights"`    // billing by part of the model's name, thousandths
	CPUWeight    int64            `yaml:"cpuWeight"`     // of a core, thousandths of a GPU
	GiBWeight    int64            `yaml:"gibWeight"`     // of a GiB of memory
	GPUValues    map[string]int64 `yaml:"gpuValues"`     // placement keeps jobs that take anything off the valuable ones

	DefaultQOS string                       `yaml:"defaultQos"`
	QOS        map[string]QOS               `yaml:"qos"`
	PerUser    api.ProjectLimits            `yaml:"perUser"`
	PerProject api.ProjectLimits            `yaml:"perProject"`
	Users      map[string]api.ProjectLimits `yaml:"users"` // instead of perUser
}

// QOS is a class of service, as sched.QOS, with limits as people write them.
type QOS struct {
	Priority int64    `yaml:"priority"` // 0..1000
	Preempts []string `yaml:"preempts"`

	// RunsAlone: its jobs run on where their node loses contact, and are not given
	// up before the node is heard of again or an operator gives it up.
	RunsAlone bool `yaml:"runsAlone"`

	Limits  api.ProjectLimits `yaml:"limits"`
	PerUser api.ProjectLimits `yaml:"perUser"`
}

func defaultPolicy() Policy {
	p, a := sched.DefaultPolicy(), accounting.DefaultConfig()
	return Policy{
		Mode: string(p.Mode), Estimates: string(p.Estimates), Placement: string(p.Placement),
		Weights: p.Weights,
		Order:   string(p.BackfillOrder), BoostBacklog: p.BoostBacklog,
		MaxAge: Seconds(p.MaxAge / 1000), Reservations: p.BackfillReservations, MaxWait: Seconds(p.MaxWaitBoost / 1000),
		HalfLife: Seconds(a.HalfLifeMS / 1000), CPUWeight: a.CPU, GiBWeight: a.GiB,
	}
}

// check tells what is wrong with the policy in the words of the file.
func (c Policy) check(projects []Project, bad func(path, format string, a ...any)) {
	if sched.Estimates(c.Estimates) == sched.ByExact {
		bad("policy.estimates", "%q is for the simulator, which knows how long jobs take: use user or predicted", c.Estimates)
	}
	_, _, err := c.build(projects)
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "accounting: ")
		path, text := "policy", line
		for _, k := range policyKeys {
			if rest, ok := strings.CutPrefix(line, k.name); ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, " ")) {
				at, what, _ := strings.Cut(rest, " ")
				path, text = "policy."+k.key+at, what
				break
			}
		}
		bad(path, "%s", text)
	}
}

// policyKeys are the keys of what the scheduler and the ledger call otherwise, and
// of what they call the same.
var policyKeys = []struct{ name, key string }{
	{"maxAgeMs", "maxAge"}, {"maxWaitBoostMs", "maxWaitBoost"}, {"halfLifeMs", "halfLife"}, {"backfillReservations", "reservations"},
	{"values", "gpuValues"}, {"models", "gpuWeights"}, {"users", "users"}, {"user", "perUser"}, {"project", "perProject"},
	{"weights", "weights"}, {"qos", "qos"}, {"defaultQos", "defaultQos"}, {"mode", "mode"}, {"estimates", "estimates"}, {"placement", "placement"},
	{"backfillOrder", "backfillOrder"}, {"boostBacklog", "boostBacklog"},
}

func schedLimits(l api.ProjectLimits) sched.Limits {
	return sched.Limits{Running: l.Running, Queued: l.Queued, MilliGPU: int64(l.GPUs*1000 + 0.5), GPUMinutes: l.GPUMinutes}
}

// build makes the two policies out of the file's.
func (c Policy) build(projects []Project) (sched.Policy, accounting.Config, error) {
	p, a := sched.DefaultPolicy(), accounting.DefaultConfig()
	p.Mode, p.Estimates, p.Placement = sched.Mode(c.Mode), sched.Estimates(c.Estimates), sched.Placement(c.Placement)
	p.Weights = c.Weights
	p.BackfillOrder, p.BoostBacklog = sched.Order(c.Order), c.BoostBacklog
	p.MaxAge = c.MaxAge.Millis()
	p.BackfillReservations, p.MaxWaitBoost = c.Reservations, c.MaxWait.Millis()
	p.Values, p.DefaultQOS = c.GPUValues, c.DefaultQOS
	p.QOS = map[string]sched.QOS{}
	for name, q := range c.QOS {
		p.QOS[name] = sched.QOS{Priority: q.Priority, Preempts: q.Preempts, Limits: schedLimits(q.Limits), PerUser: schedLimits(q.PerUser)}
	}
	p.User, p.Project = schedLimits(c.PerUser), schedLimits(c.PerProject)
	p.Users, p.Projects = map[string]sched.Limits{}, map[string]sched.Limits{}
	for name, l := range c.Users {
		p.Users[name] = schedLimits(l)
	}
	a.HalfLifeMS, a.Models, a.CPU, a.GiB = int64(c.HalfLife)*1000, c.GPUWeights, c.CPUWeight, c.GiBWeight
	a.Tree = accounting.Tree{}
	for _, pr := range projects {
		a.Tree[pr.Name] = accounting.Account{Shares: cmp.Or(pr.Shares, 1), Parent: pr.Parent, Users: pr.UserShares, Budget: pr.Budget, Monthly: pr.BudgetPeriod == api.BudgetMonth}
		if pr.Limits != (api.ProjectLimits{}) {
			p.Projects[pr.Name] = schedLimits(pr.Limits)
		}
	}
	var errs []error
	if err := p.Validate(); err != nil {
		errs = append(errs, err)
	}
	if err := a.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("accounting: %w", err))
	}
	return p, a, errors.Join(errs...)
}
