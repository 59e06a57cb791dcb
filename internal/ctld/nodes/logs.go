package nodes

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/keep"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/places"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Logs takes what ranks write, to be kept. It asks the published view and the
// store whose they are, and never the loop.
type Logs struct {
	conf func() *site.Config
	jobs *jobstore.Reader
	keep *keep.Store
	gate *places.Gate
	log  *slog.Logger

	mu     sync.Mutex
	known  map[from]whose
	failed map[from]bool // whose logs cannot be taken, which was said
}

// whose is whose log a rank's is.
type whose struct {
	key     keep.Key
	project string
}

// from is a rank of a job as its node says it.
type from struct {
	node, uuid string
	rank       job.RankID
}

// logsAtOnce bounds the requests that are unpacked and written at once, so that
// logs leave processors and disk to everything else; others wait by turns of
// nodes. maxKnown bounds the ranks of which it is remembered whose they are.
const (
	logsAtOnce  = 2
	logsWaiting = 10_000
	maxKnown    = 20_000
)

// NewLogs takes logs into a store.
func NewLogs(conf func() *site.Config, jobs *jobstore.Reader, k *keep.Store, log *slog.Logger) *Logs {
	return &Logs{conf: conf, jobs: jobs, keep: k, gate: places.NewGate(logsAtOnce, logsWaiting), log: log, known: map[from]whose{}, failed: map[from]bool{}}
}

type logsInput struct {
	Name string `path:"name"`
	Body api.LogPieces
}

// Take takes in pieces of logs of ranks that the node was given.
func (s *Logs) Take(ctx context.Context, in *logsInput) (*api.LogsTaken, error) {
	if id := access.Caller(ctx); !id.MayNode(in.Name) {
		return nil, api.Errorf(api.CodeDenied, "%s speaks for itself, not for node %s", id.User, in.Name).WithHint("see name in the node's gnoded.yaml")
	}
	if n := len(in.Body.Pieces); n > api.MaxLogPieces {
		return nil, api.Errorf(api.CodeBadRequest, "%d pieces of logs are more than %d", n, api.MaxLogPieces)
	}
	leave, ok := s.gate.Enter(ctx, in.Name)
	if !ok {
		return nil, loop.ErrBusy
	}
	defer leave()
	full := s.keep.Room() != nil
	out := &api.LogsTaken{Pieces: make([]api.LogTaken, 0, len(in.Body.Pieces))}
	batch := s.keep.Batch()
	for i := range in.Body.Pieces {
		if full {
			out.Pieces = append(out.Pieces, api.LogTaken{Later: true})
			continue
		}
		out.Pieces = append(out.Pieces, s.take(batch, in.Name, &in.Body.Pieces[i]))
	}
	err := batch.End()
	if err != nil { // some may be there, and are done when they come again
		for i := range out.Pieces {
			if out.Pieces[i].Done {
				out.Pieces[i] = api.LogTaken{Later: true}
			}
		}
	}
	if s.news(from{node: in.Name}, err != nil) {
		s.log.Warn("logs not taken; their node sends them again", "node", in.Name, "error", err)
	}
	return out, nil
}

func (s *Logs) take(batch *keep.Batch, node string, p *api.LogPiece) api.LogTaken {
	of, err := s.whose(from{node, p.UUID, p.Rank})
	if refusal, ok := errors.AsType[*api.Error](err); ok {
		return api.LogTaken{Refused: refusal.Message}
	}
	var data []byte
	if err == nil {
		if data, err = unpack(p); err != nil {
			return api.LogTaken{Refused: err.Error()}
		}
	}
	var out api.LogTaken
	if err == nil {
		out.Offset, out.Done, err = batch.Append(of.key, keep.Piece{Offset: p.Offset, Data: data, Lost: p.Lost, End: p.End, Archive: s.conf().LogPlace(of.project) == site.LogsS3})
	}
	if out.Done {
		s.forget(from{node, p.UUID, p.Rank})
	}
	if out.Later = err != nil; s.news(from{node, p.UUID, p.Rank}, err != nil) {
		s.log.Warn("log not taken; its node sends it again", "node", node, "rank", p.Rank, "error", err)
	}
	return out
}

// news notes whether the log of a rank cannot be taken, and says whether that is new.
func (s *Logs) news(of from, failed bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !failed {
		delete(s.failed, of)
		return false
	}
	if s.failed[of] {
		return false
	}
	if len(s.failed) >= maxKnown {
		clear(s.failed)
	}
	s.failed[of] = true
	return true
}

// maxOffset bounds where in a log a piece may stand: 4 PiB.
const maxOffset = 1 << 52

// unpackers are used again: each has 40 kB of tables, and most pieces are a few lines.
var unpackers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// forget forgets whose a log is of which no more will come.
func (s *Logs) forget(f from) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, f)
}

// unpack is the output of a piece. What is wrong with it is the node's fault.
func unpack(p *api.LogPiece) ([]byte, error) {
	if p.Offset < 0 || p.Offset > maxOffset || p.Lost < 0 || p.Lost > p.Offset {
		return nil, fmt.Errorf("a piece at %d, after %d bytes that are lost, has no place in a log", p.Offset, p.Lost)
	}
	if len(p.Data) == 0 {
		return nil, nil
	}
	r := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(p.Data), nil); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, api.MaxLogPiece+1))
	if err != nil {
		return nil, fmt.Errorf("a piece cannot be unpacked: %w", err)
	}
	if len(data) > api.MaxLogPiece {
		return nil, fmt.Errorf("a piece has more than %d bytes", api.MaxLogPiece)
	}
	return data, nil
}

// whose finds out whose log a rank's is, and that the node was given the rank: an
// *api.Error says that it was not.
func (s *Logs) whose(f from) (whose, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.known[f]; ok {
		return k, nil
	}
	j, at, err := s.attempt(f.rank)
	if err != nil {
		return whose{}, err
	}
	if j == nil || at == nil || j.Identity() != f.uuid || int(f.rank.Task) != j.Index || uint64(f.rank.Rank) >= uint64(len(at.Ranks)) || at.Ranks[f.rank.Rank].Alloc.Node != f.node {
		return whose{}, api.Errorf(api.CodeDenied, "node %s was not given rank %s", f.node, f.rank)
	}
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	k := whose{keep.Key{User: j.Owner.User, UUID: j.Identity(), Attempt: f.rank.Attempt, Rank: f.rank.Rank}, j.Owner.Project}
	s.known[f] = k
	return k, nil
}

func (s *Logs) attempt(rank job.RankID) (*state.Job, *state.Attempt, error) {
	j := s.jobs.View().Job(rank.Job)
	var err error
	if j == nil {
		if j, err = s.jobs.Past(rank.Job); err != nil || j == nil {
			return nil, nil, err
		}
	}
	if rank.Attempt == 0 { // which would be the last one
		return nil, nil, nil
	}
	at, err := s.jobs.Attempt(j, rank.Attempt)
	return j, at, err
}
