package ctld

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"gbatch/internal/ctld/conns"
	"gbatch/internal/ctld/site"
	"gbatch/internal/pki"
)

// front is where one of several controllers is reached while it follows, and then, when it leads. What came while it followed, and has or is about
// to have a connection, keeps that: all nodes come when who led has died, and would else have to come twice. So does what comes
// while it leads: one that has no processor for a moment leads no more, and may be the next that does.
type front struct {
	lns    []net.Listener
	table  *conns.Table
	srv    *http.Server
	refers http.Handler

	leads atomic.Pointer[leading]
	rules atomic.Pointer[func() *site.Config]
	down  context.Context // done when one of the listeners has ended
	end   func() error    // ends all, once
}

// leading is who answers while this controller leads.
type leading struct {
	ctx     context.Context // requests end with it
	handler http.Handler

	mu   sync.Mutex
	open map[*http.ResponseController]struct{} // of requests that are answered
	over chan struct{}                         // closed when none is, and none comes any more; nil: some come
}

// openFront listens at the addresses of a controller, and has it refer who asks to another one.
func openFront(c *site.Config, refers http.Handler, authority *pki.Authority, log *slog.Logger) (*front, error) {
	f := &front{refers: refers}
	conf := func() *site.Config { return c }
	f.rules.Store(&conf)
	var err error
	if f.table, err = newTable(f.bounds, log); err != nil {
		return nil, err
	}
	lns, err := listenAt(*c, log)
	if err != nil {
		return nil, err
	}
	f.srv = newHTTP(f, log)
	g, down := errgroup.WithContext(context.Background())
	f.down = down
	for i, ln := range lns {
		if ln = f.table.Listen(ln); i > 0 {
			ln = conns.TLS(ln, authority.ServerTLS())
		}
		f.lns = append(f.lns, ln)
		g.Go(func() error { // ends with the server
			if err := f.srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve %s: %w", ln.Addr(), err)
			}
			return nil
		})
	}
	f.end = sync.OnceValue(func() error { return errors.Join(f.srv.Close(), g.Wait()) })
	return f, nil
}

// bounds are those of a controller that leads. One that follows asks nobody who they are, so that nodes are no more to it than others.
func (f *front) bounds() conns.Bounds {
	b := boundsOf((*f.rules.Load())())
	if f.leads.Load() == nil {
		b.PerAddress = 0
	}
	return b
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := f.leads.Load()
	c := http.NewResponseController(w)
	if l == nil || !l.begin(c) {
		f.refers.ServeHTTP(w, r)
		return
	}
	defer l.end(c)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	l.handler.ServeHTTP(w, r.WithContext(ctx))
}

// serve has a controller answer that leads, until ctx is done. Who asks after that is referred, and what is still answered ends.
func (f *front) serve(ctx context.Context, h http.Handler) {
	l := &leading{ctx: ctx, handler: h, open: map[*http.ResponseController]struct{}{}}
	f.leads.Store(l)
	select {
	case <-ctx.Done():
	case <-f.down.Done():
	}
	f.leads.Store(nil)
	l.close()
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
