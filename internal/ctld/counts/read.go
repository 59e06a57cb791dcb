package counts

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gbatch/accounting"
	"gbatch/internal/control"
	"gbatch/internal/ctld/keep"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/meter"
	"gbatch/internal/job"
	"gbatch/internal/metrics"
	"gbatch/internal/state"
	"gbatch/sched"
)

// What is read at scrape time.
var (
	mBuild     = metrics.Gauge("gctld_build_info", "1, with the version of the controller.", "version")
	mJobs      = metrics.Gauge("gctld_jobs", "Jobs in the controller's memory by state; ended ones leave it after a time.", "state")
	mQueued    = metrics.Gauge("gctld_queued_jobs", "Jobs in state QUEUED, by why they wait, the cluster that they ask for (0: any) and qos.", "reason", "cluster", "qos")
	mTasks     = metrics.Gauge("gctld_array_tasks", "Tasks of arrays that are not over, by state. Those that are live, and they alone, are jobs in the other metrics.", "state")
	mCluster   = metrics.Gauge("gctld_cluster_jobs", "Jobs that wait or hold resources, by the cluster that they ask for or run in; 0: any.", "cluster", "state")
	mClustGPUs = metrics.Gauge("gctld_cluster_gpus", "GPUs that jobs hold, by cluster; a part of a GPU is a fraction.", "cluster")
	mProjJobs  = metrics.Gauge("gctld_project_jobs", "Jobs that wait or hold resources, by project.", "project", "state")
	mProjGPUs  = metrics.Gauge("gctld_project_gpus", "GPUs that jobs hold, by project; a part of a GPU is a fraction.", "project")
	mUserJobs  = metrics.Gauge("gctld_user_jobs", "Jobs that wait or hold resources, by user.", "user", "state")
	mUserGPUs  = metrics.Gauge("gctld_user_gpus", "GPUs that jobs hold, by user; a part of a GPU is a fraction.", "user")
	mNodes     = metrics.Gauge("gctld_nodes", "Nodes by state.", "state")
	mAway      = metrics.Gauge("gctld_node_out_of_service", "1 for each node that takes no jobs, with its state.", "node", "state")
	mLate      = metrics.Gauge("gctld_node_reboot_overdue", "1 for each node that was told to reboot and has not come back in time, or could not.", "node")
	mGPUs      = metrics.Gauge("gctld_gpus", "GPUs by model and by whether jobs hold them, nobody does, or nobody can.", "model", "state")
	mCores     = metrics.Gauge("gctld_cores", "Cores of all nodes, by whether jobs hold them.", "state")
	mMemory    = metrics.Gauge("gctld_memory_bytes", "Memory of all nodes in bytes, by whether jobs hold it.", "state")
	mTurn      = metrics.Gauge("gctld_last_turn_timestamp_seconds", "When the controller's loop ran last, in seconds since 1970; it does each second.")
	mInbox     = metrics.Gauge("gctld_inbox_requests", "Requests that wait for the controller's loop.")
	mReserved  = metrics.Gauge("gctld_planned_jobs", "Waiting jobs that have a place in the plan.")
	mWindows   = metrics.Gauge("gctld_reservations", "Advance reservations and maintenance windows.")
	mLogs      = metrics.Gauge("gctld_kept_logs", "Logs of ranks that the controller keeps.")
	mLogBytes  = metrics.Gauge("gctld_kept_log_bytes", "What those take on disk, in bytes.")
	mLogRoom   = metrics.Gauge("gctld_kept_log_max_bytes", "What they may take before the oldest go, in bytes.")
	mLogDue    = metrics.Gauge("gctld_unarchived_logs", "Complete logs that are to be archived and are not yet.")
	mLogTaken  = metrics.Counter("gctld_log_bytes_total", "Output of jobs that nodes sent to be kept, in bytes.")
	mLicenses  = metrics.Gauge("gctld_licenses", "Licences that the site has, by name.", "license")
	mLicUsed   = metrics.Gauge("gctld_licenses_used", "Licences that jobs hold, by name.", "license")
	mLicAsked  = metrics.Gauge("gctld_licenses_queued", "Licences that waiting jobs ask for, by name.", "license")
	mDiskFree  = metrics.Gauge("gctld_disk_free_bytes", "Free space on the disk of the controller's store, in bytes.")
	mReserve   = metrics.Gauge("gctld_disk_reserve_bytes", "Free space below which no jobs are taken, in bytes.")
	mStore     = metrics.Gauge("gctld_store_bytes", "What the controller's store takes on disk, in bytes.")
	mShares    = metrics.Gauge("gctld_project_shares_ratio", "Part of its siblings' shares that a project has, from 0 to 1.", "project")
	mUsed      = metrics.Gauge("gctld_project_usage_ratio", "Part of its siblings' decayed usage that is a project's, from 0 to 1.", "project")
	mUsage     = metrics.Gauge("gctld_project_usage_gpu_seconds", "Usage as billed, decayed, in GPU-seconds, of a project and those below it.", "project")
	mLevel     = metrics.Gauge("gctld_project_fair_share_level", "Share divided by usage among siblings: above 1, a project has had less than its share. Absent without usage.", "project")
	mBilled    = metrics.Counter("gctld_project_billed_gpu_seconds_total", "Usage as billed, in GPU-seconds, of a project and those below it.", "project")
	mBudget    = metrics.Gauge("gctld_project_budget_gpu_seconds", "Budget of a project, in GPU-seconds as billed; of a month or in all.", "project")
	mSpent     = metrics.Gauge("gctld_project_budget_used_ratio", "Part of its budget that a project has used, from 0.", "project")
	mFactor    = metrics.Gauge("gctld_user_fair_share_ratio", "Fair-share factor of users with the most usage, from 0 to 1.", "project", "user")
	mCert      = metrics.Gauge("gctld_certificate_expiry_timestamp_seconds", "Until when a certificate holds, in seconds since 1970; both are renewed before.", "certificate")
	mOdd       = metrics.Gauge("gctld_controller_settings_differing", "Settings that a controller of several has otherwise than the one that leads; a configuration that cannot be used counts as one.", "controller")
	mTokens    = metrics.Gauge("gctld_tokens_expiring", "Tokens in force that were to last two weeks at least and run out within three days, by use.", "use")
	mUserUsage = metrics.Gauge("gctld_user_usage_gpu_seconds", "Usage as billed, decayed, in GPU-seconds, of users with the most of it; user other is the rest.", "project", "user")
)

