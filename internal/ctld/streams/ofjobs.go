package streams

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/coder/websocket"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/keep"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// OfJobs opens streams to jobs that run, for those who may see their jobs.
type OfJobs struct {
	Loop    *loop.Loop
	Jobs    *jobstore.Reader
	Rights  *access.Rights
	Streams *Hub
	Kept    *keep.Store // logs
}

// Open opens a two-way stream of a kind to a running rank. Whoever may cancel a
// job may do this, for it is to act as the job.
func (s *OfJobs) Open(kind string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error { return s.jobStream(w, r, kind) }
}

func (s *OfJobs) jobStream(w http.ResponseWriter, r *http.Request, kind string) error {
	node, req, err := s.StreamTo(r, kind)
	if err != nil {
		return err
	}
	end, err := s.Streams.Begin(access.Caller(r.Context()).User)
	if err != nil {
		return err
	}
	defer end()
	st := &stream{ctx: r.Context(), begun: make(chan struct{}), done: make(chan error, 1)}
	defer s.Streams.leave(st)
	defer s.Streams.drop(req.ID)
	if err := s.Streams.await(st, asked{node: node, req: req, wait: streamWait, wake: func() { s.Loop.Nodes.Notify(node) }}); err != nil {
		return err
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return api.Errorf(api.CodeBadRequest, "rank %d of job %d can be entered now, by a WebSocket; this request asked for none", req.Rank.Rank, req.Rank.Job)
	}
	if err := s.Loop.Commit(r.Context(), fmt.Sprintf("job %d", req.Rank.Job), fmt.Sprintf("entered by %s, rank %d", kind, req.Rank.Rank)); err != nil {
		return err
	}
	client, err := websocket.Accept(w, r, nil)
	if err != nil {
		return nil // it has answered
	}
	client.SetReadLimit(api.MaxFrame)
	splice(r.Context(), client, st.node, node)
	return nil
}

// StreamTo finds the rank that a client asks for, if they may have it.
func (s *OfJobs) StreamTo(r *http.Request, kind string) (home string, req api.StreamRequest, err error) {
	j, err := s.Jobs.Find(r.PathValue("id"))
	if err != nil {
		return "", req, err
	}
	id := access.Caller(r.Context())
	if err := s.mayEnter(id, j); err != nil {
		return "", req, err
	}
	rank := 0
	if text := r.URL.Query().Get("rank"); text != "" {
		if rank, err = strconv.Atoi(text); err != nil || rank < 0 {
			return "", req, api.Errorf(api.CodeBadRequest, "rank %q is no number from 0", text)
		}
	}
	return s.Enterable(id, j, rank, kind)
}

// mayEnter refuses those who may not act as a job.
func (s *OfJobs) mayEnter(id access.Identity, j *state.Job) error {
	if s.Rights.MayTouch(id, j.Owner) {
		return nil
	}
	return api.Errorf(api.CodeDenied, "job %d belongs to %s of project %s", j.Number, j.Owner.User, j.Owner.Project).
		WithHint("only its owner, the project's named members and operators may enter a job")
}

// Enterable is a rank of a job as its node is asked for it, if somebody may enter it now.
func (s *OfJobs) Enterable(id access.Identity, j *state.Job, rank int, kind string) (home string, req api.StreamRequest, err error) {
	if err := s.mayEnter(id, j); err != nil {
		return "", req, err
	}
	switch {
	case j.Tasks != nil:
		return "", req, arrayHasNone(j, "container", "gexec")
	case !j.State.Active() || j.Attempt == nil:
		return "", req, api.Errorf(api.CodeConflict, "job %s is %s: it can be entered only while it runs", j.ID(), j.State)
	case rank >= len(j.Attempt.Ranks):
		return "", req, api.Errorf(api.CodeNotFound, "job %d has ranks 0 to %d", j.Number, len(j.Attempt.Ranks)-1)
	case j.State == job.Running && j.Attempt.Ranks[rank].Phase != node.PhaseRunning && j.Attempt.Ranks[rank].Phase != node.PhaseEnded:
		// Its daemon was restarted, and says in a moment that it has the rank.
		return "", req, api.Errorf(api.CodeUnavailable, "rank %d of job %d is being taken over by %s, which was restarted", rank, j.Number, j.Attempt.Ranks[rank].Alloc.Node).WithHint("try again")
	case j.Attempt.Ranks[rank].Phase != node.PhaseRunning:
		return "", req, api.Errorf(api.CodeConflict, "rank %d of job %d is %s: it can be entered only while it runs", rank, j.Number, j.Attempt.Ranks[rank].Phase).
			WithHint("`gqueue show` says how far it is")
	}
	req = api.StreamRequest{ID: rand.Text(), Kind: kind, Rank: j.RankID(rank), UUID: j.Identity(), User: id.User}
	return j.Attempt.Ranks[rank].Alloc.Node, req, nil
}

// arrayHasNone refuses what only a single task has.
func arrayHasNone(p *state.Job, what, command string) error {
	return api.Errorf(api.CodeConflict, "job %d is an array: each of its tasks has a %s of its own", p.Number, what).
		WithHint(fmt.Sprintf("name a task, as %s %d_%d", command, p.Number, p.Tasks.All[0].First))
}
