package noded

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"gbatch/internal/api"
)

// asked is a stream that the node is asked for, each second until it answers:
// the first time may go to a daemon that was just killed.
type asked struct {
	api.StreamRequest
	at time.Time // of the last time
}

// ask takes the streams that it is time to ask for. Called with mu held.
func (f *fakeController) ask() (due []api.StreamRequest) {
	for _, q := range f.streams {
		if time.Since(q.at) > time.Second {
			q.at = time.Now()
			due = append(due, q.StreamRequest)
		}
	}
	return due
}

type streamBody struct {
	mu   sync.Mutex
	text strings.Builder
	done bool

	offset, fault string
	begun         bool
	gone          chan struct{} // closed: the client leaves; nil: it reads

	conn chan *websocket.Conn // the node's, of a two-way stream
}

func (f *fakeController) log(req api.StreamRequest) *streamBody {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &streamBody{conn: make(chan *websocket.Conn, 1)}
	f.bodies[req.ID] = b
	f.streams = append(f.streams, &asked{StreamRequest: req})
	f.touch()
	return b
}

func (b *streamBody) now() (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String(), b.done
}

// claim finds the stream that the node answers, once.
func (f *fakeController) claim(w http.ResponseWriter, r *http.Request) *streamBody {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := r.PathValue("id")
	i := slices.IndexFunc(f.streams, func(q *asked) bool { return q.ID == id })
	if i < 0 {
		w.WriteHeader(http.StatusNotFound)
		return nil
	}
	f.streams = slices.Delete(f.streams, i, i+1)
	return f.bodies[id]
}

func (f *fakeController) stream(w http.ResponseWriter, r *http.Request) {
	b := f.claim(w, r)
	if b == nil {
		return
	}
	b.mu.Lock()
	b.offset, b.fault, b.begun = r.Header.Get(api.HeaderOffset), r.Header.Get(api.HeaderStreamError), true
	gone := b.gone
	b.mu.Unlock()
	if gone != nil {
		<-gone
		panic(http.ErrAbortHandler) // as a controller whose client went
	}
	buf := make([]byte, 4096)
	for {
		n, err := r.Body.Read(buf)
		b.mu.Lock()
		b.text.Write(buf[:n])
		b.done = err == io.EOF
		b.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (f *fakeController) join(w http.ResponseWriter, r *http.Request) {
	b := f.claim(w, r)
	if b == nil {
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		f.t.Error(err)
		return
	}
	conn.SetReadLimit(api.MaxFrame)
	b.conn <- conn
}

// block makes the stream's client stop reading; leave makes it go.
func (b *streamBody) block() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = make(chan struct{})
}

func (b *streamBody) leave() { close(b.gone) }

func (b *streamBody) opened() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.begun
}
