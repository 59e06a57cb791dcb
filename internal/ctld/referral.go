package ctld

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/replica"
)

// refer answers whoever asks that another controller leads. It does so, too, while this one
// loads what it needs to lead: who is refused a connection waits longer and longer before the next try.
func (m *Member) refer() (*front, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", m.elsewhere)
	mux.HandleFunc("GET "+api.PathLeader, (&asked{elected: m.replica.Elected}).serve)
	listen := func() ([]net.Listener, error) { return listenAt(m.cfg, m.log) }
	f, err := openFront(reach{listen, func() *site.Config { return &m.cfg }, m.pki}, signed(m.cfg.Replica.Name, mux), m.log)
	if err == nil {
		m.front.Store(f)
	}
	return f, err
}

// elsewhere is the answer of a controller that does not lead, whatever it is asked.
func (m *Member) elsewhere(w http.ResponseWriter, _ *http.Request) {
	e := referral(m.cfg, m.replica.Leader(), m.pki.Pin())
	if m.removed.Load() || outside(m.cfg.Replica.Name, memberNames(m.replica)) {
		e = outsider(m.cfg)
	}
	refuse(w, e)
}

// referral says to ask the controller that leads, none: that is not known, and how all are reached.
func referral(c site.Config, leader, pin string) *api.Error {
	if leader == "" {
		return api.Errorf(api.CodeElsewhere, "this is controller %s, and no controller leads at the moment", c.Replica.Name).
			WithHint("try again in a second; where it stays so, too few of the controllers run or reach each other")
	}
	if leader == c.Replica.Name {
		return api.Errorf(api.CodeElsewhere, "controller %s is about to lead", leader).WithHint("try again in a second or two")
	}
	e := api.Errorf(api.CodeElsewhere, "this is controller %s, and %s leads: nothing was done", c.Replica.Name, leader)
	if !strings.Contains(c.Advertise, ",") {
		return e.WithHint("name all controllers in the address, as `gadm join-string` prints it where one leads")
	}
	return e.WithHint("use the address that names all controllers: --controller '" + site.Address(c, c.Listen, pin) + "'")
}

// outside says whether a controller is not among those that take part by what it knows: it was removed, or has just been added.
func outside(name string, all []string) bool { return len(all) > 0 && !slices.Contains(all, name) }

// memberNames are those of all that take part by what a controller knows; none: it has not heard of any.
func memberNames(r *replica.Replica) []string {
	all, err := r.Members()
	if err != nil {
		return nil // it ends
	}
	var out []string
	for _, m := range all {
		out = append(out, m.Name)
	}
	return out
}

// outsider is the answer of such a one.
func outsider(c site.Config) *api.Error {
	return api.Errorf(api.CodeElsewhere, "this is controller %s, which does not take part, as it was removed or has just been added: nothing was done", c.Replica.Name).
		WithHint("ask one of the others; if it was removed, stop gctld here, or empty its directory and add it again (docs/controllers.md)")
}

// signed has each answer say which of several controllers it is of.
func signed(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.HeaderController, name)
		next.ServeHTTP(w, r)
	})
}

// Who waits to hear of another leader: each node of a site has one such request open at one of the controllers that do not lead.
const (
	maxAsked  = 16384
	askedWait = 50 * time.Second // one is answered by then
)

// asked answers, for a controller that does not lead, which one leads.
type asked struct {
	elected func(ctx context.Context, not string) string
	open    atomic.Int64
}

// serve answers at once, or where the one that leads is the one that is not asked for, when another one does.
func (a *asked) serve(w http.ResponseWriter, r *http.Request) {
	wait := askedWait
	if a.open.Add(1) > maxAsked || !r.URL.Query().Has("not") {
		wait = 0
	}
	defer a.open.Add(-1)
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	leader := api.Leader{Name: a.elected(ctx, r.URL.Query().Get("not"))}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(leader) // an error: who asked has gone
}

// leader is the same of a controller that leads, or is the only one.
func (s *Server) leader(ctx context.Context, _ *struct {
	Not string `query:"not" doc:"the controller that the asker knows to lead"`
}) (*api.Leader, error) {
	if s.leads == nil {
		return new(api.Leader), nil
	}
	if e := s.leads.fresh(ctx); e != nil {
		return nil, e
	}
	return &api.Leader{Name: s.rules.Now().Replica.Name}, nil
}
