package outlook

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gbatch/accounting"
	"gbatch/internal/control"
	"gbatch/internal/control/ask"
	"gbatch/internal/control/effects"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

const start = 100 * sched.Day

// site is a controller whose records are kept.
type site struct {
	t      *testing.T
	c      *control.Controller
	now    sched.Time
	stored map[string]state.Record
	jobs   int
}

func rules() control.Config {
	p := sched.DefaultPolicy()
	p.QOS = map[string]sched.QOS{"normal": {}, "high": {Priority: 1000}}
	p.DefaultQOS = "normal"
	return control.Config{
		Policy: p, Accounting: accounting.DefaultConfig(), Projects: map[string]ask.Project{"a": {}, "b": {}},
		DefaultRun: sched.Hour, MaxRun: sched.Day, Grace: sched.Second, SuspectTime: sched.Minute, NodeTimeout: 5 * sched.Minute,
		KeepEnded: sched.Day, KeepCount: 1000, MaxQueued: 1_000_000,
	}
}

func newSite(t *testing.T) *site {
	c, err := control.New(rules(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, c: c, now: start, stored: map[string]state.Record{}}
}

func (s *site) keep(eff effects.Set) {
	for _, r := range eff.Records {
		k := fmt.Sprintf("%c/%08d/%08d/%s", r.Kind, r.Job, r.Seq, r.Name)
		if r.Value == nil {
			delete(s.stored, k)
		} else {
			s.stored[k] = r
		}
	}
}

func apply[A any](s *site, ev control.Event[A]) A {
	s.t.Helper()
	answer, refusal, eff := control.Apply(s.c, s.now, ev)
	if refusal != nil {
		s.t.Fatal(refusal.Message)
	}
	s.keep(eff)
	return answer
}

func (s *site) node(name string, gpus int) {
	inv := node.Inventory{Hostname: name, CPUs: 64, MemBytes: 1 << 40, Bridge: true, Gang: true}
	for i := range gpus {
		inv.GPUs = append(inv.GPUs, node.GPU{UUID: fmt.Sprintf("%s/%d", name, i), Index: i, Model: "H100", MemBytes: 80 << 30, NUMA: -1})
	}
	apply(s, control.NodeSync{Name: name, Instance: "i", Hash: "1", Inventory: &inv})
}

// submit is a job of so many GPUs for so many hours.
func (s *site) submit(user string, gpus, hours int64, more ...func(*control.Submit)) job.Number {
	ev := control.Submit{User: user, Project: "a", Spec: &job.Spec{}, Document: []byte("{}"),
		Request: &state.Request{Shape: &sched.Shape{MilliGPU: 1000 * gpus}, Limit: sched.Time(hours) * sched.Hour}}
	for _, m := range more {
		m(&ev)
	}
	s.jobs++
	ev.UUID[0], ev.UUID[1] = byte(s.jobs), byte(s.jobs>>8)
	return apply(s, ev).Number
}

func (s *site) round() { s.keep(s.c.Schedule(s.now)) }

// question is one about the site as it is.
func (s *site) question() Question {
	return Question{
		Now: s.now, Rules: rules(), Silent: func(string) bool { return false }, Part: func() error { return nil }, More: func() bool { return true },
		Records: func(take func(state.Record) error) error {
			for _, k := range slices.Sorted(maps.Keys(s.stored)) {
				if err := take(s.stored[k]); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// starts is an answer in words: hours from now, before and after.
func starts(t *testing.T, q Question) string {
	t.Helper()
	a, err := Ask(q)
	if err != nil {
		t.Fatal(err)
	}
	hours := func(at sched.Time) string {
		if at == 0 {
			return "-"
		}
		return fmt.Sprint((at - q.Now + grain) / sched.Hour)
	}
	var out []string
	for _, j := range a.Jobs {
		out = append(out, fmt.Sprintf("%s:%s>%s", j.ID, hours(j.Before), hours(j.After)))
	}
	return strings.Join(out, " ")
}

// TestOutlook asks what would change of a queue behind a job that runs.
func TestOutlook(t *testing.T) {
	s := newSite(t)
	s.node("n1", 2)
	s.submit("ann", 2, 4)
	s.round()
	s.submit("ann", 2, 4)
	s.submit("ann", 2, 4)
	s.submit("bob", 2, 2)
	s.submit("bob", 2, 2, func(e *control.Submit) { e.Hold = true })
	s.round()
	s.now += 2 * sched.Hour
	for _, tc := range []struct {
		name, want string
		edit       func(*Question)
	}{
		{"nothing", "2:4>4 3:8>8 4:2>2", func(*Question) {}},
		{"first come, first served", "2:4>2 3:8>6 4:2>10", func(q *Question) { q.Set = []string{"mode=fcfs", "weights.fair_share=0", "weights.size=0"} }},
		{"a node more", "2:4>2 3:8>2 4:2>0", func(q *Question) { q.Add = []string{"1x2xh100"} }},
		{"two nodes, in two lines", "2:4>0 3:8>0 4:2>0", func(q *Question) { q.Add = []string{"1x2xh100", "2x2xh100"} }},
		{"other rules", "2:4>2 3:8>6 4:2>10", func(q *Question) {
			c := rules()
			c.Policy.Mode, c.Policy.Weights = sched.FCFS, sched.Weights{}
			q.Changed = &c
		}},
		{"a node that is silent", "2:->- 3:->- 4:->-", func(q *Question) { q.Silent = func(n string) bool { return n == "n1" } }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := s.question()
			tc.edit(&q)
			if got := starts(t, q); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestArrays: tasks that are no jobs yet are in the answer, each with its start.
func TestArrays(t *testing.T) {
	s := newSite(t)
	s.node("n1", 1)
	s.submit("ann", 1, 1, func(e *control.Submit) {
		e.Spec = &job.Spec{Gbatch: &job.Gbatch{Tasks: &job.Tasks{Indexes: "0-2"}}}
	})
	s.round()
	if got, want := starts(t, s.question()), "1_1:1>1 1_2:2>2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestTimeIsUp: what was not looked at is not told of one alone.
func TestTimeIsUp(t *testing.T) {
	s := newSite(t)
	s.node("n1", 1)
	for range 50 {
		s.submit("ann", 1, 2)
	}
	s.round()
	q, steps := s.question(), 0
	q.More = func() bool { steps++; return steps < 60 }
	a, err := Ask(q)
	if err != nil {
		t.Fatal(err)
	}
	started := 0
	for _, j := range a.Jobs {
		if j.Before > a.Until || j.After != j.Before {
			t.Errorf("job %s starts at %d and %d, and it was looked until %d", j.ID, j.Before, j.After, a.Until)
		}
		if j.Before > 0 {
			started++
		}
	}
	if a.Whole || len(a.Jobs) != 49 || started == 0 || started == 49 {
		t.Errorf("%d of %d jobs start until %d, whole: %t; want some of 49", started, len(a.Jobs), a.Until, a.Whole)
	}
}

// TestWrongQuestions are refused in words for people.
func TestWrongQuestions(t *testing.T) {
	s := newSite(t)
	s.node("n1", 1)
	for text, edit := range map[string]func(*Question){
		"there is no such rule": func(q *Question) { q.Set = []string{"colour=red"} },
		"want COUNTxGPUSxMODEL": func(q *Question) { q.Add = []string{"many"} },
		`mode is "best"`:        func(q *Question) { q.Set = []string{"mode=best"} },
		"the rules: ":           func(q *Question) { c := rules(); c.Accounting.HalfLifeMS = -1; q.Changed = &c },
	} {
		q := s.question()
		edit(&q)
		if _, err := Ask(q); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got error %v, want one with %q", err, text)
		}
	}
}
