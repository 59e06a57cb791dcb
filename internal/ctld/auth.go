package ctld

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/control"
)

// role is what a caller may do.
type role string

const (
	roleUser  role = "user"
	roleAdmin role = "admin" // everything, for everyone
	roleNode  role = "node"  // speak for a node
)

// identity is who a request comes from.
type identity struct {
	user string
	role role
}

type identityKey struct{}

func caller(ctx context.Context) identity {
	id, _ := ctx.Value(identityKey{}).(identity)
	return id
}

func (id identity) admin() bool { return id.role == roleAdmin }

// mayNode says whether the caller may speak for a node. Root of the
// controller's own machine may: it could read the node's token anyway.
func (id identity) mayNode() bool { return id.role == roleNode || id.role == roleAdmin }

// authenticator finds out who calls: on the unix socket the kernel says, over
// TCP the bearer token does.
type authenticator struct {
	admin, node string          // tokens
	operators   func() []string // users with the admin role
}

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

func (a *authenticator) identify(r *http.Request) (identity, *api.Error) {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		switch {
		case same(token, a.admin):
			return identity{user: "root", role: roleAdmin}, nil
		case same(token, a.node):
			return identity{role: roleNode}, nil
		}
		return identity{}, &api.Error{Status: 401, Code: api.CodeUnauthorized, Message: "the token is not one of this controller's",
			Hint: "on the controller's machine use its socket, which needs no token; else ask your operator for the token file"}
	}
	cred, ok := r.Context().Value(peerKey{}).(*unix.Ucred)
	if !ok {
		return identity{}, &api.Error{Status: 401, Code: api.CodeUnauthorized, Message: "a request over TCP needs a token",
			Hint: "set GBATCH_TOKEN_FILE, or use the controller's unix socket on its own machine"}
	}
	name := userName(cred.Uid)
	if cred.Uid == 0 || slices.Contains(a.operators(), name) {
		return identity{user: name, role: roleAdmin}, nil
	}
	return identity{user: name, role: roleUser}, nil
}

func same(a, b string) bool {
	return b != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

func userName(uid uint32) string {
	if u, err := user.LookupId(strconv.Itoa(int(uid))); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid%d", uid)
}

// require wraps the API: no request passes without an identity, but for the
// descriptions and the health probe.
func (a *authenticator) require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open := r.URL.Path; open == "/healthz" || open == "/openapi.json" || open == "/openapi.yaml" || open == "/metrics" {
			next.ServeHTTP(w, r)
			return
		}
		id, e := a.identify(r)
		if e != nil {
			writeError(w, e)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, id)))
	})
}

// maySee says whether the caller sees all of a job, or only that it is there.
func (s *Server) maySee(id identity, o *control.Owner) bool {
	if id.admin() || id.user == o.User {
		return true
	}
	p, ok := s.cfg().project(o.Project)
	return ok && id.role == roleUser && (len(p.Members) == 0 || slices.Contains(p.Members, id.user))
}

// mayTouch says whether the caller may cancel, hold or release a job: their
// own, and those of a project that names them as a member.
func (s *Server) mayTouch(id identity, o *control.Owner) bool {
	if id.admin() || (id.role == roleUser && id.user == o.User) {
		return true
	}
	p, ok := s.cfg().project(o.Project)
	return ok && id.role == roleUser && slices.Contains(p.Members, id.user)
}

// token reads a token file, or makes one.
func token(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t := rand.Text() + rand.Text()
		if err := writeSecretFile(path, t+"\n"); err != nil {
			return "", fmt.Errorf("write token: %w", err)
		}
		return t, nil
	}
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