var families = []metrics.Family{mBuild, mJobs, mQueued, mTasks, mCluster, mClustGPUs, mProjJobs, mProjGPUs, mUserJobs, mUserGPUs, mNodes, mAway, mLate, mGPUs, mCores, mMemory,
	mTurn, mInbox, mReserved, mWindows, mLicenses, mLicUsed, mLicAsked, mDiskFree, mLogs, mLogBytes, mLogRoom, mLogDue, mLogTaken, mReserve, mStore, mCert, mTokens, mOdd,
	mShares, mUsed, mUsage, mLevel, mBilled, mBudget, mSpent, mFactor, mUserUsage}

// Exporter tells those who scrape what there is at the moment.
type Exporter struct {
	Version string
	Loop    *loop.Loop
	Meters  *meter.Meters
	Aliases func() []string // further sets of names
	Logs    *keep.Store     // that are kept here
	Expiry  func() (authority, controller time.Time)
	Tokens  func(lasted, within time.Duration) map[string]int // that run out within a time, by use
	// Licenses are those that the site counts, as it is configured now.
	Licenses func() map[string]int64
	// Odd is how many settings of each controller differ; nil: this one is the only one.
	Odd    func() map[string]int
	census lastCounts
	terms  atomic.Pointer[[]accounting.Term] // of the share tree
}

// Register adds what is read at scrape time to what is counted as it happens.
func (s *Exporter) Register(reg *prometheus.Registry) {
	reg.MustRegister(s.collector(), s.slurmCollector())
}

// collector is the queue, the nodes and the accounts at scrape time.
func (s *Exporter) collector() *metrics.Collector {
	return &metrics.Collector{Families: families, Read: func(set *metrics.Set) {
		c := s.census.now(s.Loop.View())
		set.Add(mBuild, 1, s.Version)
		c.addQueue(set)
		c.addNodes(set)
		c.addLicenses(set, s.Licenses())
		s.addSelf(set)
		if s.Odd != nil {
			for name, n := range s.Odd() {
				set.Add(mOdd, float64(n), name)
			}
		}
		s.addAccounts(set)
	}}
}

