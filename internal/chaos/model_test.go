package chaos

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"gbatch/accounting"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// operation is what a client asked, and what it was told.
type operation struct {
	kind    string // submit, cancel, read
	key     string // of the submission
	unknown bool   // no answer came: it was done once, later, or never
	number  job.Number

	refused bool // a cancellation: the job was over

	absent, final, cancelled bool // what was read
	state, uuid              string
}

// jobSeen is a job as an observer knows it, who takes what is told one after the other.
type jobSeen struct {
	number    job.Number // 0: it was not submitted
	cancelled bool
	over      string // its last state
}

// jobs is what clients may be told of jobs: each is there for ever once it was submitted, with one
// number whatever is asked again; it is cancelled from when that was acknowledged; and it ends
// once. That it ends by itself is nobody's operation, and so is found when it is read.
var jobsModel = porcupine.Model{
	Partition: func(past []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		var order []string
		for _, o := range past {
			k := o.Input.(operation).key
			if by[k] == nil {
				order = append(order, k)
			}
			by[k] = append(by[k], o)
		}
		out := make([][]porcupine.Operation, 0, len(order))
		for _, k := range order {
			out = append(out, by[k])
		}
		return out
	},
	Init: func() any { return jobSeen{} },
	Step: func(s, in, _ any) (bool, any) { return seenBy(s.(jobSeen), in.(operation)) },
	DescribeOperation: func(in, _ any) string {
		return fmt.Sprintf("%+v", in)
	},
}

func seenBy(s jobSeen, o operation) (bool, any) {
	switch o.kind {
	case "submit":
		if o.unknown {
			return true, s // its client never learns a number, and so asks nothing more
		}
		ok := s.number == 0 || s.number == o.number
		s.number = o.number
		return ok, s
	case "cancel":
		if o.unknown {
			s.cancelled = true
			return true, s
		}
		if s.number != o.number {
			return false, s
		}
		if o.refused {
			return !s.cancelled || s.over != "", s
		}
		s.cancelled = true
		return true, s
	}
	switch {
	case o.absent:
		return s.number == 0, s
	case s.number != o.number || s.over != "" && s.over != o.state:
		return false, s
	case o.final:
		s.over = o.state
		return true, s
	}
	return s.cancelled == o.cancelled, s
}

