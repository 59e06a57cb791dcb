package streams

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/oci"
	"gbatch/oci/logs"
)

// Node is what streams see of the node. A rank is named by its id and the UUID of
// its job: another job may have had the number.
type Node interface {
	// Container is that of a rank that runs here.
	Container(ctx context.Context, id job.RankID, uuid string) (*oci.Container, error)
	// Coming says that a rank is here and has not ended, or shall be begun.
	Coming(id job.RankID, uuid string) bool
	// Tools is the file that is all tools (api.Tool) by its first argument; empty:
	// this node has none.
	Tools() string
	// Hold makes a rank that runs here stand still until release is called;
	// broken is closed if its end comes before.
	Hold(ctx context.Context, id job.RankID, uuid string) (broken <-chan struct{}, release func(), err error)
	// MaxImage bounds what is saved of a container, in bytes.
	MaxImage() int64
	// Log opens the log of a rank that runs or ran here. The error wraps fs.ErrNotExist where there is none, or none yet.
	Log(id job.RankID, uuid string) (*logs.Log, error)
}

// Controller is where streams lead to.
type Controller interface {
	PostStreamAt(ctx context.Context, id string, offset int64, body io.Reader) error
	FailStream(ctx context.Context, id, why string) error
	DialStream(ctx context.Context, id string) (*client.Stream, error)
}

// Streams are those that are open.
type Streams struct {
	ctl    Controller
	node   Node
	public func(string) string // a text without the node's own paths
	log    *slog.Logger
	wg     sync.WaitGroup // the goroutines of all streams

	mu   sync.Mutex
	open map[string]string // who asked for them, by id
}

// New has no stream open. What clients are told of failures goes through public;
// the log has the whole.
func New(ctl Controller, n Node, public func(string) string, log *slog.Logger) *Streams {
	return &Streams{ctl: ctl, node: n, public: public, log: log, open: map[string]string{}}
}

// say is a text about a failure for the client of a stream.
func (s *Streams) say(req api.StreamRequest, text string) string {
	public := s.public(text)
	if public != text {
		s.log.Info("stream failed", "stream", req.ID, "rank", req.Rank, "error", text)
	}
	return public
}

// maxStreams bounds the streams that are open at once.
const maxStreams = 1024

// room says whether a user may have one more stream: while more are left than the
// user has. So one user has half of them at most, two a third each, and there is
// always one for who has none. It is called with mu held.
func (s *Streams) room(user string) (has int, ok bool) {
	for _, u := range s.open {
		if u == user {
			has++
		}
	}
	return has, has < maxStreams-len(s.open)
}

// Answer answers one request for bytes by dialling back, in the background. Both
// answers of the two syncs in flight may ask for it; it is done once.
func (s *Streams) Answer(ctx context.Context, req api.StreamRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.open[req.ID]; known {
		return
	}
	if has, ok := s.room(req.User); !ok {
		s.wg.Go(func() { // ends with the request
			_ = s.ctl.FailStream(ctx, req.ID, fmt.Sprintf("you have %d streams open on this node, which can have %d for all: close some, or try again later", has, maxStreams))
		})
		return
	}
	s.open[req.ID] = req.User
	// Ends with the stream: when all is sent, when the client or the
	// controller goes, or with ctx. Wait waits for it.
	s.wg.Go(func() {
		s.serve(ctx, req)
		s.mu.Lock()
		delete(s.open, req.ID)
		s.mu.Unlock()
	})
}

// Wait waits for all streams, whose contexts have ended.
func (s *Streams) Wait() { s.wg.Wait() }

func (s *Streams) serve(ctx context.Context, req api.StreamRequest) {
	var err error
	switch req.Kind {
	case api.StreamLog:
		err = s.sendLog(ctx, req)
	case api.StreamExec, api.StreamForward, api.StreamAttach, api.StreamSave:
		err = s.serveTwoWay(ctx, req)
	default:
		err = s.ctl.FailStream(ctx, req.ID, fmt.Sprintf("this node does not know streams of kind %q; it may be older than the controller", req.Kind))
	}
	if err != nil && ctx.Err() == nil && !client.IsCode(err, api.CodeNotFound) {
		s.log.Info("stream broke off", "stream", req.ID, "rank", req.Rank, "error", err)
	}
}

func (s *Streams) sendLog(ctx context.Context, req api.StreamRequest) error {
	body, err := s.openLog(ctx, req)
	if err != nil {
		return s.ctl.FailStream(ctx, req.ID, s.say(req, err.Error()))
	}
	defer body.Close()
	return s.ctl.PostStreamAt(ctx, req.ID, body.start(), body)
}
