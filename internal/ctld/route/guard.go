package route

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"reflect"
	"runtime"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/conns"
	"gbatch/internal/ctld/places"
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

	callers callers
	bodies  places.Places // bytes of requests' bodies
	answers places.Places // with the document of one job each, in memory until they are read
	large   places.Places // large answers in memory, until they are read
	making  *places.Gate  // large answers that are worked out
}

// Config is what a guard asks of others.
type Config struct {
	Identify func(http.ResponseWriter, *http.Request) (access.Identity, *api.Error)
	Refused  func(e api.AuditEntry, why string) // is told of requests that were refused
	Measure  func(pattern string, next http.HandlerFunc) http.HandlerFunc
	Conns    *conns.Table
	Caps     func(user string) Caps
	Large    func() int64                     // for how many a large answer counts
	Fresh    func(context.Context) *api.Error // nil while no other controller has led since this one began to; no function: it is the only one
	Log      *slog.Logger
}

// New serves a table. What it serves at /openapi.json is made from the
// same routes. A route that is in the table and has no handler, or the other way
// round, is a mistake of ours.
func New(c Config, table []Route) *Guard {
	g := &Guard{Table: table, Config: c, mux: http.NewServeMux(), routes: map[string]*Route{}, served: map[string]bool{},
		bodies: places.Places{Most: maxBodies}, answers: places.Places{Most: maxAnswers}, large: places.Places{Most: maxLarge}, making: places.NewGate(max(runtime.GOMAXPROCS(0)/2, 1), maxMaking)}
	for i := range table {
		g.routes[table[i].Pattern] = &table[i]
		table[i].failures = failures(c.Log)
	}
	cfg := huma.DefaultConfig("gbatch", "1")
	cfg.AllowAdditionalPropertiesByDefault = true               // fields are only added: an older server ignores a newer client's
	cfg.SchemasPath, cfg.DocsPath, cfg.OpenAPIPath = "", "", "" // see Described
	format := huma.DefaultJSONFormat
	format.Marshal, format.Unmarshal = encode, decode
	cfg.Formats = map[string]huma.Format{"application/json": format, "json": format}
	cfg.CreateHooks = nil // no $schema links in answers
	cfg.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	a := humago.New(g, cfg)
	for i := range table {
		table[i].serve(a, g, &table[i])
	}
	describe(a.OpenAPI())
	for pattern := range g.routes {
		if !g.served[pattern] {
			panic("route " + pattern + " has no handler")
		}
	}
	return g
}

// asV1 reads as encoding/json does, and takes half the time.
var asV1 = jsonv1.DefaultOptionsV1()

// decode is json.Unmarshal. What nodes say all the time is read by what is faster; people are told what is wrong in theirs in encoding/json's words.
func decode(data []byte, v any) error {
	if q, ok := v.(*api.SyncRequest); ok {
		return jsonv2.Unmarshal(data, q, asV1)
	}
	return json.Unmarshal(data, v)
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
		if r.Header.Get(api.HeaderWithin) != "" && !route.inJobs {
			writeError(w, api.Errorf(api.CodeDenied, "this may not be asked from inside of a job").WithHint("ask on a machine where you log in"))
			return
		}
		if route.Who == access.ByAnyone {
			if g.Conns.Stranger(conns.Of(r.Context()), r.ProtoMajor > 1) {
				w.Header().Set("Connection", "close")
			}
			handler(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store") // by browsers, for who comes after this user
		id, leave, e := g.current(w, r, route)
		audited := auditable{id.Entry(actionOf(r)), route.Who == access.ByJoiners}
		audited.Object = object(r)
		if e != nil {
			g.refused(audited, e)
			writeError(w, e)
			return
		}
		defer leave()
		ctx, cancel := context.WithCancel(access.WithCaller(context.WithValue(r.Context(), auditableKey{}, audited), id, actionOf(r)))
		defer cancel()
		if id.Ended != nil { // what is open ends when its credential is revoked
			defer context.AfterFunc(id.Ended, cancel)()
		}
		done, ok := g.room(ctx, w, r, route)
		switch {
		case ok:
			defer done()
			leaveAnswers := func() {}
			defer func() { leaveAnswers() }()
			handler(w, r.WithContext(places.WithAnswer(ctx, func() (ok bool) {
				var l func()
				if l, ok = g.answers.Enter(ctx, id.User, 1); ok {
					leaveAnswers = l
				}
				return ok
			})))
		case ctx.Err() != nil: // the client has gone, or the controller ends or leads no more
			w.Header().Set("Connection", "close") // where reading it failed once, net/http would end each request that comes by it
			writeError(w, api.Errorf(api.CodeUnavailable, "the request was broken off: nothing was done").WithHint("try again in a few seconds"))
		default:
			writeError(w, api.Errorf(api.CodeUnavailable, "too many lists are asked for at the moment").WithHint("try again in a few seconds"))
		}
	}))
}

