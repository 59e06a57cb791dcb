package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"gbatch/internal/noded/config"
	"gbatch/internal/pki"
	"gbatch/oci/image/share"
)

const (
	path         = "/v1/layer"     // GET, with image, digest and wait
	ticketHeader = "Gbatch-Ticket" // what the controller lets the caller read
)

// Bounds on those who call.
const (
	maxCallers = 256              // connections, those that have not shown who they are included
	headerIn   = 10 * time.Second // the handshake and the request
	chunkIn    = 30 * time.Second // for a caller to take a chunk
	maxWait    = time.Minute      // for a layer that is about to come
	chunk      = 256 << 10
)

// Source is where layers come from: the node's image store.
type Source interface {
	Shared(ctx, life context.Context, image, digest string) (io.ReadCloser, int64, error)
}

// Server gives layers to other nodes.
type Server struct {
	Config *config.ImagePeers
	TLS    *pki.NodeTLS
	Source Source
	Sent   func(bytes int64) // is told what others were sent
	Log    *slog.Logger

	listener net.Listener
	uploads  chan struct{} // one for each that may be sent at a time
	pace     *rate.Limiter
}

// Listen takes the address of the configuration.
func (s *Server) Listen() error {
	l, err := net.Listen("tcp", s.Config.Listen)
	if err != nil {
		return fmt.Errorf("listen for other nodes: %w (change images.peers.listen in the configuration, or stop what uses it)", err)
	}
	s.listener = &bounded{Listener: l, slots: make(chan struct{}, maxCallers)}
	s.uploads = make(chan struct{}, s.Config.Uploads)
	s.pace = rate.NewLimiter(rate.Limit(s.Config.Rate), chunk)
	s.Log.Info("image layers are given to other nodes", "address", l.Addr())
	return nil
}

// Port is where it listens.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.serve(ctx, w, r) })
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerIn, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	server.SetKeepAlivesEnabled(false) // a caller who waits for nothing holds nothing
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(tls.NewListener(s.listener, s.TLS.Accept())); ctx.Err() == nil {
		s.Log.Error("image layers are not given to other nodes any more", "error", err)
	}
}

// Close gives the address back.
func (s *Server) Close() error {
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}

func (s *Server) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	ticket, err := s.TLS.Layers(r.TLS, r.Header.Get(ticketHeader))
	if err != nil || ticket.Image != q.Get("image") {
		s.Log.Warn("another node was refused an image layer", "from", r.RemoteAddr, "image", q.Get("image"), "error", err)
		http.Error(w, "the ticket is not for this image and this node", http.StatusForbidden)
		return
	}
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
	default:
		http.Error(w, "enough is being sent already", http.StatusServiceUnavailable)
		return
	}
	wait, _ := strconv.ParseInt(q.Get("wait"), 10, 64) // milliseconds; what is no number is none
	patient, done := context.WithTimeout(r.Context(), min(max(0, time.Duration(wait)*time.Millisecond), maxWait))
	body, size, err := s.Source.Shared(patient, r.Context(), ticket.Image, q.Get("digest"))
	done()
	switch {
	case errors.Is(err, share.ErrNever):
		http.Error(w, err.Error(), http.StatusGone)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer body.Close()
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.Header().Set("Content-Type", "application/octet-stream")
	s.send(ctx, w, body)
}

// send sends a layer at the node's pace. An error ends the connection, which tells the caller.
func (s *Server) send(ctx context.Context, w http.ResponseWriter, body io.Reader) {
	control := http.NewResponseController(w)
	buf := make([]byte, chunk)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if s.pace.WaitN(ctx, n) != nil || control.SetWriteDeadline(time.Now().Add(chunkIn)) != nil {
				panic(http.ErrAbortHandler)
			}
			if _, err := w.Write(buf[:n]); err != nil {
				panic(http.ErrAbortHandler)
			}
			if control.Flush() != nil {
				panic(http.ErrAbortHandler)
			}
			s.Sent(int64(n))
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// bounded closes connections above a number at once.
type bounded struct {
	net.Listener
	slots chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.slots <- struct{}{}:
			return &boundedConn{Conn: c, done: func() { <-b.slots }}, nil
		default:
			c.Close()
		}
	}
}
