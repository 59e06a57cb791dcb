package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/oci/logs"
)

// openLog finds a rank's log. It must not wait: the controller gives a node
// only so long to dial back. A follower of a rank that has not started waits
// in the stream's reads.
func (s *Streams) openLog(ctx context.Context, req api.StreamRequest) (*logStream, error) {
	l := &logStream{ctx: ctx, node: s.node, req: req}
	err := l.open()
	if errors.Is(err, errNotYet) && req.Follow {
		return l, nil
	}
	if errors.Is(err, errNotYet) {
		return nil, fmt.Errorf("%s has no output yet: it is being started", rankOf(req.Rank))
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// errNotYet says that a rank is on its way and has no log yet.
var errNotYet = errors.New("not started yet")

// rankOf is a rank as its user knows it: by the job, and of several by which one.
func rankOf(id job.RankID) string {
	if id.Rank > 0 {
		return fmt.Sprintf("rank %d of job %d", id.Rank, id.Job)
	}
	return fmt.Sprintf("job %d", id.Job)
}

func noLog(id job.RankID) error {
	return fmt.Errorf("no log of %s on this node: it never ran here, or its log was kept for its time and is gone", rankOf(id))
}

// logStream is a log as the body of a request, which may have to wait until
// the log is there. It is read by the connection's writer only.
type logStream struct {
	ctx  context.Context // of the stream; a request's body has no other way to get it
	node Node
	req  api.StreamRequest
	body *logs.Body // nil: not there yet
}

// open finds the log of a rank that runs or ran here.
func (s *logStream) open() error {
	id := s.req.Rank
	log, err := s.node.Log(id, s.req.UUID)
	if err != nil {
		if s.node.Coming(id, s.req.UUID) {
			return errNotYet
		}
		return noLog(id)
	}
	want := logs.Selection{Offset: s.req.Offset, Tail: s.req.Tail, Follow: s.req.Follow}
	if s.req.SinceMS > 0 {
		want.Since = time.UnixMilli(s.req.SinceMS)
	}
	if s.body, err = log.Body(s.ctx, want); err != nil {
		return fmt.Errorf("the log of %s cannot be read: %w", id, err)
	}
	return nil
}

// start is where the first byte stands.
func (s *logStream) start() int64 {
	if s.body == nil {
		return 0 // there is nothing yet
	}
	return s.body.Start()
}

func (s *logStream) Read(p []byte) (int, error) {
	for s.body == nil {
		err := s.open()
		if err == nil {
			break
		}
		if !errors.Is(err, errNotYet) {
			return 0, io.EOF // it ended before it had any output
		}
		if err := client.Sleep(s.ctx, awaitEvery); err != nil {
			return 0, err
		}
	}
	return s.body.Read(p)
}

// awaitEvery is how often a follower looks whether its rank has started.
const awaitEvery = 100 * time.Millisecond

func (s *logStream) Close() error {
	if s.body == nil {
		return nil
	}
	return s.body.Close()
}
