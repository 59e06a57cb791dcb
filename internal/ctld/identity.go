package ctld

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/munge"
)

// role is what a caller may do at most.
type role string

const (
	roleUser     role = "user"
	roleOperator role = "operator" // every job and node
	roleAdmin    role = "admin"    // also who may do what
	roleNode     role = "node"     // speak for one node
	roleJoin     role = "join"     // make a node one
)

// Identity is who a request comes from.
type Identity struct {
	user string
	role role
	node string // of roleNode: its name; of roleJoin: the only one it may be, or empty

	from    string // address, or "socket"
	via     string // "socket", "token ID", "munge", "certificate"
	root    bool   // root of the controller's own machine
	machine bool   // a machine of the site said who it is, not a token
	token   string // its id
	scraper bool   // may read metrics

	// Done when the credential is revoked; nil: it cannot be.
	ended context.Context
}

type identityKey struct{}

// withCaller has id be who asks in ctx, and whose changes are noted; action says
// what was asked for.
func withCaller(ctx context.Context, id Identity, action string) context.Context {
	ctx = context.WithValue(ctx, identityKey{}, id)
	if id.role == "" || id.role == roleNode {
		return ctx
	}
	return WithAuthor(ctx, id.entry(action))
}

// entry begins an entry of the audit log.
func (id Identity) entry(action string) api.AuditEntry {
	return api.AuditEntry{User: id.user, Role: string(id.role), From: id.from, Via: id.via, Action: action}
}

// caller is who asks.
func caller(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}

// operator says whether the caller may act on everyone's jobs and all nodes.
func (id Identity) operator() bool { return id.role == roleOperator || id.role == roleAdmin }

func (id Identity) admin() bool { return id.role == roleAdmin }

// mayNode says whether the caller may speak for a node. Root of the
// controller's own machine may for all: it could read the authority's key.
func (id Identity) mayNode(name string) bool {
	return id.root || id.role == roleNode && id.node == name
}

// Authenticator finds out who calls: by a token, by MUNGE, by a node's
// certificate, or on the unix socket by what the kernel says.
type Authenticator struct {
	rights *Rights
	keys   *Keyring
	now    func() time.Time
	decode chan struct{} // one place for each credential that MUNGE is looking at
}

// mungeAtOnce bounds the programs that run to decode MUNGE credentials.
const mungeAtOnce = 16

// Bounds of a request's body: a job document is at most 1 MiB.
const (
	maxBody  = 2 << 20
	bodyTime = 5 * time.Second
)

type peerKey struct{}

// connContext keeps the peer of a unix connection for its requests.
func connContext(ctx context.Context, c net.Conn) context.Context {
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return ctx
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil || err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, cred)
}

func unauthorized(hint, format string, args ...any) *api.Error {
	return &api.Error{Status: 401, Code: api.CodeUnauthorized, Message: fmt.Sprintf(format, args...), Hint: hint}
}

func (a *Authenticator) identify(w http.ResponseWriter, r *http.Request) (Identity, *api.Error) {
	cred, local := r.Context().Value(peerKey{}).(*unix.Ucred)
	from := "socket"
	if !local {
		from, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	var id Identity
	var e *api.Error
	header := r.Header.Get("Authorization")
	token, isToken := strings.CutPrefix(header, "Bearer ")
	credential, isMunge := strings.CutPrefix(header, munge.Scheme)
	switch {
	case isToken:
		id, e = a.byToken(token)
	case isMunge:
		id, e = a.byMunge(w, r, credential)
	case header != "":
		e = unauthorized("use a bearer token", "the Authorization header has a scheme that this controller does not know")
	case r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		id, e = a.byCertificate(r)
	case local:
		id = Identity{user: a.rights.people.name(cred.Uid), via: "socket", machine: true, root: cred.Uid == 0}
	default:
		e = unauthorized("get a token by `gadm token create` on the controller's machine and put it into gbatch/token in your configuration directory (~/.config)",
			"a request over the network needs a token")
	}
	id.from = from
	if e == nil && id.role == "" {
		id.role = a.rights.roleOf(id)
		id.scraper = a.rights.people.among(a.rights.conf().Metrics.Scrapers, id.user)
	}
	return id, e
}

func (a *Authenticator) byToken(raw string) (Identity, *api.Error) {
	t, e := a.keys.verify(raw, a.now())
	if e != nil {
		return Identity{}, e
	}
	id := Identity{user: t.User, via: "token " + t.ID, token: t.ID, ended: t.ended}
	if t.Use == api.TokenJoin {
		id.role, id.user, id.node = roleJoin, "", t.Node
	}
	return id, nil
}

func (a *Authenticator) byCertificate(r *http.Request) (Identity, *api.Error) {
	leaf := r.TLS.VerifiedChains[0][0]
	name := leaf.Subject.CommonName
	if a.now().After(leaf.NotAfter) {
		return Identity{}, unauthorized("join it again: gadm node-token create", "the certificate of node %s has expired", name)
	}
	ended, ok := a.keys.knows(name, leaf)
	if !ok {
		return Identity{}, unauthorized("join it again: gadm node-token create", "node %s was forgotten here, its key was revoked, or another machine has its name", name)
	}
	return Identity{user: "node " + name, role: roleNode, node: name, via: "certificate", machine: true, ended: ended}, nil
}

// byMunge takes a credential that wraps this very request. The body is read for
// it, and stays readable.
func (a *Authenticator) byMunge(w http.ResponseWriter, r *http.Request, credential string) (Identity, *api.Error) {
	m := a.rights.conf().Munge
	if m == nil {
		return Identity{}, unauthorized("use a token: set GBATCH_AUTH=token", "this controller takes no MUNGE credentials")
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	_ = rc.SetReadDeadline(time.Time{})
	if err != nil {
		return Identity{}, &api.Error{Status: 413, Code: api.CodeTooLarge, Message: "the request's body is too large, or broke off"}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	select {
	case a.decode <- struct{}{}:
		defer func() { <-a.decode }()
	case <-r.Context().Done():
		return Identity{}, errBusy
	}
	uid, payload, err := munge.Decode(r.Context(), m.Socket, credential)
	if refused, ok := errors.AsType[*munge.Refused](err); ok {
		return Identity{}, unauthorized("try again; if it stays so, tell your operator", "the MUNGE credential does not hold: %s", refused.Why)
	}
	if err != nil {
		return Identity{}, &api.Error{Status: 503, Code: api.CodeUnavailable, Message: "MUNGE does not work on the controller's machine: " + err.Error(), Hint: "tell your operator; a token works too"}
	}
	if !bytes.Equal(payload, munge.Payload(r.Method, r.RequestURI, body)) {
		return Identity{}, unauthorized("", "the MUNGE credential was made for another request")
	}
	return Identity{user: a.rights.people.name(uid), via: "munge", machine: true}, nil
}
