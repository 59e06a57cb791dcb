package usage

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// Bounds of one page: of the jobs in it, and of the entries of the index that
// are looked at for it.
const (
	historyPage = 1000
	historyLook = 200_000

	historySteps = 50 // jobs of a page with their steps, of which each may have a thousand
)

// historyInput selects jobs that have ended, by the time of their end. A value
// may be given several times: any of them will do.
type historyInput struct {
	User     []string  `query:"user,explode"`
	Project  []string  `query:"project,explode"`
	Name     []string  `query:"name,explode" doc:"of jobs that you may see"`
	State    []string  `query:"state,explode" doc:"final states"`
	Reason   []string  `query:"reason,explode" doc:"of jobs that you may see"`
	Array    uint64    `query:"array" doc:"tasks of this array"`
	Start    time.Time `query:"start" doc:"ended at it or later"`
	End      time.Time `query:"end" doc:"ended before it"`
	Newest   bool      `query:"newest" doc:"the last to end first"`
	Limit    int       `query:"limit" minimum:"0" doc:"jobs of a page, at most 1000"`
	After    string    `query:"after" doc:"next of the page before"`
	Attempts bool      `query:"attempts" doc:"with all their attempts; for operators"`
	Advice   bool      `query:"advice" doc:"with what to ask for instead"`
	Steps    bool      `query:"steps" doc:"with what srun started in them; then a page has at most 50 jobs"`
}

// span is where in the index the page is looked for.
func (in *historyInput) span() (out store.Span, err error) {
	out.To.Seq, out.Backward = 1<<62, in.Newest
	if !in.Start.IsZero() {
		out.From.Seq = uint64(max(in.Start.UnixMilli(), 0))
	}
	if !in.End.IsZero() {
		out.To.Seq = uint64(max(in.End.UnixMilli(), 0))
	}
	if in.After == "" {
		return out, nil
	}
	at, n, ok := strings.Cut(in.After, "-")
	ms, err1 := strconv.ParseUint(at, 10, 63)
	num, err2 := strconv.ParseUint(n, 10, 63)
	if !ok || err1 != nil || err2 != nil {
		return out, api.Errorf(api.CodeBadRequest, "after is %q, which is no page's next", in.After)
	}
	if last := (store.Place{Seq: ms, Job: job.Number(num)}); in.Newest {
		out.To = last
	} else {
		last.Job++
		out.From = last
	}
	return out, nil
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

func (in *historyInput) matches(e state.Ended, private func(*state.Owner) bool) bool {
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	return has(in.User, e.User) && has(in.Project, e.Project) && has(in.State, string(e.State)) && (in.Array == 0 || in.Array == uint64(e.Array)) &&
		has(in.Reason, string(e.Reason)) && has(in.Name, e.Name) &&
		(len(in.Reason)+len(in.Name) == 0 || !private(&state.Owner{User: e.User, Project: e.Project}))
}

func (in *historyInput) check(id access.Identity) error {
	if in.Attempts && !id.Operator() {
		return api.Errorf(api.CodeDenied, "only an operator may have all that is recorded").WithHint("`gacct` without export lists jobs")
	}
	for _, s := range in.State {
		if st := job.State(s); !slices.Contains(job.States, st) || !st.Final() {
			return api.Errorf(api.CodeBadRequest, "%q is no state in which a job has ended", s).WithHint("gqueue lists jobs that wait or run")
		}
	}
	return nil
}

// History lists jobs that have ended, and what was used.
type History struct {
	Loop   *loop.Loop
	Store  records
	Jobs   *jobstore.Reader
	Rights *access.Rights
	Used   *Used
	Now    func() time.Time
}

// records is what is read of the store.
type records interface {
	Range(kind state.Kind, in store.Span, f func(state.Record) (bool, error)) error
}

// List lists jobs that have ended.
func (s *History) List(ctx context.Context, in *historyInput) (*api.History, error) {
	id := access.Caller(ctx)
	if err := in.check(id); err != nil {
		return nil, err
	}
	span, err := in.span()
	if err != nil {
		return nil, err
	}
	most := historyPage
	if in.Limit > 0 {
		most = min(most, in.Limit)
	}
	if in.Steps {
		most = min(most, historySteps)
	}
	private := func(o *state.Owner) bool { return s.Rights.Private(id, o) }
	var found []job.Number
	out, looked := api.History{Jobs: []api.PastJob{}}, 0
	err = s.Store.Range(state.KindEnded, span, func(r state.Record) (bool, error) {
		looked++
		if in.wanted(r.Value) {
			e, err := state.DecodeEnded(r)
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
	v := s.Loop.View()
	for _, n := range found {
		if err != nil {
			break
		}
		var p api.PastJob
		if p, err = s.pastJob(v, id, n, in); err == nil {
			out.Jobs = append(out.Jobs, p)
		}
	}
	if err != nil {
		return nil, err
	}
	return &out, nil
}

func (s *History) pastJob(v *state.View, id access.Identity, n job.Number, in *historyInput) (api.PastJob, error) {
	j := v.Job(n)
	if j == nil {
		var err error
		if j, err = s.Jobs.Past(n); err != nil || j == nil {
			return api.PastJob{}, fmt.Errorf("read job %d that has ended (there: %t): %w", n, j != nil, err)
		}
	}
	p := api.PastJob{Job: wire.Job(v, j, s.Rights.Private(id, j.Owner))}
	if p.Private {
		return p, nil
	}
	p.Used = s.Used.Of(j)
	if in.Advice {
		Advise(j, p.Used)
	}
	var err error
	if in.Steps {
		p.Steps, err = s.Jobs.Steps(j)
	}
	if in.Attempts && err == nil {
		p.Attempts, err = s.Jobs.Attempts(j)
	}
	return p, err
}
