package partition

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestChoose: which partitions take a job, and what is said where none does.
func TestChoose(t *testing.T) {
	site := List{
		{Name: "gpu", MaxRun: 2 * sched.Hour, DefaultRun: sched.Hour, MaxNodes: 2, MinNodes: 2, MaxMilliGPU: 8000, Projects: []string{"vision"}},
		{Name: "cpu", Default: true, NotProjects: []string{"guests"}, NotQOS: []string{"high"}, MaxMilliCPU: 4000, MaxMiB: 4096},
		{Name: "long", QOS: []string{"high"}, MaxRun: 9 * sched.Hour},
		{Name: "ours", NotQOS: []string{""}},
	}
	wide := sched.Shape{Nodes: 2, MilliCPU: 1000, MemMiB: 1024, MilliGPU: 4000}
	small := sched.Shape{MilliCPU: 1000, MemMiB: 1024}
	with := func(s sched.Shape, edit func(*sched.Shape)) *sched.Shape { edit(&s); return &s }
	for name, c := range map[string]struct {
		asked Asked
		want  string // names and limit, or the message
	}{
		"none":               {Asked{Shape: &small}, "cpu 5"},
		"by default limit":   {Asked{Names: []string{"gpu"}, Project: "vision", Shape: &wide}, "gpu 1"},
		"a list":             {Asked{Names: []string{"gpu", "cpu", "gpu"}, Project: "vision", Shape: &wide}, "gpu,cpu 1"},
		"cluster":            {Asked{Shape: with(small, func(s *sched.Shape) { s.Cluster = 1 }), QOS: "high"}, "long,ours 5"},
		"nodes' own":         {Asked{Names: []string{"odd"}, Known: []string{"odd"}, Shape: &small}, "odd 5"},
		"unknown":            {Asked{Names: []string{"odd"}, Known: []string{"even"}, Shape: &small}, `there is no partition "odd"`},
		"nodes name none":    {Asked{Names: []string{"gpu"}, Project: "vision", Known: []string{}, Shape: &wide}, "gpu 1"},
		"too long":           {Asked{Names: []string{"gpu"}, Project: "vision", Shape: &wide, Limit: 3 * sched.Hour}, "partition gpu runs jobs for 2 hours at most, and this one asks for 3 hours"},
		"left out":           {Asked{Names: []string{"gpu", "cpu"}, Project: "vision", Shape: &wide, Limit: 3 * sched.Hour}, "cpu 3"},
		"too few":            {Asked{Names: []string{"gpu"}, Project: "vision", Shape: &small}, "partition gpu takes jobs on 2 nodes at least, and this one asks for 1"},
		"too many":           {Asked{Names: []string{"gpu"}, Project: "vision", Shape: with(wide, func(s *sched.Shape) { s.Nodes = 3 })}, "partition gpu takes jobs on 2 nodes at most, and this one asks for 3"},
		"GPUs":               {Asked{Names: []string{"gpu"}, Project: "vision", Shape: with(wide, func(s *sched.Shape) { s.MilliGPU = 5000 })}, "partition gpu gives a job 8 GPUs at most, and this one asks for 10"},
		"cores":              {Asked{Shape: with(small, func(s *sched.Shape) { s.MilliCPU = 4500 })}, "partition cpu gives a job 4 cores of a node at most, and this one asks for 4.5"},
		"memory":             {Asked{Shape: with(small, func(s *sched.Shape) { s.MemMiB = 5000 })}, "partition cpu gives a job 4 GiB of a node's memory at most, and this one asks for 4.882"},
		"all of a node":      {Asked{Shape: with(small, func(s *sched.Shape) { s.Exclusive = true })}, "partition cpu bounds what a job may have of a node, and this one asks for all of it"},
		"project":            {Asked{Names: []string{"gpu"}, Project: "x", Shape: &wide}, "partition gpu is for projects vision"},
		"not project":        {Asked{Project: "guests", Shape: &small}, "partition cpu is not for project guests"},
		"class":              {Asked{Names: []string{"long"}, Shape: &small}, "partition long is for classes of service high"},
		"not class":          {Asked{QOS: "high", Shape: &small}, "partition cpu is not for class of service high"},
		"not without class":  {Asked{Names: []string{"ours"}, Shape: &small}, "partition ours is not for jobs without a class of service"},
		"user":               {Asked{Closed: []string{"cpu"}, Shape: &small}, "partition cpu is for other users"},
		"operator":           {Asked{Closed: []string{"cpu"}, Project: "guests", QOS: "high", Operator: true, Shape: &small}, "cpu 5"},
		"operator, too long": {Asked{Names: []string{"gpu"}, Operator: true, Shape: &wide, Limit: 3 * sched.Hour}, "partition gpu runs jobs for 2 hours at most, and this one asks for 3 hours"},
	} {
		t.Run(name, func(t *testing.T) {
			c.asked.Usual = 5 * sched.Hour
			got, refusal := site.Choose(c.asked)
			said := strings.Join(got.Names, ",") + " " + string(rune('0'+got.Limit/sched.Hour))
			if refusal != nil {
				said = refusal.Message
			}
			if said != c.want {
				t.Errorf("got  %s\nwant %s", said, c.want)
			}
		})
	}
	if got, refusal := (List{}).Choose(Asked{Shape: &small, Known: []string{"odd"}}); refusal != nil || got.Names != nil || got.Limit != 0 {
		t.Errorf("a site without partitions puts a job into %v: %v", got, refusal)
	}
	if _, refusal := site.Choose(Asked{Names: []string{"cpu"}, Shape: &small, Project: "guests"}); refusal == nil || refusal.Hint != "as it is, the job is taken by: ours" && !strings.Contains(refusal.Hint, "ginfo") {
		t.Errorf("the hint is %v", refusal)
	}
}

// TestOf: which partitions a node is in.
func TestOf(t *testing.T) {
	list := List{{Name: "by-name", Nodes: []string{"N1"}}, {Name: "by-cluster", Clusters: []int{2, 3}}, {Name: "by-feature"}, {Name: "all", AllNodes: true}}
	n := func(name string, cluster int, features ...string) *state.Node {
		return &state.Node{Name: name, Inventory: state.Inventory{Inventory: node.Inventory{Cluster: cluster, Features: features}}}
	}
	got := [][]string{
		list.Of(n("n1", 1)), list.Of(n("n2", 3)), list.Of(n("n3", 1, "ib", "partition=by-feature", "partition=own", "partition=")), list.Of(n("n1", 2, "partition=all")),
	}
	want := [][]string{{"by-name", "all"}, {"by-cluster", "all"}, {"by-feature", "all", "own"}, {"by-name", "by-cluster", "all"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNoPartitions: where a site has none, a name is left out with a word, once nodes
// have said what they are.
func TestNoPartitions(t *testing.T) {
	a := Asked{Names: []string{"gpu", "long"}, Known: []string{}, Shape: &sched.Shape{}}
	c, r := List(nil).Choose(a)
	if diff := cmp.Diff(Chosen{Left: []string{"this site has no partitions, so that gpu, long is all of it"}}, c); diff != "" || r != nil {
		t.Errorf("chosen (-want +got):\n%s%v", diff, r)
	}
	a.Known = nil
	if c, r = List(nil).Choose(a); r != nil || len(c.Names) != 2 {
		t.Errorf("before a node was there: %+v, %v", c, r)
	}
}
