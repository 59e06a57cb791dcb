package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/jobs"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// client is a user who submits, cancels and looks, and who asks again where it does not know what
// became of that.
type client struct {
	w    *world
	name string
	id   int
	sent int
	mine []sent // jobs that it knows of
}

type sent struct {
	key    string
	number job.Number
}

func (c *client) run(ctx context.Context) {
	for n := 0; ; n++ {
		r := c.w.draw("client", c.name, n)
		if c.rest(ctx, between(r, time.Second, 40*time.Second)) != nil {
			return
		}
		switch k := r.IntN(10); {
		case k < 4 || len(c.mine) == 0:
			if c.submit(ctx, r) {
				c.look(ctx, c.mine[len(c.mine)-1])
			}
		case k < 6:
			s := c.mine[len(c.mine)-1-r.IntN(min(4, len(c.mine)))]
			if c.cancel(ctx, s) {
				c.look(ctx, s)
			}
		default:
			c.read(ctx, c.mine[r.IntN(len(c.mine))])
			if r := c.w.draw("requeue", c.name, n); r.IntN(3) == 0 {
				c.requeue(ctx, c.mine[len(c.mine)-1-r.IntN(min(4, len(c.mine)))])
			}
		}
	}
}

// rest waits, but not for long when who leads may be another one soon.
func (c *client) rest(ctx context.Context, d time.Duration) error {
	const most = 2 * time.Second
	for ; d > most && int64(c.w.now()) >= c.w.stirred.Load(); d -= most {
		if err := sleep(ctx, most); err != nil {
			return err
		}
	}
	return sleep(ctx, min(d, most))
}

// look reads what was just changed again and again, as who follows a job does: another controller may answer, which
// does not know of it.
func (c *client) look(ctx context.Context, s sent) {
	for n := range 3 {
		if sleep(ctx, between(c.w.draw("look", c.name, n), 10*time.Millisecond, 500*time.Millisecond)) != nil {
			return
		}
		c.read(ctx, s)
	}
}

// tries is how often a client asks again before it gives up, and does not know then.
const tries = 6

// ask calls the controller until it answers.
func ask[A any](ctx context.Context, c *client, serve func(context.Context, *process) (A, error)) (answer A, err error) {
	for range tries {
		if answer, err = call(ctx, c.w.net, request{who: c.name}, serve); !unknown(err) {
			return answer, err
		}
		if sleep(ctx, between(c.w.draw("retry", c.name), time.Second, 5*time.Second)) != nil {
			break
		}
	}
	return answer, err
}

// unknown says that what was asked may or may not have been done, or is to be asked again.
func unknown(err error) bool {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Code == api.CodeUnavailable || e.Code == api.CodeStorageFull
	}
	var r *state.Refusal
	return err != nil && !errors.As(err, &r)
}

// submit says whether a job was acknowledged.
func (c *client) submit(ctx context.Context, r *rand.Rand) bool {
	c.sent++
	key := fmt.Sprintf("%s-%d", c.name, c.sent)
	runs, code := 1+r.IntN(240), 0
	if r.IntN(4) == 0 {
		code = 1 + r.IntN(3)
	}
	if r.IntN(25) == 0 {
		runs = 7200 // longer than its limit
	}
	nodes := 1
	if r.IntN(6) == 0 && c.w.now() > time.Minute { // most often two have joined by then
		nodes = 2
	}
	tasks := 0
	if wide := c.w.history.nodes / usualNodes; wide >= large/usualNodes { // gangs over up to a quarter of the nodes, and arrays
		if nodes > 1 {
			nodes += r.IntN(wide)
		} else if r.IntN(4) == 0 {
			tasks = 2 + r.IntN(2*wide)
		}
	}
	var few atomic.Bool // nodes have joined: then it is refused. A repeated request looks, too.
	doc := document(wish{fmt.Sprintf("run-%d-exit-%d-%s", runs, code, key), r.IntN(5), r.IntN(2) == 0, nodes, tasks, c.w.draw("alone", key).IntN(8) == 0})
	begun := c.w.audit.call()
	a, err := ask(ctx, c, func(ctx context.Context, p *process) (*api.SubmitResponse, error) {
		k := key
		if c.w.plant.newKeys {
			k += c.w.now().String()
		}
		in := &jobs.SubmitInput{Key: k, Body: api.SubmitRequest{Job: doc}}
		if c.w.plant.answersEarly {
			return c.early(ctx, p, in)
		}
		if p.loop.View().Nodes.Len() < nodes {
			few.Store(true)
		}
		return p.submit.Submit(p.user(ctx, c.name), in)
	})
	op := operation{kind: "submit", key: key}
	switch {
	case unknown(err):
		op.unknown = true
	case err != nil && few.Load():
		c.w.audit.saw("jobs refused that no nodes had joined for")
		return false
	case err != nil:
		c.w.audit.violation("a submission is refused: %v", err)
		return false
	default:
		op.number = a.Number
		c.mine = append(c.mine, sent{key, a.Number})
		c.w.audit.array(a.Number, tasks)
		c.w.note("%s submitted job %d", key, a.Number)
	}
	c.w.audit.returned(c.id, begun, op)
	return !op.unknown
}

