package streams

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/keep"
	"gbatch/internal/state"
	"gbatch/oci/logs"
)

type logInput struct {
	ID     string `path:"id"`
	Offset int64  `query:"offset" minimum:"0"`
	Tail   int64  `query:"tail" minimum:"0" doc:"only the last lines"`
	Rank   int    `query:"rank" minimum:"0"`
	Try    uint32 `query:"attempt" doc:"the number of the attempt, from 1; else the last one"`
	Since  int64  `query:"since" minimum:"0" doc:"only what was written since, in milliseconds since 1970"`
	Follow bool   `query:"follow" doc:"go on until the task ends"`
}

// Log is the log of a rank in one of its job's attempts: as its node has it, or
// where that cannot be asked or has it no more, the copy that is kept here.
func (s *OfJobs) Log(ctx context.Context, in *logInput) (func(context.Context, http.ResponseWriter) error, error) {
	j, err := s.Jobs.Find(in.ID)
	if err != nil {
		return nil, err
	}
	if !s.Rights.MayTouch(access.Caller(ctx), j.Owner) {
		return nil, api.Errorf(api.CodeDenied, "job %d belongs to project %s", j.Number, j.Owner.Project)
	}
	switch {
	case j.Tasks != nil:
		return nil, arrayHasNone(j, "log", "glog")
	case j.Try() == 0 && j.State.Final():
		return nil, api.Errorf(api.CodeConflict, "job %s is %s and never ran, so it has no log: %s", j.ID(), j.State, cmp.Or(j.Text, string(j.Reason)))
	case j.Try() == 0:
		return nil, api.Errorf(api.CodeConflict, "job %s is %s and has not started: there is no log yet", j.ID(), j.State).
			WithHint("`gqueue show` says why it waits")
	case in.Try > j.Try():
		return nil, api.Errorf(api.CodeConflict, "job %s has not begun its try %d: it had %d", j.ID(), in.Try, j.Try()).
			WithHint("`gqueue show` lists them")
	}
	at, err := s.Jobs.Attempt(j, in.Try)
	switch {
	case err != nil:
		return nil, err
	case at == nil:
		return nil, api.Errorf(api.CodeNotFound, "nothing is known any more of try %d of job %s", in.Try, j.ID())
	case in.Rank >= len(at.Ranks):
		return nil, api.Errorf(api.CodeNotFound, "job %d has ranks 0 to %d", j.Number, len(at.Ranks)-1)
	}
	return func(ctx context.Context, w http.ResponseWriter) error {
		end, err := s.Streams.Begin(access.Caller(ctx).User)
		if err != nil {
			return err
		}
		defer end()
		return s.sendLog(ctx, w, logOf{access.Caller(ctx).User, j, at, in})
	}, nil
}

// logOf is a part of a log that somebody may read.
type logOf struct {
	user string // who asks
	job  *state.Job
	at   *state.Attempt
	in   *logInput
}

// silent says that the log is empty for ever, so that nobody has it.
func (l logOf) silent() bool {
	e := l.at.Ranks[l.in.Rank].Exit
	return e != nil && e.Silent
}

func (l logOf) node() string { return l.at.Ranks[l.in.Rank].Alloc.Node }

func (l logOf) key() keep.Key {
	return keep.Key{User: l.job.Owner.User, UUID: l.job.Identity(), Attempt: l.at.Attempt, Rank: uint32(l.in.Rank)}
}

func (l logOf) request() api.StreamRequest {
	rank := l.job.RankID(l.in.Rank)
	rank.Attempt = l.at.Attempt
	return api.StreamRequest{Kind: api.StreamLog, Rank: rank, UUID: l.job.Identity(), User: l.user, Offset: l.in.Offset, Tail: l.in.Tail, SinceMS: l.in.Since, Follow: l.in.Follow}
}

// How long a node may take to dial back: where there is a copy here, and before one is
// looked for elsewhere.
const (
	copyWait  = 5 * time.Second
	firstWait = 2 * time.Second
)

