package ctld

import (
	"context"
	"net/http"

	"gbatch/internal/api"
)

// access is who may use a route at all. What of it they may see and touch, the
// handler asks: see maySee and mayTouch.
type access string

const (
	anyone    access = "anyone"    // who need not say who they are
	persons   access = "persons"   // users, operators and admins
	known     access = "known"     // persons, and nodes
	operators access = "operators" // and admins
	admins    access = "admins"
	nodes     access = "nodes"    // the handler asks which
	joiners   access = "joiners"  // who have a token to join
	scrapers  access = "scrapers" // operators, and those that metrics.scrapers names
)

// doors has every route and who may use it; a route without a line here stops
// the controller at its start.
var doors = map[string]access{
	"POST " + api.PathJobs:       persons,
	"GET " + api.PathJobs:        persons,
	"GET " + api.PathJob:         persons,
	"PATCH " + api.PathJob:       persons,
	"GET " + api.PathExplain:     persons,
	"POST " + api.PathJobAction:  persons,
	"GET " + api.PathJobLog:      persons,
	"PATCH " + api.PathSecrets:   persons,
	"GET " + api.PathJobExec:     persons,
	"GET " + api.PathJobForward:  persons,
	"GET " + api.PathJobAttach:   persons,
	"GET " + api.PathEvents:      persons,
	"GET " + api.PathCluster:     persons,
	"GET " + api.PathHistory:     persons,
	"GET " + api.PathUsage:       persons,
	"GET " + api.PathShares:      persons,
	"GET " + api.PathStatus:      known,
	"GET " + api.PathDiag:        operators,
	"GET " + api.PathSite:        persons,
	"GET " + api.PathProjects:    persons,
	"PUT " + api.PathProject:     admins,
	"DELETE " + api.PathProject:  admins,
	"GET " + api.PathPolicy:      operators,
	"POST " + api.PathPolicyTest: admins,
	"POST " + api.PathPolicyLoad: admins,
	"GET " + api.PathAudit:       operators,
	"POST " + api.PathBackup:     admins, // and of those root on this machine

	"GET " + api.PathTokens:     persons,
	"POST " + api.PathTokens:    persons,
	"DELETE " + api.PathToken:   persons,
	"POST " + api.PathNodeJoin:  joiners,
	"POST " + api.PathNodeRenew: nodes,
	"DELETE " + api.PathNodeKey: admins,

	"POST " + api.PathNodeSync:      nodes,
	"POST " + api.PathStream:        nodes,
	"GET " + api.PathStream:         nodes,
	"POST " + api.PathDrain:         operators,
	"POST " + api.PathResume:        operators,
	"DELETE " + api.PathNode:        operators,
	"GET " + api.PathReservations:   persons,
	"POST " + api.PathReservations:  operators,
	"DELETE " + api.PathReservation: operators,

	"GET /metrics":          scrapers,
	"GET /healthz":          anyone,
	"GET /openapi.json":     anyone,
	"GET /openapi.yaml":     anyone,
	"GET /openapi-3.0.json": anyone,
	"GET /openapi-3.0.yaml": anyone,
	"/":                     anyone, // says that there is nothing
}

// admits says whether a caller may use a route with this access.
func (a access) admits(id identity) bool {
	person := id.role == roleUser || id.operator()
	switch a {
	case anyone:
		return true
	case persons:
		return person
	case known:
		return person || id.role == roleNode
	case operators:
		return id.operator()
	case admins:
		return id.admin()
	case nodes:
		return id.role == roleNode || id.root
	case joiners:
		return id.role == roleJoin
	case scrapers:
		return id.operator() || person && id.scraper
	}
	return false
}

// refusal is what those are told whom a door does not admit.
func (a access) refusal(id identity) *api.Error {
	switch {
	case id.role == roleJoin:
		return denied("a token to join can join a node, and nothing else", "get one for a user by `gadm token create`")
	case a == joiners:
		return denied("to join a node needs a token that was made for it", "get one by `gadm node-token create`, and name it as joinTokenFile in gnoded.yaml")
	case a == nodes:
		return denied("only a node may do this", "")
	case id.role == roleNode:
		return denied("a node may not do this", "use a token of your own, or the controller's socket")
	case a == scrapers:
		return denied("metrics name everyone's projects and usage: they are for operators, and for whom `metrics.scrapers` in the controller's configuration names", "")
	case a == admins:
		return denied("only an admin may do this", "admins are root on the controller's machine and those that `admins` in its configuration names")
	}
	return denied("only an operator may do this", "operators are those that `operators` and `admins` in the controller's configuration name, and root on its machine")
}

// guard is the mux of the API: nothing gets past it that doors does not let in.
type guard struct {
	mux     *http.ServeMux
	auth    *authenticator
	denied  func(r *http.Request, id identity, e *api.Error) // of requests to change something
	large   turnstile
	measure *measures
	routes  []string // patterns, as they were registered
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

// HandleFunc registers a route behind its door.
func (g *guard) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	door, ok := doors[pattern]
	if !ok {
		panic("route " + pattern + " has no line in doors: say who may use it")
	}
	g.routes = append(g.routes, pattern)
	g.mux.HandleFunc(pattern, g.measure.route(pattern, func(w http.ResponseWriter, r *http.Request) {
		w = bounded(w, pattern)
		if door == anyone {
			handler(w, r)
			return
		}
		id, e := g.auth.identify(w, r)
		if e == nil && !door.admits(id) {
			e = door.refusal(id)
			if r.Method != http.MethodGet {
				g.denied(r, id, e)
			}
		}
		if e != nil {
			writeError(w, e)
			return
		}
		ctx, cancel := context.WithCancel(context.WithValue(r.Context(), identityKey{}, id))
		defer cancel()
		if id.ended != nil { // what is open ends when its credential is revoked
			defer context.AfterFunc(id.ended, cancel)()
		}
		if large[pattern] {
			leave, ok := g.large.enter(ctx, id.user)
			if !ok {
				return // the client has gone
			}
			defer leave()
		}
		ctx = context.WithValue(ctx, actionKey{}, r.Method+" "+r.URL.Path)
		handler(w, r.WithContext(ctx))
	}))
}
