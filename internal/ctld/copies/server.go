package copies

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gbatch/internal/ctld/keep"
	"gbatch/internal/ctld/trees"
)

// logsPath is what names of logs stand behind.
const logsPath = "/logs/"

// Server takes copies from the controller that leads, and gives them, while this one
// follows.
type Server struct {
	log  *slog.Logger
	held atomic.Pointer[held]
	ln   *handed
	srv  *http.Server
	done chan struct{} // closed when nothing is served any more
}

// held is what a controller that follows has for the one that leads.
type held struct {
	logs  *keep.Store
	trees *trees.Store
}

// NewServer serves what Take gets, until Close.
func NewServer(log *slog.Logger) *Server {
	s := &Server{log: log, ln: &handed{conns: make(chan net.Conn), closed: make(chan struct{})}, done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT "+logsPath+"{name...}", s.put)
	mux.HandleFunc("GET "+logsPath+"{name...}", s.get)
	s.serveTrees(mux)
	s.srv = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * keptOpen, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go func() { // ends with Close
		defer close(s.done)
		_ = s.srv.Serve(s.ln)
	}()
	return s
}

// Keep says where logs and uploaded directories are, until end is called: then this
// controller leads.
func (s *Server) Keep(logs *keep.Store, trees *trees.Store) (end func()) {
	h := &held{logs, trees}
	s.held.Store(h)
	return func() { s.held.CompareAndSwap(h, nil) } // unless it has followed again since
}

// Take serves a connection of another controller's.
func (s *Server) Take(c net.Conn) { s.ln.hand(plain{c}) }

// plain hides that a connection is of TLS: net/http ends those whose protocol it does
// not know.
type plain struct{ net.Conn }

// Close ends all connections.
func (s *Server) Close() error {
	err := s.srv.Close()
	<-s.done
	return err
}

func (s *Server) put(w http.ResponseWriter, r *http.Request) {
	h := s.held.Load()
	if h == nil {
		leads(w)
		return
	}
	err := h.logs.Receive(r.Context(), r.PathValue("name"), r.Body)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, keep.ErrFull):
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
	default:
		s.log.Error("a log that another controller gave was not taken; it is given again", "error", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	h := s.held.Load()
	if h == nil {
		leads(w)
		return
	}
	f, err := h.logs.Give(r.PathValue("name"))
	switch {
	case err != nil:
		s.log.Error("a log was not given to another controller", "error", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case f == nil:
		http.Error(w, "it is not here", http.StatusNotFound)
	default:
		defer f.Close()
		w.Header().Set("Content-Length", strconv.FormatInt(f.Size(), 10))
		if _, err := io.Copy(w, f); err != nil {
			s.log.Debug("a log was not given whole", "error", err)
		}
	}
}

// leads is the answer of a controller that leads itself.
func leads(w http.ResponseWriter) {
	http.Error(w, "this controller leads, or is about to", http.StatusConflict)
}

// handed is a listener whose connections others have accepted.
type handed struct {
	conns  chan net.Conn
	closed chan struct{}
	end    sync.Once
}

func (l *handed) hand(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.closed:
		c.Close()
	}
}

func (l *handed) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, fmt.Errorf("accept: %w", net.ErrClosed)
	}
}

func (l *handed) Close() error {
	l.end.Do(func() { close(l.closed) })
	return nil
}

func (l *handed) Addr() net.Addr { return &net.TCPAddr{} }