// sendLog sends a log from where it is: the node has it first.
func (s *OfJobs) sendLog(ctx context.Context, w http.ResponseWriter, l logOf) error {
	if l.silent() {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set(api.HeaderOffset, "0")
		w.WriteHeader(http.StatusOK)
		return nil
	}
	kept, err := s.Kept.Open(l.key())
	if err != nil {
		return err
	}
	if n := s.Loop.View().Node(l.node()); n == nil || n.Suspect || n.Lost {
		return s.sendOfSilent(ctx, w, l, kept)
	}
	if kept == nil {
		return s.sendOrFind(ctx, w, l)
	}
	if refused, err := s.ask(ctx, w, l, copyWait); refused == "" {
		return errors.Join(err, kept.Close())
	}
	return sendCopy(ctx, w, kept, l.in)
}

// sendOfSilent sends the copy of a log whose node is not likely to answer. Where there
// is none, a node is asked that may be back soon.
func (s *OfJobs) sendOfSilent(ctx context.Context, w http.ResponseWriter, l logOf, kept *keep.Copy) (err error) {
	if kept == nil {
		if kept, err = s.archived(ctx, l); err != nil {
			return err
		}
	}
	switch n := s.Loop.View().Node(l.node()); {
	case kept != nil:
		return sendCopy(ctx, w, kept, l.in)
	case n == nil:
		return api.Errorf(api.CodeNotFound, "node %s is gone, and no copy of the log was kept", l.node())
	case n.Lost:
		return api.Errorf(api.CodeUnavailable, "node %s is lost, and the log is there", l.node()).WithHint("try again when ginfo shows that it is up")
	}
	_, err = s.ask(ctx, w, l, copyWait)
	return err
}

// sendOrFind sends a log of which there is no copy here. A node that does not dial back
// soon may have died just now, or before this controller came to lead: another one may
// have a copy, and is asked before the node is waited for.
func (s *OfJobs) sendOrFind(ctx context.Context, w http.ResponseWriter, l logOf) error {
	refused, err := s.ask(ctx, w, l, firstWait)
	if refused == "" {
		return err
	}
	kept, failed := s.archived(ctx, l)
	switch {
	case failed != nil:
		return failed
	case kept != nil:
		return sendCopy(ctx, w, kept, l.in)
	case refused == api.CodeUnavailable:
		_, err = s.ask(ctx, w, l, streamWait-firstWait)
	}
	return err
}

// ask sends a log as its node has it. Nothing has been sent of what is refused, as the
// node has it no more or does not answer.
func (s *OfJobs) ask(ctx context.Context, w http.ResponseWriter, l logOf, wait time.Duration) (refused string, err error) {
	err = s.Streams.copy(ctx, w, asked{node: l.node(), req: l.request(), wait: wait, wake: func() { s.Loop.Nodes.Notify(l.node()) }})
	if e, ok := errors.AsType[*api.Error](err); ok && (e.Code == api.CodeNotFound || e.Code == api.CodeUnavailable) {
		return e.Code, err
	}
	return "", err
}

// archived is the copy of a log that is in the archive alone, nil if it is not.
func (s *OfJobs) archived(ctx context.Context, l logOf) (*keep.Copy, error) {
	c, err := s.Kept.OpenArchived(ctx, l.key())
	if errors.Is(err, keep.ErrFull) {
		return nil, api.Errorf(api.CodeStorageFull, "the log is in the site's archive, and the controller's disk has no room for it at the moment").
			WithHint("tell your operator")
	}
	return c, err
}

// sendCopy sends what is kept here, to its end so far, and says how far it goes.
func sendCopy(ctx context.Context, w http.ResponseWriter, kept *keep.Copy, in *logInput) error {
	sel := logs.Selection{Offset: in.Offset, Tail: in.Tail, Follow: in.Follow}
	if in.Since > 0 {
		sel.Since = time.UnixMilli(in.Since)
	}
	b, err := kept.Body(ctx, sel)
	if err != nil {
		return err
	}
	defer b.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set(api.HeaderOffset, strconv.FormatInt(b.Start(), 10))
	h.Set(api.HeaderLogCopy, strconv.FormatInt(kept.Until.UnixMilli(), 10))
	if kept.Complete {
		h.Set(api.HeaderLogComplete, "true")
	}
	w.WriteHeader(http.StatusOK)
	_, err = io.Copy(w, b)
	return err
}
