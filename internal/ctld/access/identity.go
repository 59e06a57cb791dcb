package access

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/conns"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/places"
	"gbatch/internal/job"
	"gbatch/internal/munge"
	"gbatch/internal/state"
)

// role is what a caller may do at most.
type role string

const (
	RoleUser     role = "user"
	roleOperator role = "operator" // every job and node
	RoleAdmin    role = "admin"    // also who may do what
	RoleNode     role = "node"     // speak for one node
	RoleJoin     role = "join"     // make a node one
	RoleLogin    role = "login"    // open the web page, once
)

// Identity is who a request comes from.
type Identity struct {
	User string
	Role role
	Node string // of roleNode: its name; of roleJoin: the only one it may be, or empty

	From    string // address, or "socket"
	Via     string // "socket", "token ID", "munge", "certificate"
	Root    bool   // root of the controller's own machine
	Machine bool   // a machine of the site said who it is, not a token
	Token   string // its id
	scraper bool   // may read metrics
	browser string // of a request with a token: whose session the browser has beside it; empty: nobody's

	// Done when the credential is revoked; nil: it cannot be.
	Ended context.Context

	Within  job.Number // the job in whose container the request began, which has nobody's rights but its user's; 0: in none
	Project string     // of that job
	carrier string     // the node that it came by
}

type identityKey struct{}

// WithCaller has id be who asks in ctx, and whose changes are noted; action says
// what was asked for.
func WithCaller(ctx context.Context, id Identity, action string) context.Context {
	ctx = loop.WithUser(context.WithValue(ctx, identityKey{}, id), id.User)
	if id.Role == "" || id.Role == RoleNode {
		return ctx
	}
	return loop.WithAuthor(ctx, id.Entry(action))
}

// Entry begins an entry of the audit log.
func (id Identity) Entry(action string) api.AuditEntry {
	return api.AuditEntry{User: id.User, Role: string(id.Role), From: id.From, Via: id.Via, Action: action}
}

// Caller is who asks.
func Caller(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}

// Operator says whether the caller may act on everyone's jobs and all nodes.
func (id Identity) Operator() bool { return id.Role == roleOperator || id.Role == RoleAdmin }

// admin says whether the caller may say who may do what.
func (id Identity) admin() bool { return id.Role == RoleAdmin }

// MayNode says whether the caller may speak for a node. Root of the
// controller's own machine may for all: it could read the authority's key.
func (id Identity) MayNode(name string) bool {
	return id.Root || id.Role == RoleNode && id.Node == name
}

// Authenticator finds out who calls: by a token, by MUNGE, by a node's
// certificate, or on the unix socket by what the kernel says.
type Authenticator struct {
	rights *Rights
	keys   *Keyring
	now    func() time.Time
	decode *places.Gate // credentials that MUNGE is looking at

	job func(job.Number) *state.Job // one that is not over; nil: there is none

	bodies places.Places // bytes of bodies that are read to find out who sent them, by address
}

// maxUnknown bounds the bytes of bodies from one address of which it is not known
// yet who sent them.
const maxUnknown = 16 << 20

// NewAuthenticator goes by the rights and credentials in force.
func NewAuthenticator(rights *Rights, keys *Keyring, jobs func(job.Number) *state.Job, now func() time.Time) *Authenticator {
	return &Authenticator{rights: rights, keys: keys, now: now, job: jobs, decode: places.NewGate(mungeAtOnce, mungeWaiting), bodies: places.Places{Most: maxUnknown}}
}

// mungeAtOnce bounds the programs that run to decode MUNGE credentials, and
// mungeWaiting the requests that wait for one: by turns of addresses, since whose
// they are is not known yet.
const (
	mungeAtOnce  = 16
	mungeWaiting = 4096
)

// Bounds of a request's body: a job document is at most 1 MiB.
const (
	MaxBody  = 2 << 20
	BodyTime = 5 * time.Second
)

