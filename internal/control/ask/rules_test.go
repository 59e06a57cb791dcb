package ask

import (
	"strings"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestRefuse: what the site's rules do not allow is refused where it stands in the
// document, and operators may more.
func TestRefuse(t *testing.T) {
	rules := Rules{
		Projects: map[string]Project{"vision": {}, "two": {Clusters: []int{1, 2}}, "one": {Clusters: []int{1}}, "root": {Privileged: true, Capabilities: []job.Capability{"SYS_PTRACE"}, HostNetwork: true}, "walled": {Runtime: "runsc"}},
		QOS:      map[string]sched.QOS{"high": {}},
		MaxRun:   sched.Hour,
	}
	spec := func(edit func(*job.Spec)) *job.Spec {
		s := &job.Spec{Name: "a", Gbatch: &job.Gbatch{}}
		edit(s)
		return s
	}
	plain := spec(func(*job.Spec) {})
	for name, tc := range map[string]struct {
		who  Who
		spec *job.Spec
		want string // part of the path and message; empty: allowed
	}{
		"plain":                {Who{Project: "vision"}, plain, ""},
		"no such project":      {Who{Project: "x"}, plain, `project: there is no project "x"`},
		"stranger":             {Who{Project: "vision", User: "eve", Stranger: true}, plain, "project: user eve is not a member"},
		"operator":             {Who{Project: "vision", User: "op", Stranger: true, Operator: true}, plain, ""},
		"the only cluster":     {Who{Project: "one"}, plain, ""},
		"one of two clusters":  {Who{Project: "two"}, plain, "request.resources.clusterId: project two may use clusters 1, 2"},
		"cluster":              {Who{Project: "two"}, spec(func(s *job.Spec) { s.Request.Resources.ClusterID = 3 }), "request.resources.clusterId"},
		"operator, cluster":    {Who{Project: "two", Operator: true}, spec(func(s *job.Spec) { s.Request.Resources.ClusterID = 3 }), ""},
		"qos":                  {Who{Project: "vision"}, spec(func(s *job.Spec) { s.Gbatch.QOS = "high" }), ""},
		"no such qos":          {Who{Project: "vision"}, spec(func(s *job.Spec) { s.Gbatch.QOS = "low" }), "gbatch.qos"},
		"priority":             {Who{Project: "vision"}, spec(func(s *job.Spec) { s.Gbatch.Priority = 1 }), "gbatch.priority"},
		"lower priority":       {Who{Project: "vision"}, spec(func(s *job.Spec) { s.Gbatch.Priority = -1 }), ""},
		"operator, priority":   {Who{Project: "vision", Operator: true}, spec(func(s *job.Spec) { s.Gbatch.Priority = 1 }), ""},
		"privileged":           {Who{Project: "vision"}, spec(func(s *job.Spec) { s.Gbatch.Privileged = true }), "gbatch.privileged"},
		"privileged, operator": {Who{Project: "vision", Operator: true}, spec(func(s *job.Spec) { s.Gbatch.Privileged = true }), "gbatch.privileged"},
		"privileged, allowed":  {Who{Project: "root"}, spec(func(s *job.Spec) { s.Gbatch.Privileged = true }), ""},
		"capability":           {Who{Project: "vision"}, spec(func(s *job.Spec) { s.Gbatch.Capabilities = []job.Capability{"SYS_PTRACE"} }), "gbatch.capabilities"},
		"capability, allowed":  {Who{Project: "root"}, spec(func(s *job.Spec) { s.Gbatch.Capabilities = []job.Capability{"SYS_PTRACE"} }), ""},
		"host network":         {Who{Project: "vision"}, spec(func(s *job.Spec) { s.Gbatch.Network = job.NetworkHost }), "gbatch.network"},
		"host, allowed":        {Who{Project: "root"}, spec(func(s *job.Spec) { s.Gbatch.Network = job.NetworkHost }), ""},
		"runtime":              {Who{Project: "walled"}, plain, "gbatch.runtime"},
		"runtime, as told":     {Who{Project: "walled"}, spec(func(s *job.Spec) { s.Gbatch.Runtime = "runsc" }), ""},
		"too long":             {Who{Project: "vision"}, spec(func(s *job.Spec) { s.Request.Scheduling.MaxDuration = 3601 }), "request.scheduling.maxDuration"},
		"as long as may be":    {Who{Project: "vision"}, spec(func(s *job.Spec) { s.Request.Scheduling.MaxDuration = 3600 }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if r := rules.Refuse(tc.who, tc.spec); r != nil {
				got = r.Path + ": " + r.Message
			}
			if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
				t.Errorf("refused with %q, want %q", got, tc.want)
			}
		})
	}
}

// TestNoneToName: where there is none to name, the hint is no empty list.
func TestNoneToName(t *testing.T) {
	spec := &job.Spec{Name: "a", Gbatch: &job.Gbatch{QOS: "high"}}
	for hint, rules := range map[string]Rules{
		"the site has no qos: leave it out": {Projects: map[string]Project{"one": {}}},
		"qos here: fast, slow":              {Projects: map[string]Project{"one": {}}, QOS: map[string]sched.QOS{"slow": {}, "fast": {}}},
	} {
		if r := rules.Refuse(Who{Project: "one"}, spec); r == nil || r.Hint != hint {
			t.Errorf("refused with %+v, want the hint %q", r, hint)
		}
	}
}

// TestRequestDefaults: where a document is silent the site's rules speak.
func TestRequestDefaults(t *testing.T) {
	rules := Rules{Projects: map[string]Project{"one": {Clusters: []int{7}}}, DefaultRun: sched.Hour, DefaultMin: 2 * sched.Hour, MaxGrace: sched.Minute}
	request := func(spec *job.Spec) state.Request {
		shape, chosen, refusal := rules.Place(Who{Project: "one"}, spec, nil)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return rules.Request(spec, shape, chosen.Limit)
	}
	got := request(&job.Spec{Gbatch: &job.Gbatch{StopGrace: 600}})
	if got.Shape.Cluster != 7 || got.Shape.Nodes != 1 {
		t.Errorf("the shape is %+v", got.Shape)
	}
	if got.Limit != sched.Hour || got.MinRun != sched.Hour || got.StopGrace != sched.Minute {
		t.Errorf("limit %d, guaranteed %d, grace %d", got.Limit, got.MinRun, got.StopGrace)
	}
	own := &job.Spec{}
	own.Request.Scheduling.MaxDuration, own.Request.Resources.ClusterID, own.Request.Resources.GPUs = 60, 3, 0.5
	got = request(own)
	if got.Limit != sched.Minute || got.MinRun != sched.Minute || got.Shape.Cluster != 3 || got.Shape.MilliGPU != 500 {
		t.Errorf("limit %d, guaranteed %d, shape %+v", got.Limit, got.MinRun, got.Shape)
	}
}
