package ports

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
)

// Opening asks for a link to a port.
type Opening struct {
	ID   string `path:"id"`
	Port uint16 `path:"port" minimum:"1" doc:"TCP, on the loopback interface that the container sees"`
	Body api.PortRequest
}

// Open makes a link by which the browser of a session comes to a port once.
func (p *Ports) Open(ctx context.Context, in *Opening) (*api.PortLink, error) {
	domain := p.Conf().Web.JobsDomain
	id, q := access.Caller(ctx), in.Body
	switch {
	case domain == "":
		return nil, api.Errorf(api.CodeNotFound, "ports of jobs are not shown in browsers here").
			WithHint("`gexec --forward` brings one to your machine; operators: web.jobsDomain in gctld.yaml")
	case !strings.HasPrefix(id.Via, "session "):
		return nil, api.Errorf(api.CodeBadRequest, "a port is opened for a browser that has a session").WithHint("`gexec --forward` brings it to your machine")
	case in.Port == 0:
		return nil, api.Errorf(api.CodeBadRequest, "port: want a number from 1 to 65535")
	case !goodPath(q.Path):
		return nil, api.Errorf(api.CodeBadRequest, "path: %.80q is none of a server", q.Path)
	}
	j, err := p.Jobs.Find(in.ID)
	if err != nil {
		return nil, err
	}
	if _, _, err := p.Streams.Enterable(id, j, q.Rank, api.StreamForward); err != nil {
		return nil, err
	}
	if err := p.Streams.Loop.Commit(ctx, fmt.Sprintf("job %d", j.Number), fmt.Sprintf("entered by port %d on the web page, rank %d", in.Port, q.Rank)); err != nil {
		return nil, err
	}
	host := placeOf(j, q.Rank, in.Port).label() + "." + strings.ToLower(domain)
	return &api.PortLink{Host: host, Secret: p.links.add(id.User, link{session: id.Token, host: host, path: q.Path}, p.Now())}, nil
}

// goodPath says whether a path leads to somewhere at the same host, and nowhere else.
func goodPath(path string) bool {
	return path == "" || path[0] == '/' && !strings.HasPrefix(path, "//") && !strings.HasPrefix(path, own) &&
		!strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' || r == '#' })
}

//go:embed door.html
var doorPage []byte

//go:embed door.js
var doorScript []byte

const doorPolicy = "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// door lets a browser in that comes by a link. The secret is behind the # of its address,
// where neither logs nor the job see it: a script of ours brings it here.
func (p *Ports) door(w http.ResponseWriter, r *http.Request, host string) {
	h := w.Header()
	h.Set("Content-Security-Policy", doorPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	switch r.Method + " " + r.URL.Path {
	case "GET " + own + "enter":
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(doorPage) // who has gone needs none
	case "GET " + own + "enter.js":
		h.Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write(doorScript) // the same
	case "POST " + own + "enter":
		if e := p.enter(w, r, host); e != nil {
			refuse(w, e)
		}
	default:
		refuse(w, api.Errorf(api.CodeNotFound, "there is nothing at %s %s", r.Method, r.URL.Path))
	}
}

// enter exchanges a link for a cookie.
func (p *Ports) enter(w http.ResponseWriter, r *http.Request, host string) *api.Error {
	if !ownOrigin(r) {
		return api.Errorf(api.CodeDenied, "a page at another address asks for this").WithHint("open the port on the page of its job")
	}
	secret, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 100))
	if err != nil {
		return api.Errorf(api.CodeBadRequest, "this is no link to a port")
	}
	k, ok := p.links.take(string(secret), host, p.Now())
	if !ok {
		return api.Errorf(api.CodeUnauthorized, "this link was used, or is older than a minute").WithHint("open the port on the page of its job again")
	}
	c, e := p.Auth.Visit(k.session, host)
	if e != nil {
		return e
	}
	http.SetCookie(w, c)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, k.path) // who has gone needs none
	return nil
}
