// Package ports shows what jobs serve at their ports to the browsers of those who may
// enter them. What a job serves is a stranger's program: each port of each rank has a host
// name of its own, so that to a browser it is another origin than the web page and than
// every other job. It decides nothing about jobs; who may enter one, access and streams say.
package ports

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/conns"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/streams"
	"gbatch/internal/state"
)

// Config is what ports ask of others.
type Config struct {
	Conf    func() *site.Config
	Jobs    *jobstore.Reader
	Auth    *access.Authenticator
	Streams *streams.OfJobs
	Conns   *conns.Table
	// Enter counts what a user has open, endless if it is a connection to a job, or says
	// that there is too much of it.
	Enter func(id access.Identity, method string, endless bool) (leave func(), e *api.Error)
	Now   func() time.Time
	Log   *slog.Logger
}

// Ports serves them. Create it with New.
type Ports struct {
	Config
	links links

	live  context.Context // of connections to jobs, which outlive the requests that made them
	end   context.CancelFunc
	proxy httputil.ReverseProxy
}

// New has no connection to any job.
func New(c Config) *Ports {
	p := &Ports{Config: c}
	p.live, p.end = context.WithCancel(context.Background())
	p.proxy = httputil.ReverseProxy{
		Rewrite: p.rewrite, ModifyResponse: p.rewriteAnswer, ErrorHandler: p.fail, Transport: p.transport(), FlushInterval: -1, // what comes is shown
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	return p
}

// Run ends all connections to jobs when ctx is done.
func (p *Ports) Run(ctx context.Context) {
	<-ctx.Done()
	p.end()
}

// Before serves the host names of jobs' ports, and leaves all others to the API: no name
// has both.
func (p *Ports) Before(serve http.HandlerFunc, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, ok := p.asked(r); ok {
			serve(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// asked is the place whose host name a request has.
func (p *Ports) asked(r *http.Request) (at place, host string, ok bool) {
	domain := p.Conf().Web.JobsDomain
	if domain == "" {
		return at, "", false
	}
	host = hostName(r.Host)
	label, below := strings.CutSuffix(host, "."+strings.ToLower(domain))
	if !below {
		return at, "", false
	}
	at, ok = parsePlace(label)
	return at, host, ok
}

// hostName is a Host header without its port.
func hostName(text string) string {
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		text = text[:i]
	}
	return strings.ToLower(strings.TrimSuffix(text, "."))
}

// own is where what is ours lies at the host name of a job. A job serves nothing there.
const own = "/.gbatch/"

// Serve answers a request at the host name of a job's port.
func (p *Ports) Serve(w http.ResponseWriter, r *http.Request) {
	at, host, _ := p.asked(r)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // of an earlier request
	if strings.HasPrefix(r.URL.Path, own) {
		if p.Conns.Stranger(conns.Of(r.Context()), r.ProtoMajor > 1) {
			w.Header().Set("Connection", "close")
		}
		p.door(w, r, host)
		return
	}
	if e := p.show(w, r, at, host); e != nil {
		refuse(w, e)
	}
}

// show joins a request with the job, or says why not; then nothing was answered.
func (p *Ports) show(w http.ResponseWriter, r *http.Request, at place, host string) *api.Error {
	if !ownOrigin(r) {
		return api.Errorf(api.CodeDenied, "a page at another address asks for this").WithHint("open the port on the page of its job")
	}
	id, until, e := p.Auth.Visitor(r, host)
	if e != nil {
		return e
	}
	if e := p.Conns.Known(conns.Of(r.Context()), conns.Who{Name: id.User, Trusted: id.Operator()}); e != nil {
		w.Header().Set("Connection", "close")
		return e
	}
	leave, e := p.Enter(id, r.Method, false)
	if e != nil {
		return e
	}
	defer leave()
	j, e := p.job(at)
	if e != nil {
		return e
	}
	if _, _, err := p.Streams.Enterable(id, j, at.rank, api.StreamForward); err != nil {
		return asError(err)
	}
	ctx, cancel := context.WithDeadline(r.Context(), until)
	defer cancel()
	defer context.AfterFunc(id.Ended, cancel)() // a socket that is open ends with the session
	p.proxy.ServeHTTP(final{w}, r.WithContext(context.WithValue(ctx, visitKey{}, &visit{id: id, at: at, until: until, host: r.Host})))
	return nil
}

// job is the job of a place: the very one, whatever has its number in a store that was
// put back.
func (p *Ports) job(at place) (*state.Job, *api.Error) {
	j := p.Jobs.View().Job(at.number)
	if j == nil || j.UUID != at.uuid {
		return nil, api.Errorf(api.CodeNotFound, "the job has ended, or is not here")
	}
	return j, nil
}

// ownOrigin says whether a page of this very address asks, or its user by the address
// bar. Pages of other jobs are of the same site: cookies come along with what they ask.
func ownOrigin(r *http.Request) bool {
	if from := r.Header.Get("Origin"); from != "" {
		return from == "https://"+r.Host
	}
	from := r.Header.Get("Sec-Fetch-Site")
	return from == "same-origin" || from == "none"
}

// refuse says in a browser why something is not shown. The text runs nowhere.
func refuse(w http.ResponseWriter, e *api.Error) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(e.Status)
	text := e.Message
	if e.Hint != "" {
		text += "\n" + e.Hint
	}
	_, _ = w.Write([]byte(text + "\n")) // who has gone needs none
}

// asError is an error as its user is told it.
func asError(err error) *api.Error {
	if e, ok := errors.AsType[*api.Error](err); ok {
		return e
	}
	if f, ok := errors.AsType[*api.StreamFailure](err); ok {
		return api.Errorf(api.CodeUnavailable, "%s", f.Message)
	}
	return api.Errorf(api.CodeUnavailable, "%s", cmp.Or(brokenText(err), "the job's program broke the connection off"))
}
