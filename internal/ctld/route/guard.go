package route

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/conns"
	"gbatch/internal/node"
)

// Guard is the mux of the API: nothing is reached but by a route of its table,
// and by those whom the route is for.
type Guard struct {
	Table []Route

	Config
	mux    *http.ServeMux
	routes map[string]*Route // by pattern
	served map[string]bool   // patterns that have a handler
	turns  limiter
}

// Config is what a guard asks of others.
type Config struct {
	Identify func(http.ResponseWriter, *http.Request) (access.Identity, *api.Error)
	Denied   func(id access.Identity, action string, e *api.Error) // of requests to change something
	Measure  func(pattern string, next http.HandlerFunc) http.HandlerFunc
	Conns    *conns.Table
	Log      *slog.Logger
}

// New serves a table. What it serves at /openapi.json is made from the
// same routes. A route that is in the table and has no handler, or the other way
// round, is a mistake of ours.
func New(c Config, table []Route) *Guard {
	g := &Guard{Table: table, Config: c, mux: http.NewServeMux(), routes: map[string]*Route{}, served: map[string]bool{}}
	for i := range table {
		g.routes[table[i].Pattern] = &table[i]
	}
	cfg := huma.DefaultConfig("gbatch", "1")
	cfg.AllowAdditionalPropertiesByDefault = true // fields are only added: an older server ignores a newer client's
	cfg.SchemasPath, cfg.DocsPath = "", ""
	cfg.CreateHooks = nil // no $schema links in answers
	cfg.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	a := humago.New(g, cfg)
	for i := range table {
		if r := &table[i]; r.serve != nil {
			r.serve(a, g, r)
		}
	}
	for pattern := range g.routes {
		if !g.served[pattern] {
			panic("route " + pattern + " has no handler")
		}
	}
	return g
}

// schemaName names a type in the API's description: as Go does, but where two
// of different packages would have one name.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[node.GPU]() {
		return "InventoryGPU"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

// HandleFunc is how huma, and routes that it does not serve, register a handler.
func (g *Guard) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	route := g.routes[pattern]
	if route == nil {
		panic("route " + pattern + " is not in the table: say who may use it")
	}
	g.served[pattern] = true
	g.mux.HandleFunc(pattern, g.Measure(pattern, func(w http.ResponseWriter, r *http.Request) {
		w = bounded(w, route.answer)
		conn := conns.Of(r.Context())
		if route.Who == access.ByAnyone {
			if g.Conns.Stranger(conn) {
				w.Header().Set("Connection", "close")
			}
			handler(w, r)
			return
		}
		action := r.Method + " " + r.URL.Path
		id, e := g.Identify(w, r)
		if e == nil && id.Role != access.RoleJoin {
			e = g.Conns.Known(conn, conns.Who{Name: id.User, Trusted: id.Role == access.RoleNode || id.Operator()})
		}
		if g.Conns.Stranger(conn) {
			w.Header().Set("Connection", "close")
		}
		if e == nil && !route.Who.Admits(id) {
			e = route.Who.Refusal(id)
			if r.Method != http.MethodGet {
				g.Denied(id, action, e)
			}
		}
		if e != nil {
			writeError(w, e)
			return
		}
		ctx, cancel := context.WithCancel(access.WithCaller(r.Context(), id, action))
		defer cancel()
		if id.Ended != nil { // what is open ends when its credential is revoked
			defer context.AfterFunc(id.Ended, cancel)()
		}
		if route.answer == largeAnswer {
			leave, ok := g.turns.enter(ctx, id.User)
			if !ok {
				return // the client has gone
			}
			defer leave()
		}
		handler(w, r.WithContext(ctx))
	}))
}
