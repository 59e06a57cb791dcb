package ctld

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"gbatch/internal/api"
	"gbatch/internal/ctld/conns"
	"gbatch/internal/ctld/site"
	"gbatch/internal/pki"
)

// front is where a controller is reached before it can answer, and then. One of several follows before: what came meanwhile, and has or is about
// to have a connection, keeps that: all nodes come when who led has died, and would else have to come twice. So does what comes
// while it leads: one that has no processor for a moment leads no more, and may be the next that does.
//
// One that is alone reads its records before, a second for some 50,000 jobs. Who is refused a connection meanwhile tries again and again, and all
// nodes would make theirs only then.
type front struct {
	lns    []net.Listener
	table  *conns.Table
	srv    *http.Server
	before http.Handler // of who asks while this controller does not answer

	leads atomic.Pointer[leading]
	began chan struct{} // closed when it first answers
	rules atomic.Pointer[func() *site.Config]
	down  context.Context // done when one of the listeners has ended
	end   func() error    // ends all; what went wrong is said once
}

// reach is how a front is reached.
type reach struct {
	listen    func() ([]net.Listener, error) // the socket and the network
	conf      func() *site.Config
	authority *pki.Authority
}

// leading is who answers while this controller leads.
type leading struct {
	ctx     context.Context // requests end with it
	handler http.Handler

	mu   sync.Mutex
	open map[*http.ResponseController]struct{} // of requests that are answered
	over chan struct{}                         // closed when none is, and none comes any more; nil: some come
}

// openFront listens, and has others answer who asks until this controller does; nil: they wait for it.
func openFront(by reach, before http.Handler, log *slog.Logger) (*front, error) {
	f := &front{before: before, began: make(chan struct{})}
	if before == nil {
		f.before = http.HandlerFunc(f.wait)
	}
	f.rules.Store(&by.conf)
	var err error
	if f.table, err = newTable(f.bounds, log); err != nil {
		return nil, err
	}
	lns, err := by.listen()
	if err != nil {
		return nil, err
	}
	f.srv = newHTTP(f, log)
	g, down := errgroup.WithContext(context.Background())
	f.down = down
	for i, ln := range lns {
		if ln = f.table.Listen(ln); i > 0 {
			ln = conns.TLS(ln, by.authority.ServerTLS())
		}
		f.lns = append(f.lns, ln)
		g.Go(func() error { // ends with the server
			if err := f.srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve %s: %w", ln.Addr(), err)
			}
			return nil
		})
	}
	var once sync.Once
	f.end = func() (err error) {
		once.Do(func() { err = errors.Join(f.srv.Close(), g.Wait()) })
		return err
	}
	return f, nil
}

// bounds are those of a controller that answers. Before that it asks nobody who they are, so that nodes are no more to it than others.
func (f *front) bounds() conns.Bounds {
	b := boundsOf((*f.rules.Load())())
	if f.leads.Load() == nil {
		b.PerAddress, b.Unasked = 0, true
	}
	return b
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := f.leads.Load()
	c := http.NewResponseController(w)
	if l == nil || !l.begin(c) {
		f.before.ServeHTTP(w, r)
		return
	}
	defer l.end(c)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	l.handler.ServeHTTP(w, r.WithContext(ctx))
}

// patience is for how long a request waits for a controller that starts.
const patience = 5 * time.Second

// wait has a request wait until this controller answers.
func (f *front) wait(w http.ResponseWriter, r *http.Request) {
	select {
	case <-f.began:
		f.ServeHTTP(w, r) // it answers from then on until it ends
	case <-r.Context().Done():
	case <-time.After(patience):
		refuse(w, api.Errorf(api.CodeUnavailable, "the controller starts: it reads its records").WithHint("try again in a few seconds"))
	}
}

// refuse is an answer for which nobody looks at the request.
func refuse(w http.ResponseWriter, e *api.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(e) // an error: who asked has gone
}

// lead has requests answered, which end with ctx.
func (f *front) lead(ctx context.Context, h http.Handler) *leading {
	l := &leading{ctx: ctx, handler: h, open: map[*http.ResponseController]struct{}{}}
	f.leads.Store(l)
	return l
}

// serve has one of several controllers answer that leads, until ctx is done. Who asks after that is referred, and what is still answered ends.
func (f *front) serve(ctx context.Context, h http.Handler) {
	l := f.lead(ctx, h)
	select {
	case <-ctx.Done():
	case <-f.down.Done():
	}
	f.leads.Store(nil)
	l.close()
}

// answer has the only controller answer until ctx is done or a listener has ended, and ends.
func (f *front) answer(ctx context.Context, h http.Handler) error {
	f.lead(ctx, h)
	close(f.began)
	select {
	case <-ctx.Done():
	case <-f.down.Done():
	}
	shut(ctx, f.srv)
	return f.end()
}

// begin counts a request. False: none is answered any more.
func (l *leading) begin(c *http.ResponseController) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return false
	}
	l.open[c] = struct{}{}
	return true
}

func (l *leading) end(c *http.ResponseController) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.open, c); l.over != nil && len(l.open) == 0 {
		close(l.over)
	}
}

// What is still answered when a controller leads no more has lastWord to end, as it is told to. Who asked and does not take
// the answer is cut off then; what does not end for all that is not waited for longer than brokenOff.
const (
	lastWord  = 200 * time.Millisecond
	brokenOff = 2 * time.Second
)

// close returns when nothing is answered any more.
func (l *leading) close() {
	l.mu.Lock()
	l.over = make(chan struct{})
	if len(l.open) == 0 {
		close(l.over)
	}
	l.mu.Unlock()
	select {
	case <-l.over:
		return
	case <-time.After(lastWord):
	}
	l.mu.Lock()
	for c := range l.open { // they are still the handlers'
		_ = c.SetReadDeadline(time.Now()) // one that cannot be cut off so ends by itself, or is not waited for
		_ = c.SetWriteDeadline(time.Now())
	}
	l.mu.Unlock()
	select {
	case <-l.over:
	case <-time.After(brokenOff):
	}
}

// newHTTP is what serves a controller's addresses.
func newHTTP(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ConnContext: conns.Context, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100, MaxReceiveBufferPerConnection: 256 << 10, MaxReceiveBufferPerStream: 128 << 10, // of one browser
			WriteByteTimeout: time.Minute,
		},
	}
}

// shut ends a server: what it still answers has a little time, after ctx is done.
func shut(ctx context.Context, srv *http.Server) {
	quick, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer done()
	if err := srv.Shutdown(quick); err != nil {
		_ = srv.Close() // its listeners say what goes wrong
	}
}

// fewConnections is for how many the controller says that there will not be enough.
const fewConnections = 1000

// newTable makes the table of connections, by what the limit of open files leaves.
func newTable(bounds func() conns.Bounds, log *slog.Logger) (*conns.Table, error) {
	most, err := conns.Most()
	if err != nil {
		return nil, err
	}
	if most < fewConnections {
		log.Warn("few files may be open: raise the limit (LimitNOFILE of the unit)", "connections", most)
	}
	return conns.New(conns.Config{Log: log, Bounds: func() conns.Bounds {
		b := bounds()
		if b.All == 0 || b.All > most {
			b.All = most
		}
		return b
	}}), nil
}

// boundsOf are those of a site; All is 0 where it is for the limit of open files to say.
func boundsOf(c *site.Config) conns.Bounds {
	return conns.Bounds{All: c.Connections.Total, PerAddress: c.Connections.PerAddress, PerUser: func(name string) int { return int(c.Limits.Of(name).Connections) }}
}
