package route

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/notice"
)

// Route is one route of the API, and all that there is to say of it: the
// server, the documentation and the tests of who may do what come from it.
type Route struct {
	Pattern string // METHOD /path, as http.ServeMux has it
	Who     access.Level
	Doc     string // what it does; empty: it is left out of the documentation
	id      string // in /openapi.json; empty: it is not there
	answer  answerKind
	former  bool // served, and not described
	turn    bool // its answer is that of a turn of the loop
	inJobs  bool // jobs may ask it, as their users

	failures *notice.Notice // of handlers that went wrong

	serve func(huma.API, *Guard, *Route)
}

// answerKind is how a route's answer is bounded.
type answerKind int

const (
	shortAnswer   answerKind = iota
	largeAnswer              // it can take much memory until it is read
	endlessAnswer            // it goes on for as long as somebody reads: what waits for a slow reader is one buffer, and how many are open is bounded
)

// Large says that the answer can take much memory until it is read: how many of
// those one user has at once is bounded.
func (r Route) Large() Route { r.answer = largeAnswer; return r }

// Is gives a route its name in /openapi.json and says what it does.
func (r Route) Is(id, doc string) Route { r.id, r.Doc = id, doc; return r }

// Former says that the route is for older clients: it is served, and nothing
// describes it.
func (r Route) Former() Route { r.former = true; return r }

// InTurn says that what is answered comes from a turn of the loop, which stores something or asks itself whether this
// controller still leads.
func (r Route) InTurn() Route { r.turn = true; return r }

// InJobs says that programs in jobs may use the route, as their jobs' users.
func (r Route) InJobs() Route { r.inJobs = true; return r }

// operation describes a route for /openapi.json.
func (r *Route) operation() huma.Operation {
	method, path, _ := strings.Cut(r.Pattern, " ")
	return huma.Operation{OperationID: r.id, Method: method, Path: path, Hidden: r.former, Summary: r.Doc, Description: r.Doc + ". " + callable(r.Who), Tags: []string{tagOf(path)}, MaxBodyBytes: access.MaxBody, BodyReadTimeout: access.BodyTime, SkipValidateBody: true, Security: security(r.Who)}
}

type body[T any] struct{ Body T }

// JSON is a route that answers with a value.
func JSON[I, T any](pattern string, who access.Level, h func(context.Context, *I) (*T, error)) Route {
	return Route{Pattern: pattern, Who: who, serve: func(a huma.API, g *Guard, r *Route) {
		huma.Register(a, r.operation(), func(ctx context.Context, in *I) (*body[T], error) {
			out, err := h(ctx, in)
			if err != nil {
				return nil, g.fail(ctx, r, err)
			}
			return &body[T]{*out}, nil
		})
	}}
}

// Each does for each of several changes that one request makes what is done for a
// request.
type Each struct {
	Another func() *api.Error      // counts one more, but the first; an error: that user makes too many
	Fail    func(error) *api.Error // says an error as an answer, and notes who was refused what
}

// Many is JSON for a handler of several changes, which are taken or refused each
// for itself.
func Many[I, T any](pattern string, who access.Level, h func(context.Context, *I, Each) (*T, error)) Route {
	return Route{Pattern: pattern, Who: who, serve: func(a huma.API, g *Guard, r *Route) {
		huma.Register(a, r.operation(), func(ctx context.Context, in *I) (*body[T], error) {
			id := access.Caller(ctx)
			out, err := h(ctx, in, Each{
				Another: func() *api.Error { return g.callers.another(id, g.Caps(id.User)) },
				Fail:    func(err error) *api.Error { return g.fail(ctx, r, err) },
			})
			if err != nil {
				return nil, g.fail(ctx, r, err)
			}
			return &body[T]{*out}, nil
		})
	}}
}

