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
	case j.Attempt == nil && j.State.Final():
		return nil, api.Errorf(api.CodeConflict, "job %s is %s and never ran, so it has no log: %s", j.ID(), j.State, cmp.Or(j.Text, string(j.Reason)))
	case j.Attempt == nil:
		return nil, api.Errorf(api.CodeConflict, "job %s is %s and has not started: there is no log yet", j.ID(), j.State).
			WithHint("`gqueue show` says why it waits")
	case in.Try > j.Attempt.Attempt:
		return nil, api.Errorf(api.CodeConflict, "job %s has not begun its try %d: it had %d", j.ID(), in.Try, j.Attempt.Attempt).
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

func (l logOf) node() string { return l.at.Ranks[l.in.Rank].Alloc.Node }

func (l logOf) key() keep.Key {
	return keep.Key{User: l.job.Owner.User, UUID: l.job.Identity(), Attempt: l.at.Attempt, Rank: uint32(l.in.Rank)}
}

func (l logOf) request() api.StreamRequest {
	rank := l.job.RankID(l.in.Rank)
	rank.Attempt = l.at.Attempt
	return api.StreamRequest{Kind: api.StreamLog, Rank: rank, UUID: l.job.Identity(), User: l.user, Offset: l.in.Offset, Tail: l.in.Tail, SinceMS: l.in.Since, Follow: l.in.Follow}
}

// copyWait is how long a node may take to dial back where there is a copy.
const copyWait = 5 * time.Second

// sendLog sends a log from where it is: the node has it first.
func (s *OfJobs) sendLog(ctx context.Context, w http.ResponseWriter, l logOf) error {
	kept, err := s.Kept.Open(l.key())
	if err != nil {
		return err
	}
	node, wait := l.node(), streamWait
	n := s.Loop.View().Node(node)
	silent := n == nil || n.Suspect || n.Lost
	if kept == nil && silent {
		if kept, err = s.archived(ctx, l); err != nil {
			return err
		}
	}
	if kept != nil {
		wait = copyWait
		if silent {
			return sendCopy(ctx, w, kept, l.in)
		}
	}
	err = s.Streams.copy(ctx, w, asked{node: node, req: l.request(), wait: wait, wake: func() { s.Loop.Nodes.Notify(node) }})
	// Nothing has been sent of what is refused.
	e, refused := errors.AsType[*api.Error](err)
	if refused = refused && (e.Code == api.CodeNotFound || e.Code == api.CodeUnavailable); refused && kept == nil && !silent {
		var failed error
		if kept, failed = s.archived(ctx, l); failed != nil {
			return failed
		}
	}
	switch {
	case kept == nil:
		return err
	case refused:
		return sendCopy(ctx, w, kept, l.in)
	}
	return errors.Join(err, kept.Close())
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