func (c *Counts) addQueue(set *metrics.Set) {
	for _, state := range job.States {
		set.Add(mJobs, float64(c.states[state]), string(state))
	}
	clusters, qos := map[string]float64{}, map[string]float64{}
	for q, n := range c.queued {
		clusters[strconv.Itoa(q.cluster)] += float64(n)
		qos[q.qos] += float64(n)
	}
	cluster, class := metrics.Top(clusters, meter.MaxClusters), metrics.Top(qos, meter.MaxQOS)
	for q, n := range c.queued {
		set.Add(mQueued, float64(n), string(q.reason), cluster(strconv.Itoa(q.cluster)), class(q.qos))
	}
	for name, n := range map[string]int{"pending": c.tasks[state.TaskPending], "live": c.tasks[state.TaskLive], "succeeded": c.tasks[state.TaskSucceeded],
		"failed": c.tasks[state.TaskFailed], "cancelled": c.tasks[state.TaskCancelled] + c.tasks[state.TaskMissed]} {
		set.Add(mTasks, float64(n), name)
	}
	c.clusters.read(set, meter.MaxClusters, mCluster, mClustGPUs)
	c.projects.read(set, meter.MaxProjects, mProjJobs, mProjGPUs)
	c.users.read(set, meter.MaxUsers, mUserJobs, mUserGPUs)
}

// read gives the jobs and GPUs of each, and of the smallest beyond most in one.
func (by holders) read(set *metrics.Set, most int, jobs, gpus metrics.Family) {
	weight := map[string]float64{}
	for name, h := range by {
		if w := h.weight(); w > 0 {
			weight[name] = w
		}
	}
	label := metrics.Top(weight, most)
	for name := range weight {
		h := by[name]
		for s, n := range h.jobs {
			set.Add(jobs, float64(n), label(name), activityNames[s])
		}
		set.Add(gpus, float64(h.milliGPU)/1000, label(name))
	}
}

// nodeStates are those that are told when there is no such node, too: an alert
// needs the 0.
var nodeStates = []string{"up", "drained", "rebooting", "unhealthy", "suspect", "lost"}

func (c *Counts) addNodes(set *metrics.Set) {
	for _, state := range nodeStates {
		set.Add(mNodes, float64(c.nodes[state]), state)
	}
	for _, n := range c.away[:min(meter.MaxNodes, len(c.away))] {
		state, _ := n.State()
		set.Add(mAway, 1, n.Name, state)
		if n.Reboot.Overdue() {
			set.Add(mLate, 1, n.Name)
		}
	}
	weight := map[string]float64{}
	for u, n := range c.gpus {
		weight[u.model] += n
	}
	model := metrics.Top(weight, meter.MaxModels)
	for name := range weight {
		for _, state := range []string{"allocated", "idle", "out_of_service"} {
			set.Add(mGPUs, c.gpus[gpuUse{name, state}], model(name), state)
		}
	}
	taken, there := c.resources[0], c.resources[1]
	set.Add(mCores, float64(taken.milliCPU)/1000, "allocated")
	set.Add(mCores, float64(there.milliCPU-taken.milliCPU)/1000, "idle")
	set.Add(mMemory, float64(taken.memMiB<<20), "allocated")
	set.Add(mMemory, float64((there.memMiB-taken.memMiB)<<20), "idle")
}

// addLicenses tells of the site's licences, of those beyond the most as of one.
func (c *Counts) addLicenses(set *metrics.Set, total map[string]int64) {
	weight := map[string]float64{}
	for name, n := range total {
		weight[name] = float64(c.licenses.Used[name]+c.licenses.Asked[name]) + float64(n)/1e9 // those in use first
	}
	label := metrics.Top(weight, meter.MaxLicenses)
	for name, n := range total {
		set.Add(mLicenses, float64(n), label(name))
		set.Add(mLicUsed, float64(c.licenses.Used[name]), label(name))
		set.Add(mLicAsked, float64(c.licenses.Asked[name]), label(name))
	}
}

