package ctld

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/store"
	"gbatch/sched"
)

// Bounds of one page: of the jobs in it, and of the entries of the index that
// are looked at for it.
const (
	historyPage = 1000
	historyLook = 200_000
)

// historyInput selects jobs that have ended, by the time of their end. A value
// may be given several times: any of them will do.
type historyInput struct {
	User     []string  `query:"user,explode"`
	Project  []string  `query:"project,explode"`
	Name     []string  `query:"name,explode" doc:"of jobs whose name you may see"`
	State    []string  `query:"state,explode" doc:"final states"`
	Reason   []string  `query:"reason,explode"`
	Array    uint64    `query:"array" doc:"tasks of this array"`
	Start    time.Time `query:"start" doc:"ended at it or later"`
	End      time.Time `query:"end" doc:"ended before it"`
	Newest   bool      `query:"newest" doc:"the last to end first"`
	Limit    int       `query:"limit" minimum:"0" doc:"jobs of a page, at most 1000"`
	After    string    `query:"after" doc:"next of the page before"`
	Attempts bool      `query:"attempts" doc:"with all their attempts; for operators"`
}

// span is where in the index the page is looked for.
func (in *historyInput) span() (from, to store.Place, err error) {
	to.Seq = 1 << 62
	if !in.Start.IsZero() {
		from.Seq = uint64(max(in.Start.UnixMilli(), 0))
	}
	if !in.End.IsZero() {
		to.Seq = uint64(max(in.End.UnixMilli(), 0))
	}
	if in.After == "" {
		return from, to, nil
	}
	at, n, ok := strings.Cut(in.After, "-")
	ms, err1 := strconv.ParseUint(at, 10, 63)
	num, err2 := strconv.ParseUint(n, 10, 63)
	if !ok || err1 != nil || err2 != nil {
		return from, to, &api.Error{Status: 400, Code: api.CodeBadRequest, Message: fmt.Sprintf("after is %q, which is no page's next", in.After)}
	}
	if last := (store.Place{Seq: ms, Job: job.Number(num)}); in.Newest {
		to = last
	} else {
		last.Job++
		from = last
	}
	return from, to, nil
}

// wanted says cheaply that a record of the index is none of those asked for:
// where one value is asked for it must be in the text.
func (in *historyInput) wanted(value []byte) bool {
	if in.Array != 0 && !bytes.Contains(value, fmt.Appendf(nil, `"a":%d`, in.Array)) {
		return false
	}
	for _, list := range [][]string{in.User, in.Project, in.State} {
		if len(list) == 1 && !bytes.Contains(value, []byte(strconv.Quote(list[0]))) && strconv.Quote(list[0]) == `"`+list[0]+`"` {
			return false
		}
	}
	return true
}

func (in *historyInput) matches(e control.Ended, private func(*control.Owner) bool) bool {
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	return has(in.User, e.User) && has(in.Project, e.Project) && has(in.State, string(e.State)) && has(in.Reason, string(e.Reason)) && (in.Array == 0 || in.Array == uint64(e.Array)) &&
		(len(in.Name) == 0 || slices.Contains(in.Name, e.Name) && !private(&control.Owner{User: e.User, Project: e.Project}))
}

func (in *historyInput) check(id identity) error {
	if in.Attempts && !id.operator() {
		return denied("only an operator may have all that is recorded", "`gacct` without export lists jobs")
	}
	for _, s := range in.State {
		if st := job.State(s); !slices.Contains(job.States, st) || !st.Final() {
			return &api.Error{Status: 400, Code: api.CodeBadRequest, Message: fmt.Sprintf("%q is no state in which a job has ended", s),
				Hint: "gqueue lists jobs that wait or run"}
		}
	}
	return nil
}

