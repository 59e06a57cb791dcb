package ctld

import (
	"cmp"
	"errors"
	"fmt"

	"gbatch/accounting"
	"gbatch/internal/api"
	"gbatch/sched"
)

// PolicyConfig is the part of gctld.yaml that decides who goes first.
type PolicyConfig struct {
	Mode         string           `yaml:"mode"`          // gbatch, fcfs, easy, easy-sjbf, conservative
	Estimates    string           `yaml:"estimates"`     // user: plan by limits; predicted: by what the user's jobs took before
	Placement    string           `yaml:"placement"`     // gbatch, bestfit, fgd, random
	Weights      Weights          `yaml:"weights"`       // priority points of each factor at its highest
	MaxAge       Seconds          `yaml:"maxAge"`        // waiting this long gives the whole age factor
	Reservations int              `yaml:"reservations"`  // blocked jobs that get a place in the plan
	Order        string           `yaml:"backfillOrder"` // of the jobs that may go past those: priority, shortest
	MaxWait      Seconds          `yaml:"maxWaitBoost"`  // older jobs go first; 0: never
	BoostBacklog int64            `yaml:"boostBacklog"`  // percent of the time that the queue will take, added to maxWaitBoost
	HalfLife     Seconds          `yaml:"halfLife"`      // of usage
	GPUWeights   map[string]int64 `yaml:"gpuWeights"`    // billing by part of the model's name, thousandths
	CPUWeight    int64            `yaml:"cpuWeight"`     // of a core, thousandths of a GPU
	GiBWeight    int64            `yaml:"gibWeight"`     // of a GiB of memory
	GPUValues    map[string]int64 `yaml:"gpuValues"`     // placement keeps jobs that take anything off the valuable ones

	DefaultQOS string               `yaml:"defaultQos"`
	QOS        map[string]QOS       `yaml:"qos"`
	PerUser    JobLimits            `yaml:"perUser"`
	PerProject JobLimits            `yaml:"perProject"`
	Users      map[string]JobLimits `yaml:"users"` // instead of perUser
}

// Weights are sched.Weights.
type Weights struct {
	Age       int64 `yaml:"age"`
	FairShare int64 `yaml:"fairShare"`
	Size      int64 `yaml:"size"`
	QOS       int64 `yaml:"qos"`
	Slowdown  int64 `yaml:"slowdown"` // for each time its expected run time that a job has waited
	Small     int64 `yaml:"small"`    // for each halving of the machine time that a job is expected to take
}

// JobLimits bound what one user, project or qos has at once; 0: no bound.
type JobLimits struct {
	Running    int     `yaml:"running,omitempty"`
	Queued     int     `yaml:"queued,omitempty"`
	GPUs       float64 `yaml:"gpus,omitempty"`
	GPUMinutes int64   `yaml:"gpuMinutes,omitempty"`
}

// QOS is a class of service.
type QOS struct {
	Priority int64     `yaml:"priority"` // 0..1000
	Preempts []string  `yaml:"preempts"`
	Limits   JobLimits `yaml:"limits"`
	PerUser  JobLimits `yaml:"perUser"`
}

func defaultPolicy() PolicyConfig {
	p, a := sched.DefaultPolicy(), accounting.DefaultConfig()
	return PolicyConfig{
		Mode: string(p.Mode), Estimates: string(p.Estimates), Placement: string(p.Placement),
		Weights: Weights{Age: p.Weights.Age, FairShare: p.Weights.FairShare, Size: p.Weights.Size, QOS: p.Weights.QOS, Slowdown: p.Weights.Slowdown, Small: p.Weights.Small},
		Order:   string(p.BackfillOrder), BoostBacklog: p.BoostBacklog,
		MaxAge: Seconds(p.MaxAge / 1000), Reservations: p.BackfillReservations, MaxWait: Seconds(p.MaxWaitBoost / 1000),
		HalfLife: Seconds(a.HalfLifeMS / 1000), CPUWeight: a.CPU, GiBWeight: a.GiB,
	}
}

func (l JobLimits) sched() sched.Limits {
	return sched.Limits{Running: l.Running, Queued: l.Queued, MilliGPU: int64(l.GPUs*1000 + 0.5), GPUMinutes: l.GPUMinutes}
}

func schedLimits(m map[string]JobLimits) map[string]sched.Limits {
	out := map[string]sched.Limits{}
	for k, l := range m {
		out[k] = l.sched()
	}
	return out
}

// build makes the two policies out of the file's.
func (c PolicyConfig) build(projects []Project) (sched.Policy, accounting.Config, error) {
	p, a := sched.DefaultPolicy(), accounting.DefaultConfig()
	p.Mode, p.Estimates, p.Placement = sched.Mode(c.Mode), sched.Estimates(c.Estimates), sched.Placement(c.Placement)
	w := &p.Weights
	w.Age, w.FairShare, w.Size, w.QOS = c.Weights.Age, c.Weights.FairShare, c.Weights.Size, c.Weights.QOS
	w.Slowdown, w.Small = c.Weights.Slowdown, c.Weights.Small
	p.BackfillOrder, p.BoostBacklog = sched.Order(c.Order), c.BoostBacklog
	p.MaxAge = c.MaxAge.millis()
	p.BackfillReservations, p.MaxWaitBoost = c.Reservations, c.MaxWait.millis()
	p.Values, p.DefaultQOS = c.GPUValues, c.DefaultQOS
	p.QOS = map[string]sched.QOS{}
	for name, q := range c.QOS {
		p.QOS[name] = sched.QOS{Priority: q.Priority, Preempts: q.Preempts, Limits: q.Limits.sched(), PerUser: q.PerUser.sched()}
	}
	p.User, p.Project = c.PerUser.sched(), c.PerProject.sched()
	p.Users, p.Projects = schedLimits(c.Users), map[string]sched.Limits{}
	a.HalfLifeMS, a.Models, a.CPU, a.GiB = int64(c.HalfLife)*1000, c.GPUWeights, c.CPUWeight, c.GiBWeight
	a.Tree = accounting.Tree{}
	for _, pr := range projects {
		a.Tree[pr.Name] = accounting.Account{Shares: cmp.Or(pr.Shares, 1), Parent: pr.Parent, Users: pr.UserShares, Budget: pr.Budget, Monthly: pr.BudgetPeriod == api.BudgetMonth}
		if pr.Limits != (JobLimits{}) {
			p.Projects[pr.Name] = pr.Limits.sched()
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