// addSelf is how the controller itself fares.
func (s *Exporter) addSelf(set *metrics.Set) {
	v, load := s.Loop.View(), s.Loop.Load()
	set.Add(mTurn, float64(v.Now)/1000)
	set.Add(mInbox, float64(load.Inbox))
	set.Add(mWindows, float64(len(v.Windows)))
	if v.Plan != nil {
		set.Add(mReserved, float64(len(v.Plan.Reservations)))
	}
	s.addLogs(set)
	if load.FreeKnown {
		set.Add(mDiskFree, float64(load.Free))
	}
	set.Add(mReserve, float64(load.Reserve))
	set.Add(mStore, float64(load.Stored))
	authority, controller := s.Expiry()
	set.Add(mCert, float64(authority.Unix()), "authority")
	set.Add(mCert, float64(controller.Unix()), "controller")
	for use, n := range s.Tokens(longToken, soonOver) {
		set.Add(mTokens, float64(n), use)
	}
}

// longToken is how long a token lasts that somebody relies on, at least, and soonOver
// is how long before its end it is told of.
const (
	longToken = 14 * 24 * time.Hour
	soonOver  = 3 * 24 * time.Hour
)

// accountsEvery is how often the accounts are worked out. The loop only copies
// them: less than a microsecond for each user.
const accountsEvery = 15 * time.Second

// Run works out the share tree for those who scrape, so that none of
// them waits for the loop, until ctx is done.
func (s *Exporter) Run(ctx context.Context) {
	tick := time.NewTicker(accountsEvery)
	defer tick.Stop()
	for {
		var ledger *accounting.Ledger
		var at sched.Time
		err := s.Loop.Ask(ctx, func(c *control.Controller, now sched.Time) { ledger, at = c.Ledger(), now })
		if err == nil {
			terms := ledger.Terms(int64(at))
			s.terms.Store(&terms)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// addAccounts tells of projects and of the users with the most usage.
func (s *Exporter) addAccounts(set *metrics.Set) {
	terms := s.terms.Load()
	if terms == nil {
		return
	}
	projects, users := map[string]float64{}, map[string]float64{}
	for _, t := range *terms {
		if t.User == "" {
			projects[t.Account] = float64(t.Usage) + 1/float64(t.Depth+2)
		} else {
			users[t.Account+"/"+t.User] = float64(t.Usage)
		}
	}
	project, user := metrics.Top(projects, meter.MaxProjects), metrics.Top(users, meter.MaxUsers)
	for _, t := range *terms {
		name := project(t.Account)
		switch {
		case t.User == "":
			addProject(set, t, name)
		case user(t.Account+"/"+t.User) == metrics.Other:
			set.Add(mUserUsage, gpuSeconds(t.Usage), name, metrics.Other)
		default:
			set.Add(mFactor, ratio(t.Factor), name, t.User)
			set.Add(mUserUsage, gpuSeconds(t.Usage), name, t.User)
		}
	}
}

// addProject tells of one project. What makes no sense as a sum is left out of
// those that share a label.
func addProject(set *metrics.Set, t accounting.Term, label string) {
	set.Add(mUsage, gpuSeconds(t.Usage), label)
	set.Add(mBilled, gpuSeconds(t.Total.Billed), label)
	if label == metrics.Other {
		return
	}
	set.Add(mShares, ratio(t.NormShares), label)
	set.Add(mUsed, ratio(t.NormUsage), label)
	if t.LevelFS != accounting.Unused {
		set.Add(mLevel, ratio(t.LevelFS), label)
	}
	if t.Budget > 0 {
		spent := t.Total.Billed
		if t.Monthly {
			spent = t.Month
		}
		set.Add(mBudget, float64(t.Budget)*60, label)
		set.Add(mSpent, gpuSeconds(spent)/(float64(t.Budget)*60), label)
	}
}

// gpuSeconds is usage as the ledger has it, thousandths of a GPU x milliseconds.
func gpuSeconds(usage int64) float64 { return float64(usage) / 1e6 }

func ratio(parts int64) float64 { return float64(parts) / accounting.Scale }

// addLogs is what is kept of jobs' output.
func (s *Exporter) addLogs(set *metrics.Set) {
	logs, _, taken := s.Logs.Counts()
	set.Add(mLogs, float64(logs))
	set.Add(mLogBytes, float64(s.Logs.Bytes()))
	set.Add(mLogRoom, float64(s.Logs.Most()))
	set.Add(mLogDue, float64(s.Logs.Due()))
	set.Add(mLogTaken, float64(taken))
}