// listPast lists jobs that have ended.
func (s *Server) listPast(ctx context.Context, in *historyInput) (*body[api.History], error) {
	id := caller(ctx)
	if err := in.check(id); err != nil {
		return nil, err
	}
	from, to, err := in.span()
	if err != nil {
		return nil, err
	}
	most := historyPage
	if in.Limit > 0 {
		most = min(most, in.Limit)
	}
	private := func(o *control.Owner) bool { return !s.mayTouch(id, o) }
	var found []job.Number
	out, looked := api.History{Jobs: []api.PastJob{}}, 0
	err = s.store.Range(control.KindEnded, from, to, in.Newest, func(r control.Record) (bool, error) {
		looked++
		if in.wanted(r.Value) {
			e, err := control.DecodeEnded(r)
			if err != nil {
				return false, err
			}
			if in.matches(e, private) {
				found = append(found, r.Job)
			}
		}
		if len(found) < most && looked < historyLook && ctx.Err() == nil {
			return true, nil
		}
		out.Next = fmt.Sprintf("%d-%d", r.Seq, r.Job)
		return false, nil
	})
	v := s.loop.view.Load()
	for _, n := range found {
		if err != nil {
			break
		}
		var p api.PastJob
		if p, err = s.pastJob(v, id, n, in.Attempts); err == nil {
			out.Jobs = append(out.Jobs, p)
		}
	}
	if err != nil {
		return nil, s.fail(err)
	}
	return &body[api.History]{out}, nil
}

func (s *Server) pastJob(v *control.View, id identity, n job.Number, attempts bool) (api.PastJob, error) {
	j := v.Job(n)
	if j == nil {
		var err error
		if j, err = s.history(n); err != nil || j == nil {
			return api.PastJob{}, fmt.Errorf("read job %d that has ended (there: %t): %w", n, j != nil, err)
		}
	}
	p := api.PastJob{Job: s.toAPI(v, id, j)}
	if p.Private {
		return p, nil
	}
	p.Used = s.used(j)
	if !attempts {
		return p, nil
	}
	err := s.store.Of(control.KindAttempt, n, func(r control.Record) error {
		var a control.Attempt
		if err := json.Unmarshal(r.Value, &a); err != nil {
			return fmt.Errorf("decode attempt of job %d: %w", n, err)
		}
		p.Attempts = append(p.Attempts, attemptToAPI(&a))
		return nil
	})
	return p, err
}

// used is what a job held, and what its last attempt made of it; of one that
// runs as its nodes said last. An array uses nothing: its tasks do.
func (s *Server) used(j *control.Job) *api.Used {
	if j.Tasks != nil || j.Cron != nil {
		return nil
	}
	held := s.loop.view.Load().Held(j, sched.Time(s.now().UnixMilli()))
	u := &api.Used{
		GPUSeconds: float64(held.MilliGPU) / 1e6, CPUSeconds: float64(held.MilliCPU) / 1e6,
		MemGiBSeconds: float64(held.MemMiB) / 1024 / 1000, BilledHours: billedHours(held.Billed),
	}
	if j.Attempt == nil || j.State.Pending() {
		return u
	}
	if j.Started > 0 {
		end := j.Ended
		if end == 0 {
			end = sched.Time(s.now().UnixMilli())
		}
		u.ElapsedS = int64(max(end-j.Started, 0)) / 1000
	}
	for i, r := range j.Attempt.Ranks {
		use := s.samples.use(r.Alloc.Node, j.RankID(i))
		if r.Exit != nil {
			use = &node.LiveUse{CPUSeconds: r.Exit.CPUSeconds, PeakMem: r.Exit.PeakMem, GPU: r.Exit.GPU}
		}
		if use == nil {
			continue
		}
		u.NodesKnown++
		u.CPUTimeS += use.CPUSeconds
		u.PeakMem = max(u.PeakMem, use.PeakMem)
		u.GPU = joinGPUs(u.GPU, use.GPU)
	}
	return u
}

// joinGPUs is what the GPUs of several ranks did together.
func joinGPUs(a, b *node.GPUUse) *node.GPUUse {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	out := *a
	if n := a.Samples + b.Samples; n > 0 {
		out.Utilization = (a.Utilization*float64(a.Samples) + b.Utilization*float64(b.Samples)) / float64(n)
		out.Samples = n
	}
	out.MaxUtilization = max(a.MaxUtilization, b.MaxUtilization)
	if b.MaxMem > a.MaxMem {
		out.MaxMem, out.Mem = b.MaxMem, b.Mem
	}
	out.EnergyJ += b.EnergyJ
	out.Simulated = a.Simulated || b.Simulated
	return &out
}

// billedHours is thousandths of a GPU x milliseconds as hours of one.
func billedHours(v int64) float64 { return float64(v) / 1000 / 3_600_000 }
