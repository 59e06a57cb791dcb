package noded

import (
	"bytes"
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
)

// maxStreams bounds the streams that are open at once.
const maxStreams = 256

// stream answers one request for bytes by dialling back. Both answers of the
// two syncs in flight may ask for it; it is done once.
func (a *Agent) stream(ctx context.Context, req api.StreamRequest) {
	a.streamMu.Lock()
	defer a.streamMu.Unlock()
	if a.streams[req.ID] {
		return
	}
	if len(a.streams) >= maxStreams {
		a.log.Warn("stream refused: too many are open", "stream", req.ID)
		return
	}
	a.streams[req.ID] = true
	// Ends with the stream: when all is sent, when the client or the
	// controller goes, or with the daemon. Run waits for it.
	a.wg.Go(func() {
		a.serveStream(ctx, req)
		a.streamMu.Lock()
		delete(a.streams, req.ID)
		a.streamMu.Unlock()
	})
}

func (a *Agent) serveStream(ctx context.Context, req api.StreamRequest) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := a.openStream(ctx, req)
	if err != nil {
		body = io.NopCloser(bytes.NewReader([]byte("gnoded: " + err.Error() + "\n")))
	}
	defer body.Close()
	err = a.ctl.PostStream(ctx, req.ID, body)
	if err != nil && ctx.Err() == nil && !client.IsCode(err, api.CodeNotFound) {
		a.log.Info("stream broke off", "stream", req.ID, "rank", req.Rank, "error", err)
	}
}

func (a *Agent) openStream(ctx context.Context, req api.StreamRequest) (io.ReadCloser, error) {
	if req.Kind != "log" {
		return nil, fmt.Errorf("this node does not know streams of kind %q; it may be older than the controller", req.Kind)
	}
	dir, err := a.awaitLog(ctx, req)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return io.NopCloser(bytes.NewReader(nil)), nil // it ended before it had any output
	}
	log, err := oci.OpenLog(dir)
	if err != nil {
		return nil, fmt.Errorf("the log of %s cannot be read: %w", req.Rank, err)
	}
	off := req.Offset
	if req.Tail > 0 {
		if off, err = lastLines(log, req.Tail); err != nil {
			log.Close()
			return nil, fmt.Errorf("the log of %s cannot be read: %w", req.Rank, err)
		}
	}
	return &logStream{ctx: ctx, log: log, off: off, follow: req.Follow}, nil
}

// awaitLog returns the container's directory of a rank. A follower of a rank
// that has not started waits for it; empty: there will be no output.
func (a *Agent) awaitLog(ctx context.Context, req api.StreamRequest) (string, error) {
	dir := a.rankDir(req.Rank)
	box := dir + "/box"
	for {
		if _, err := os.Stat(box); err == nil {
			return box, nil
		}
		a.mu.Lock()
		r := a.ranks[req.Rank]
		waiting := r != nil && r.status.Exit == nil
		a.mu.Unlock()
		switch {
		case r == nil:
			return "", noLog(req.Rank)
		case !waiting || !req.Follow:
			return "", nil
		}
		if err := client.Sleep(ctx, awaitEvery); err != nil {
			return "", err
		}
	}
}

// awaitEvery is how often a follower looks whether its rank has started.
const awaitEvery = 200 * time.Millisecond

func noLog(id job.RankID) error {
	return fmt.Errorf("no log of %s on this node: it never ran here, or its log was kept for its time and is gone", id)
}

// logStream is a log as the body of a request. It is read by the connection's
// writer only, so a reader that is slow holds up nothing but itself.
type logStream struct {
	ctx    context.Context
	log    *oci.Log
	off    int64
	follow bool
	rest   []byte
}

func (s *logStream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		c, err := s.next()
		if err != nil {
			return 0, err
		}
		s.off = c.Offset + int64(len(c.Data))
		s.rest = append([]byte(c.Notice()), c.Data...)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *logStream) next() (oci.Chunk, error) {
	if s.follow {
		return s.log.Next(s.ctx, s.off)
	}
	return s.log.ReadAt(s.off)
}

func (s *logStream) Close() error { return s.log.Close() }

// tailBlock is how much is read at a time to find the last lines.
const tailBlock = 64 << 10

// lastLines returns the offset at which the last n lines begin. A last line
// without its end counts as one.
func lastLines(log *oci.Log, n int64) (int64, error) {
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
func readBlock(log *oci.Log, from, to int64) ([]byte, error) {
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