// Identify finds out who sends a request.
func (a *Authenticator) Identify(w http.ResponseWriter, r *http.Request) (Identity, *api.Error) {
	uid, local := conns.Of(r.Context()).UID()
	from := "socket"
	if !local {
		from, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	var id Identity
	var e *api.Error
	header := r.Header.Get("Authorization")
	token, isToken := strings.CutPrefix(header, "Bearer ")
	credential, isMunge := strings.CutPrefix(header, munge.Scheme)
	session := sessionOf(r)
	switch {
	case isToken:
		id, e = a.byToken(token)
		if session != "" {
			if has, wrong := a.bySession(session); wrong == nil {
				id.browser = has.User
			}
		}
	case isMunge:
		id, e = a.byMunge(w, r, credential)
	case header != "":
		e = api.Errorf(api.CodeUnauthorized, "the Authorization header has a scheme that this controller does not know").WithHint("use a bearer token")
	case session != "":
		id, e = a.bySession(session)
	case r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		id, e = a.byCertificate(r)
	case local:
		id = Identity{Via: "socket", Machine: true, Root: uid == 0}
		id.User, e = a.rights.People.name(uid)
	default:
		hint := "get a token by `gadm token create --save` on the controller's machine, and bring the file gbatch/token in your configuration directory (~/.config) here"
		if a.rights.Conf().Login != nil {
			hint = "log in by `gadm login`"
		}
		e = api.Errorf(api.CodeUnauthorized, "a request over the network needs a token").WithHint(hint)
	}
	id.From = from
	if text := r.Header.Get(api.HeaderWithin); e == nil && text != "" {
		id, e = a.within(id, text)
	}
	if e == nil && id.Role == "" {
		id.Role = a.rights.roleOf(id)
		id.scraper = a.rights.People.Among(a.rights.Conf().Metrics.Scrapers, id.User)
	}
	return id, e
}

func (a *Authenticator) byToken(raw string) (Identity, *api.Error) {
	t, e := a.keys.verify(raw, a.now())
	if t == nil {
		return Identity{Via: "token"}, e
	}
	id := Identity{User: t.User, Via: "token " + t.ID, Token: t.ID, Ended: t.ended}
	switch t.Use {
	case api.TokenJoin:
		id.Role, id.User, id.Node = RoleJoin, "", t.Node
	case api.TokenLogin:
		id.Role = RoleLogin
	case api.TokenWeb:
		return id, api.Errorf(api.CodeUnauthorized, "this is the session of a web page: it is of no use elsewhere").WithHint(hintToken)
	}
	return id, e
}

func (a *Authenticator) byCertificate(r *http.Request) (Identity, *api.Error) {
	leaf := r.TLS.VerifiedChains[0][0]
	name := leaf.Subject.CommonName
	id := Identity{User: "node " + name, Role: RoleNode, Node: name, Via: "certificate", Machine: true}
	if a.now().After(leaf.NotAfter) {
		return id, api.Errorf(api.CodeUnauthorized, "the certificate of node %s has expired", name).WithHint("join it again: gadm node-token create")
	}
	var ok bool
	if id.Ended, ok = a.keys.knows(name, leaf); !ok {
		return id, api.Errorf(api.CodeUnauthorized, "node %s was forgotten here, its key was revoked, or another machine has its name", name).
			WithHint("join it again: gadm node-token create")
	}
	return id, nil
}

// byMunge takes a credential that wraps this very request. The body is read for
// it, and stays readable.
func (a *Authenticator) byMunge(w http.ResponseWriter, r *http.Request, credential string) (Identity, *api.Error) {
	m := a.rights.Conf().Munge
	if m == nil {
		return Identity{}, api.Errorf(api.CodeUnauthorized, "this controller takes no MUNGE credentials").WithHint("use a token: set GBATCH_AUTH=token")
	}
	from := conns.AddressOf(r.RemoteAddr)
	leave, ok := a.bodies.Enter(r.Context(), from, MaxBody)
	if !ok {
		return Identity{}, loop.ErrBusy
	}
	defer leave()
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(BodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxBody))
	_ = rc.SetReadDeadline(time.Time{})
	if err != nil {
		return Identity{}, api.Errorf(api.CodeTooLarge, "the request's body is too large, or broke off")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	decoded, ok := a.decode.Enter(r.Context(), from)
	if !ok {
		return Identity{}, loop.ErrBusy
	}
	uid, payload, err := munge.Decode(r.Context(), m.Socket, credential)
	decoded()
	if refused, ok := errors.AsType[*munge.Refused](err); ok {
		return Identity{Via: "munge"}, api.Errorf(api.CodeUnauthorized, "the MUNGE credential does not hold: %s", refused.Why).
			WithHint("try again; if it stays so, tell your operator")
	}
	if err != nil {
		return Identity{}, api.Errorf(api.CodeUnavailable, "MUNGE does not work on the controller's machine: %v", err).
			WithHint("tell your operator; a token works too")
	}
	if !bytes.Equal(payload, munge.Payload(r.Method, r.RequestURI, body)) {
		return Identity{Via: "munge"}, api.Errorf(api.CodeUnauthorized, "the MUNGE credential was made for another request")
	}
	name, e := a.rights.People.name(uid)
	return Identity{User: name, Via: "munge", Machine: true}, e
}