// early is a planted bug: it answers before anything is stored.
func (c *client) early(ctx context.Context, p *process, in *jobs.SubmitInput) (*api.SubmitResponse, error) {
	next := p.loop.View().Next
	c.w.wg.Go(func() { _, _ = p.submit.Submit(p.user(context.WithoutCancel(ctx), c.name), in) })
	return &api.SubmitResponse{Number: next}, nil
}

// cancel says whether that was acknowledged.
func (c *client) cancel(ctx context.Context, s sent) bool {
	c.w.audit.wants(s.number)
	begun := c.w.audit.call()
	out, err := ask(ctx, c, func(ctx context.Context, p *process) ([]control.Result, error) {
		if c.w.plant.dropsCancels && c.w.draw("drop", s.key).IntN(3) == 0 {
			return []control.Result{{}}, nil
		}
		return loop.Do(p.user(ctx, c.name), p.loop, control.Act{Action: control.Cancel, Numbers: []job.Number{s.number}, By: c.name})
	})
	op := operation{kind: "cancel", key: s.key, number: s.number}
	switch {
	case unknown(err):
		op.unknown = true
	case err != nil || len(out) != 1:
		c.w.audit.violation("cancelling job %d: %v", s.number, err)
		return false
	default:
		op.refused = out[0].Refusal != nil || out[0].After.Final() && out[0].After != job.Cancelled
		c.w.note("%s cancelled, refused %t", s.key, op.refused)
	}
	c.w.audit.returned(c.id, begun, op)
	return !op.unknown
}

// requeue has a job that runs wait again, and begin anew where it was if there is room: what its node says late
// of the attempt before is of no matter then.
func (c *client) requeue(ctx context.Context, s sent) {
	out, err := ask(ctx, c, func(ctx context.Context, p *process) ([]control.Result, error) {
		return loop.Do(p.user(ctx, c.name), p.loop, control.Act{Action: control.Requeue, Numbers: []job.Number{s.number}, By: c.name})
	})
	switch {
	case unknown(err):
	case err != nil || len(out) != 1:
		c.w.audit.violation("requeuing job %d: %v", s.number, err)
	case out[0].Refusal == nil && out[0].Before == job.Running:
		c.w.audit.saw("jobs requeued")
	}
}

func (c *client) read(ctx context.Context, s sent) {
	begun := c.w.audit.call()
	op, err := ask(ctx, c, func(ctx context.Context, p *process) (operation, error) {
		if c.w.plant.followers {
			if op, ok := c.followed(s); ok {
				return op, nil
			}
		}
		if p.lead != nil && !c.w.plant.stale {
			if err := p.lead.Fresh(ctx); err != nil {
				return operation{}, err
			}
		}
		jobs := p.jobs
		if c.w.plant.oldViews != nil {
			jobs = c.w.plant.oldViews(p)
		}
		j, err := jobs.Find(strconv.FormatUint(uint64(s.number), 10))
		if err != nil {
			if e := (*api.Error)(nil); errors.As(err, &e) && e.Code == api.CodeNotFound {
				return operation{absent: true}, nil
			}
			return operation{}, err
		}
		return operation{state: string(j.State), final: j.State.Final(), cancelled: asked(j), uuid: j.Identity()}, nil
	})
	op.kind, op.key, op.number, op.unknown = "read", s.key, s.number, unknown(err)
	if err != nil && !op.unknown {
		c.w.audit.violation("reading job %d: %v", s.number, err)
		return
	}
	c.w.audit.returned(c.id, begun, op)
}

// followed is a planted bug: any controller answers by what it has.
func (c *client) followed(s sent) (operation, bool) {
	e := c.w.members[c.w.draw("follower", c.name).IntN(len(c.w.members))].part()
	if e == nil {
		return operation{}, false
	}
	st := e.store()
	if st == nil {
		return operation{}, false
	}
	value, ok, err := st.Get(state.Record{Kind: state.KindJob, Job: s.number})
	if err != nil || !ok {
		return operation{absent: true}, err == nil
	}
	j, err := state.DecodeJob(value)
	if err != nil {
		return operation{}, false
	}
	return operation{state: string(j.State), final: j.State.Final(), cancelled: asked(j), uuid: j.Identity()}, true
}

// asked says whether a job shows that it was cancelled.
func asked(j *state.Job) bool {
	return j.State == job.Cancelled || j.Ending != nil && slices.Contains([]job.Reason{job.ByUser, job.ByAdmin}, j.Ending.Reason) && j.Ending.Then != job.Queued
}