// Done is a route that answers only that it is done.
func Done[I any](pattern string, who access.Level, h func(context.Context, *I) error) Route {
	return Route{Pattern: pattern, Who: who, serve: func(a huma.API, g *Guard, r *Route) {
		huma.Register(a, r.operation(), func(ctx context.Context, in *I) (*struct{}, error) {
			if err := h(ctx, in); err != nil {
				return nil, g.fail(ctx, r, err)
			}
			return nil, nil
		})
	}}
}

// Cookie is Done for a route whose answer changes what a browser keeps.
func Cookie[I any](pattern string, who access.Level, h func(context.Context, *I) (*http.Cookie, error)) Route {
	return Route{Pattern: pattern, Who: who, serve: func(a huma.API, g *Guard, r *Route) {
		huma.Register(a, r.operation(), func(ctx context.Context, in *I) (*kept, error) {
			c, err := h(ctx, in)
			if err != nil {
				return nil, g.fail(ctx, r, err)
			}
			return &kept{c.String()}, nil
		})
	}}
}

// Kept is JSON for a route whose answer also changes what a browser keeps.
func Kept[I, T any](pattern string, who access.Level, h func(context.Context, *I) (*http.Cookie, *T, error)) Route {
	type both struct {
		Cookie string `header:"Set-Cookie" doc:"what browsers keep for the next request of the same, and from scripts"`
		Body   T
	}
	return Route{Pattern: pattern, Who: who, serve: func(a huma.API, g *Guard, r *Route) {
		huma.Register(a, r.operation(), func(ctx context.Context, in *I) (*both, error) {
			c, out, err := h(ctx, in)
			if err != nil {
				return nil, g.fail(ctx, r, err)
			}
			return &both{c.String(), *out}, nil
		})
	}}
}

type kept struct {
	Cookie string `header:"Set-Cookie" doc:"the session, for browsers, which keep it from scripts; an empty one takes it away"`
}

// Stream is a route whose answer goes on. What the handler gives writes it; it has
// written nothing if its error is an *api.Error.
func Stream[I any](pattern string, who access.Level, h func(context.Context, *I) (func(context.Context, http.ResponseWriter) error, error), responses map[string]*huma.Response) Route {
	return Route{Pattern: pattern, Who: who, answer: endlessAnswer, serve: func(a huma.API, g *Guard, r *Route) {
		op := r.operation()
		op.Responses = maps.Clone(responses) // describe adds to them
		huma.Register(a, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
			write, err := h(ctx, in)
			if err != nil {
				return nil, g.fail(ctx, r, err)
			}
			return &huma.StreamResponse{Body: func(hc huma.Context) {
				_, w := humago.Unwrap(hc)
				err := write(hc.Context(), w)
				if e, ok := errors.AsType[*api.Error](err); ok {
					writeError(w, e)
				} else if err != nil {
					// It broke after bytes were sent: cut the connection, so that
					// the client does not take it for the end.
					panic(http.ErrAbortHandler)
				}
			}}, nil
		})
	}}
}

// Socket is a route that becomes a WebSocket.
func Socket(pattern string, who access.Level, h func(http.ResponseWriter, *http.Request) error) Route {
	plain := Plain(pattern, who, "", h)
	return Route{Pattern: pattern, Who: who, answer: endlessAnswer, serve: func(a huma.API, g *Guard, r *Route) {
		op := r.operation()
		op.Responses = map[string]*huma.Response{"101": {Description: "messages both ways follow"}}
		pathParameters(&op)
		addSocket(a.OpenAPI(), &op)
		plain.serve(a, g, r)
	}}
}

// Plain is a route that /openapi.json does not describe.
func Plain(pattern string, who access.Level, doc string, h func(http.ResponseWriter, *http.Request) error) Route {
	return Route{Pattern: pattern, Who: who, Doc: doc, serve: func(_ huma.API, g *Guard, r *Route) {
		g.HandleFunc(r.Pattern, func(w http.ResponseWriter, req *http.Request) {
			if err := h(w, req); err != nil {
				writeError(w, g.fail(req.Context(), r, err))
			}
		})
	}}
}

// Streams says that the answer goes on for as long as somebody reads.
func (r Route) Streams() Route { r.answer = endlessAnswer; return r }
