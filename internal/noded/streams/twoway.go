package streams

import (
	"context"
	"errors"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/oci/failure"
)

// startWait is how long a client may take to say what it wants.
const startWait = 30 * time.Second

// serveTwoWay answers a request for a stream that goes both ways.
func (s *Streams) serveTwoWay(ctx context.Context, req api.StreamRequest) error {
	container, err := s.node.Container(ctx, req.Rank, req.UUID)
	if err != nil {
		return s.ctl.FailStream(ctx, req.ID, s.say(req, err.Error()))
	}
	st, err := s.ctl.DialStream(ctx, req.ID)
	if err != nil {
		return err
	}
	defer st.Close()
	begin, cancel := context.WithTimeout(ctx, startWait)
	f, err := st.Receive(begin)
	cancel()
	if err != nil {
		return nil // it went without a word, as it may
	}
	switch {
	case f.Type != api.FrameStart:
		err = errors.New("the client began with something else than what to do; it may be newer than this node")
	case req.Kind == api.StreamForward:
		err = s.serveForward(ctx, s.session(st, req), container, f.Data)
	case req.Kind == api.StreamSave:
		err = s.serveSave(ctx, s.session(st, req), req, container)
	case req.Kind == api.StreamAttach:
		err = serveAttach(ctx, s.session(st, req), container, f.Data)
	default:
		err = s.serveExec(ctx, s.session(st, req), container, f.Data)
	}
	if err != nil {
		s.refuse(ctx, st, req, err)
	}
	return nil
}

// refuse tells the client why its stream ends, and waits for it to go.
func (s *Streams) refuse(ctx context.Context, st *client.Stream, req api.StreamRequest, err error) {
	out := api.StreamFailure{Message: err.Error(), Code: 125}
	var f *failure.Failure
	if errors.As(err, &f) {
		out.Message, out.Code = f.Message, f.Code()
	}
	out.Message = s.say(req, out.Message)
	err = st.Send(ctx, api.JSONFrame(api.FrameError, out))
	for err == nil { // to close before it has read would throw that away
		_, err = st.Receive(ctx)
	}
}
