package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"gbatch/internal/api"
	"gbatch/oci"
	"gbatch/oci/changes"
)

// saveStall is how long a client may read nothing: the job stands still meanwhile.
const saveStall = 30 * time.Second

// serveSave sends what the rank's container has written over its image, as a layer.
// The job stands still until that is read, or the client goes. An error has not
// been told yet.
func (s *Streams) serveSave(ctx context.Context, se *session, req api.StreamRequest, container *oci.Container) error {
	what, err := oci.Changes(container.Home())
	if err != nil {
		return err
	}
	se.run(ctx, peer{in: io.Discard, stop: func() {}, last: func(live context.Context) api.Frame {
		if err := s.save(live, se, req, what); err != nil {
			return api.FailureFrame(125, s.say(req, err.Error()))
		}
		return api.CountFrame(api.FrameExit, 0)
	}})
	se.st.Close()
	se.copies.Wait()
	return nil
}

func (s *Streams) save(ctx context.Context, se *session, req api.StreamRequest, what changes.Container) error {
	broken, release, err := s.node.Hold(ctx, req.Rank, req.UUID)
	if err != nil {
		return err
	}
	defer release()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	se.copies.Go(func() { // ends with the work
		select {
		case <-broken:
			stop(errors.New("the job ends; nothing was saved"))
		case <-ctx.Done():
		}
	})
	if err := se.st.Send(ctx, api.JSONFrame(api.FrameStart, api.SaveBegun{Platform: "linux/" + runtime.GOARCH})); err != nil {
		return err
	}
	limit := s.node.MaxImage()
	err = what.Write(ctx, frames{ctx, se}, limit)
	if errors.Is(err, changes.ErrTooLarge) {
		err = fmt.Errorf("%w: an image of this node may have %d MiB; remove what is not needed, or copy it to storage", err, limit>>20)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return err
}

// frames sends what is written as output.
type frames struct {
	ctx context.Context
	se  *session
}

func (f frames) Write(p []byte) (int, error) {
	for sent := 0; sent < len(p); {
		n := min(len(p)-sent, api.FrameChunk)
		ctx, cancel := context.WithTimeout(f.ctx, saveStall)
		err := f.se.st.Send(ctx, api.Frame{Type: api.FrameOutput, Data: p[sent : sent+n]})
		cancel()
		if err != nil {
			return sent, err
		}
		sent += n
	}
	return len(p), nil
}