// final looks at all that was said and done, when every job is to have ended.
func (a *audit) final() {
	if a.w.ctx.Err() != nil {
		return
	}
	p := a.w.leading() // with no lock, as time passes
	for p == nil && a.w.sleep(time.Second) == nil {
		p = a.w.leading()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if res := porcupine.CheckOperationsTimeout(jobsModel, a.past, 0); res != porcupine.Ok {
		a.violated("what clients were told cannot be put in an order: %s", a.odd())
	}
	if p == nil {
		return
	}
	v := p.loop.View()
	of := map[string]job.Number{}
	for j := range v.All() {
		if j.Parent != 0 { // it has its array's name
			continue
		}
		if n := of[j.Name]; n != 0 {
			a.violated("%s was submitted once, and is there as job %d and as job %d", j.Name, n, j.Number)
		}
		of[j.Name] = j.Number
		a.named(j)
	}
	for _, n := range keys(a.acked) {
		if j := v.Job(n); j == nil {
			a.violated("job %d was acknowledged and is gone", n)
		} else if why := a.untrue(j); why != "" {
			a.violated("job %d is %s %s (%s): %s", n, j.State, j.Reason, j.Text, why)
		} else if err := a.billed(p, j); err != nil && a.arrays[n] == 0 { // whose tasks have the attempts
			a.violated("job %d: %v", n, err)
		} else {
			a.tally.ended++
			a.tally.states[string(j.State)+" "+string(j.Reason)] = true
		}
	}
	for _, c := range a.alive { // any will do
		a.violated("%s runs on %s, and every job has ended", c.id, c.m.name)
	}
}

// odd is the history of one job that cannot be put in an order.
func (a *audit) odd() string {
	for _, past := range jobsModel.Partition(a.past) {
		if porcupine.CheckOperationsTimeout(jobsModel, past, 0) == porcupine.Ok {
			continue
		}
		text := ""
		for _, o := range past {
			text += fmt.Sprintf("\n  %d to %d: %+v", o.Call/1e6, o.Return/1e6, o.Input)
		}
		return text
	}
	return "none alone"
}

// untrue says why what a job is told to have come to is not what happened.
func (a *audit) untrue(j *state.Job) string {
	if !j.State.Final() {
		return "it has not ended"
	}
	if n := a.arrays[j.Number]; n > 0 {
		return a.untrueArray(j, n)
	}
	codes, ranks, vague := map[int]int{}, 0, a.vague[j.Number] || j.Last() != nil && j.Last().Alone // which no lease bounds
	if at := j.Last(); at != nil {
		ranks = len(at.Ranks)
		for i := range at.Ranks {
			if code, ok := a.ends[j.Identity()+" "+j.RankID(i).String()]; ok {
				codes[code]++
			}
		}
	}
	switch {
	case j.State == job.Cancelled && !a.cancel[j.Number]:
		return "nobody cancelled it"
	case j.State == job.Finished && codes[0] < max(ranks, 1):
		return fmt.Sprintf("of its %d programs ended so: %v", ranks, codes)
	case j.State == job.Failed && j.Reason == job.ExitCode && codes[1]+codes[2]+codes[3] == 0:
		return fmt.Sprintf("its programs ended so: %v", codes)
	case j.State == job.Failed && (j.Reason == job.Signal || j.Reason == job.None || j.Reason == job.ByUser):
		return "nobody did that"
	case j.State == job.Failed && j.Reason == job.MaxRuntime && a.ranFor(j)+a.unseen(j) < mayRun && !vague:
		return fmt.Sprintf("its programs ran for %s", a.ranFor(j))
	case time.Duration(j.UsedRun)*time.Millisecond > a.ranFor(j)+a.unseen(j) && !vague:
		return fmt.Sprintf("%s count against its limit, and its programs ran for %s", time.Duration(j.UsedRun)*time.Millisecond, a.ranFor(j))
	}
	return ""
}

// untrueArray says that of an array.
func (a *audit) untrueArray(j *state.Job, tasks int) string {
	well, badly := 0, false
	for i := range tasks {
		if a.tasks[taskEnd{j.Name, uint32(i), true}] {
			well++
		}
		badly = badly || a.tasks[taskEnd{j.Name, uint32(i), false}]
	}
	switch {
	case j.State == job.Cancelled && !a.cancel[j.Number]:
		return "nobody cancelled it"
	case j.State == job.Finished && well < tasks:
		return fmt.Sprintf("of its %d tasks %d ended well", tasks, well)
	case j.State == job.Failed && j.Reason == job.ExitCode && !badly:
		return "none of its tasks ended badly"
	}
	return ""
}

// unseen is for how much longer than its programs ran a job may be taken to have run: what ended unheard ended with its lease, which
// began with the last contact or, where a controller was not there, up to a minute after the last note of one, which
// may be a minute after that contact and not name the node. Clocks that agree again count up to a twentieth more.
func (a *audit) unseen(j *state.Job) time.Duration {
	const late = 30 * time.Second // messages, and an end of which nobody says when it was
	return time.Duration(j.Tries)*(a.lease+2*time.Minute+late) + a.ranFor(j)/10
}

// ranFor is how long the programs of all attempts of a job ran, of each attempt the longest.
func (a *audit) ranFor(j *state.Job) (ran time.Duration) {
	longest := map[string]time.Duration{}
	for rank, d := range a.ran {
		if strings.HasPrefix(rank, j.Identity()+" ") {
			attempt := rank[:strings.LastIndex(rank, ".")]
			longest[attempt] = max(longest[attempt], d)
		}
	}
	for _, d := range longest {
		ran += d
	}
	return ran
}

// billed checks that what a job is billed is the sum over its attempts.
func (a *audit) billed(p *process, j *state.Job) error {
	var sum accounting.Amount
	err := p.store.NewestOf(state.KindAttempt, j.Number, func(r state.Record) (bool, error) {
		var at state.Attempt
		err := json.Unmarshal(r.Value, &at)
		sum = sum.Plus(at.Used)
		return true, err
	})
	if err == nil && sum != j.Used {
		err = fmt.Errorf("it is billed %+v, and its attempts %+v", j.Used, sum)
	}
	return err
}