// actionOf is what a request asks for, in the audit log.
func actionOf(r *http.Request) string { return r.Method + " " + r.URL.Path }

// admit says who asks, if they may, and have not too much open. Call leave when the
// request is over.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request, route *Route) (id access.Identity, leave func(), e *api.Error) {
	conn := conns.Of(r.Context())
	id, e = g.Identify(w, r)
	if e == nil && id.Role != access.RoleJoin {
		name, trusted := id.Connection()
		e = g.Conns.Known(conn, conns.Who{Name: name, Trusted: trusted})
	}
	if g.Conns.Stranger(conn, r.ProtoMajor > 1) {
		w.Header().Set("Connection", "close")
	}
	if e != nil {
		return id, nil, e
	}
	leave, wait, e := g.callers.enter(id, r.Method, route.answer, g.Caps(id.User))
	if e != nil {
		w.Header().Set("Retry-After", seconds(wait))
		return id, nil, e
	}
	if !route.Who.Admits(id) {
		leave()
		e = route.Who.Refusal(id)
	}
	return id, leave, e
}

// current is admit, where that and what the route will read is not behind what another controller has decided.
func (g *Guard) current(w http.ResponseWriter, r *http.Request, route *Route) (id access.Identity, leave func(), e *api.Error) {
	id, leave, e = g.admit(w, r, route)
	if e == nil && route.turn || e != nil && e.Code == api.CodeTooMany {
		return id, leave, e
	}
	stale := g.fresh(r.Context())
	if stale == nil {
		return id, leave, e
	}
	if e == nil {
		leave()
	}
	return id, nil, stale
}

// fresh says whether what this controller knows is not behind what another one has decided, also of who asks: one that
// stood still may not know that it does not lead any more.
func (g *Guard) fresh(ctx context.Context) *api.Error {
	if g.Fresh == nil {
		return nil
	}
	return g.Fresh(ctx)
}

// maxMaking bounds the large answers that wait to be worked out.
const maxMaking = 4096

// room waits for room in memory for a request's body and its answer, and for the
// turn of a large one: at most half of the processors work on those, and each user
// in turn.
func (g *Guard) room(ctx context.Context, w http.ResponseWriter, r *http.Request, route *Route) (leave func(), ok bool) {
	var leaves []func()
	leave = func() {
		for _, l := range leaves {
			l()
		}
	}
	enter := func(l func(), in bool) bool {
		if in {
			leaves = append(leaves, l)
		}
		return in
	}
	user := access.Caller(ctx).User
	if n := r.ContentLength; n != 0 && route.answer != endlessAnswer {
		if n < 0 || n > access.MaxBody {
			n = access.MaxBody
		}
		if !enter(g.bodies.Enter(ctx, user, n)) {
			return nil, false
		}
	}
	if route.answer != largeAnswer {
		return leave, true
	}
	made, ok := func() {}, enter(g.large.Enter(ctx, user, g.Large()))
	if ok {
		if made, ok = g.making.Enter(ctx, user); ok {
			enter(made, true)
		}
	}
	if !ok {
		leave()
		return nil, false
	}
	if d, is := w.(*deadlineWriter); is {
		d.made = made // who reads it slowly holds up nobody
	}
	return leave, true
}
