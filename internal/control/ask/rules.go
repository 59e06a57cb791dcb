// Package ask says what a job's document asks of the site: whether the site's rules
// allow it, and what the scheduler is to know of it. It is pure and knows neither
// nodes nor other jobs.
package ask

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/control/partition"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Project is what its jobs may do here. It is not accounting.Account, which is
// what a project, or a group of them, has a right to: those form a tree, and only
// shares and budgets look at it.
type Project struct {
	GID      int
	Clusters []int // that its jobs may use; empty: all

	Privileged   bool             // its jobs may be root on their nodes
	Capabilities []job.Capability // that its jobs may ask for
	HostNetwork  bool             // its jobs may use the nodes' network
	Runtime      string           // that runs all its jobs; empty: what each asks for
}

// Rules are what the site allows, and what it has where a document is silent.
type Rules struct {
	Projects   map[string]Project
	QOS        map[string]sched.QOS
	DefaultQOS string
	Partitions partition.List
	DefaultRun sched.Time // time limit of a job that asks none
	MaxRun     sched.Time // longest limit a job may ask
	DefaultMin sched.Time // guaranteed run time of a job that asks none
	Licenses   map[string]int64
	MaxGrace   sched.Time // the longest between the order to end and KILL; 0: no bound
}

// Who is who submits, and for which project.
type Who struct {
	User, Project string
	Operator      bool // may raise priority, and submit for any project
	Stranger      bool // the project has members and User is none of them

	Closed []string // partitions that are for other users
}

// Refuse refuses what the site's rules do not allow.
func (r Rules) Refuse(who Who, spec *job.Spec) *state.Refusal {
	p, ok := r.Projects[who.Project]
	if !ok {
		return &state.Refusal{Code: state.NotFound, Path: "project", Message: fmt.Sprintf("there is no project %q", who.Project),
			Hint: listed("projects", r.Projects)}
	}
	if who.Stranger && !who.Operator {
		return &state.Refusal{Code: state.Denied, Path: "project", Message: fmt.Sprintf("user %s is not a member of project %s", who.User, who.Project)}
	}
	if cl := spec.Request.Resources.ClusterID; len(p.Clusters) > 0 && !slices.Contains(p.Clusters, cl) && (cl != 0 || len(p.Clusters) > 1) && !who.Operator {
		return &state.Refusal{Code: state.Denied, Path: "request.resources.clusterId", Message: fmt.Sprintf("project %s may use clusters %s", who.Project, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(p.Clusters)), ", "), "[]")),
			Hint: "name one of them"}
	}
	if q := QOS(spec); q != "" {
		if _, ok := r.QOS[q]; !ok {
			return &state.Refusal{Code: state.NotFound, Path: "gbatch.qos", Message: fmt.Sprintf("there is no qos %q", q), Hint: listed("qos", r.QOS)}
		}
	}
	if g := spec.Gbatch; g != nil && g.Priority > 0 && !who.Operator {
		return &state.Refusal{Code: state.Denied, Path: "gbatch.priority", Message: "only an operator may raise a job's priority",
			Hint: "use 0 or a negative number"}
	}
	if spec.Privileged() && !p.Privileged {
		return &state.Refusal{Code: state.Denied, Path: "gbatch.privileged", Message: fmt.Sprintf("jobs of project %s may not be privileged", who.Project),
			Hint: "remove it, or ask an administrator, who can allow it to the project"}
	}
	for _, want := range spec.Capabilities() {
		if !slices.Contains(p.Capabilities, want) {
			return &state.Refusal{Code: state.Denied, Path: "gbatch.capabilities", Message: fmt.Sprintf("jobs of project %s may not have the capability %s", who.Project, want),
				Hint: "remove it, or ask an administrator, who can allow it: capabilities of the project, and allowCapabilities in gnoded.yaml of a node"}
		}
	}
	if spec.Network() == job.NetworkHost && !p.HostNetwork {
		return &state.Refusal{Code: state.Denied, Path: "gbatch.network", Message: fmt.Sprintf("jobs of project %s may not use the nodes' network", who.Project),
			Hint: "remove it: the job then has a network of its own, which the ranks of a job on several nodes share; or ask an administrator for hostNetwork, which can be allowed to the project"}
	}
	if p.Runtime != "" && spec.Runtime() != p.Runtime { // the site's tables have put it there otherwise
		return &state.Refusal{Code: state.Denied, Path: "gbatch.runtime", Message: fmt.Sprintf("jobs of project %s are run by the runtime %s", who.Project, p.Runtime)}
	}
	if refusal := r.refuseLicenses(spec); refusal != nil {
		return refusal
	}
	if d := sched.Time(spec.Request.Scheduling.MaxDuration) * 1000; r.MaxRun > 0 && d > r.MaxRun {
		return &state.Refusal{Code: state.Unsatisfiable, Path: "request.scheduling.maxDuration",
			Message: fmt.Sprintf("%s is longer than the site allows, %s", job.Duration(d/1000), job.Duration(r.MaxRun/1000))}
	}
	return nil
}

// listed says which there are of what a job may name.
func listed[V any](what string, m map[string]V) string {
	if len(m) == 0 {
		return "the site has no " + what + ": leave it out"
	}
	return what + " here: " + strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
