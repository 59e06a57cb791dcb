package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/oci"
	"gbatch/oci/logs"
)

// openLog finds a rank's log. It must not wait: the controller gives a node
// only so long to dial back. A follower of a rank that has not started waits
// in the stream's reads.
func (s *Streams) openLog(ctx context.Context, req api.StreamRequest) (*logStream, error) {
	l := &logStream{ctx: ctx, node: s.node, req: req, off: req.Offset}
	err := l.open()
	if errors.Is(err, errNotYet) && req.Follow {
		return l, nil
	}
	if errors.Is(err, errNotYet) {
		return nil, fmt.Errorf("%s has no output yet: it is being started", req.Rank)
	}
	if err == nil {
		err = l.begin()
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// errNotYet says that a rank is on its way and has no log yet.
var errNotYet = errors.New("not started yet")

func noLog(id job.RankID) error {
	return fmt.Errorf("no log of %s on this node: it never ran here, or its log was kept for its time and is gone", id)
}

// logStream is a log as the body of a request. It is read by the connection's
// writer only, so a reader that is slow holds up nothing but itself.
type logStream struct {
	ctx   context.Context // of the stream; a request's body has no other way to get it
	node  Node
	req   api.StreamRequest
	log   *logs.Log // nil: not there yet
	start int64     // offset that the reader shall count from
	off   int64     // of the next byte
	rest  []byte    // read and not sent yet
}

// open finds the log of a rank that runs or ran here.
func (s *logStream) open() error {
	id := s.req.Rank
	box := s.node.Box(id, s.req.UUID)
	if _, err := os.Stat(box); err != nil {
		if s.node.Coming(id, s.req.UUID) {
			return errNotYet
		}
		return noLog(id)
	}
	log, err := oci.OpenLog(box)
	if err != nil {
		return errNotYet // the directory is being made
	}
	s.log = log
	if s.req.SinceMS > 0 {
		if s.off, err = log.Since(time.UnixMilli(s.req.SinceMS)); err != nil {
			return fmt.Errorf("the log of %s cannot be read: %w", id, err)
		}
	}
	if s.req.Tail > 0 {
		if s.off, err = lastLines(log, s.req.Tail); err != nil {
			return fmt.Errorf("the log of %s cannot be read: %w", id, err)
		}
	}
	return nil
}

// begin reads what is there, to tell where the first byte stands. The notice
// of bytes that are gone is not counted.
func (s *logStream) begin() error {
	s.start = s.off
	c, err := s.log.ReadAt(s.off)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the log of %s cannot be read: %w", s.req.Rank, err)
	}
	s.take(c)
	s.start = c.Offset - int64(len(c.Notice()))
	return nil
}

func (s *logStream) take(c logs.Chunk) {
	s.off = c.Offset + int64(len(c.Data))
	s.rest = append([]byte(c.Notice()), c.Data...)
}

func (s *logStream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		c, err := s.next()
		if err != nil {
			return 0, err
		}
		s.take(c)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *logStream) next() (logs.Chunk, error) {
	for s.log == nil {
		err := s.open()
		if err == nil {
			break
		}
		if !errors.Is(err, errNotYet) {
			return logs.Chunk{}, io.EOF // it ended before it had any output
		}
		if err := client.Sleep(s.ctx, awaitEvery); err != nil {
			return logs.Chunk{}, err
		}
	}
	if s.req.Follow {
		c, err := s.log.Next(s.ctx, s.off)
		if err == nil && c.Dropped > 0 {
			// The follower counts what it gets to know where it is. It shall ask
			// again, and hear anew where the first byte stands.
			return c, io.EOF
		}
		return c, err
	}
	return s.log.ReadAt(s.off)
}

// awaitEvery is how often a follower looks whether its rank has started.
const awaitEvery = 100 * time.Millisecond

func (s *logStream) Close() error {
	if s.log == nil {
		return nil
	}
	return s.log.Close()
}

// tailBlock is how much is read at a time to find the last lines.
const tailBlock = 64 << 10

// lastLines returns the offset at which the last n lines begin. A last line
// without its end counts as one.
func lastLines(log *logs.Log, n int64) (int64, error) {
	end, err := log.End()
	if err != nil {
		return 0, err
	}
	seen := int64(-1) // the newline that ends the last line begins none
	for at := end; at > 0; {
		from := max(0, at-tailBlock)
		block, err := readBlock(log, from, at)
		if err != nil {
			return 0, err
		}
		if at == end && len(block) > 0 && block[len(block)-1] != '\n' {
			seen++
		}
		for i := len(block) - 1; i >= 0; i-- {
			if block[i] != '\n' {
				continue
			}
			if seen++; seen == n {
				return at - int64(len(block)-i) + 1, nil
			}
		}
		if int64(len(block)) < at-from {
			return at - int64(len(block)), nil // what was before is not kept
		}
		at = from
	}
	return 0, nil
}

// readBlock reads the kept bytes that end at offset to and begin at from or
// later.
func readBlock(log *logs.Log, from, to int64) ([]byte, error) {
	var block []byte
	for from < to {
		c, err := log.ReadAt(from)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if c.Dropped > 0 {
			block = block[:0]
		}
		from = c.Offset + int64(len(c.Data))
		block = append(block, c.Data...)
		if from > to {
			block = block[:max(0, int64(len(block))-(from-to))]
		}
	}
	return block, nil
}
