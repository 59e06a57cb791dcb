package access

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/pki"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// Keyring is the credentials that the controller gave out: tokens, and nodes'
// keys. A token is a JWT; that it is signed is looked at first, and what the
// store has of it decides. So a token can be revoked, and a copy of the store
// holds none.
type Keyring struct {
	key  crypto.Signer
	pin  string // whom tokens are for: this controller's pin
	sign jose.Signer

	// change is held from before a change is worked out until it is durable
	// and in force.
	Change sync.Mutex

	damaged map[string]bool // ids of tokens whose records cannot be used; not changed after the start

	mu     sync.RWMutex
	tokens map[string]*token
	nodes  map[string]*NodeKey
	signed map[[sha256.Size]byte]jwt.Claims // of tokens whose signature held, by the sum of their text
}

// maxSigned is how many signatures are remembered, before they are looked at anew.
const maxSigned = 4096

// token is what the store has of a token.
type token struct {
	api.Token
	ended context.Context // done when it is revoked
	end   context.CancelFunc
}

// NodeKey is the key with which a node has joined.
type NodeKey struct {
	Key    string    `json:"key"` // pki.KeyID
	Joined time.Time `json:"joined"`
	Token  string    `json:"token"` // by which
	ended  context.Context
	end    context.CancelFunc
}

// keepTokens is how long a token stays listed after it has expired.
const keepTokens = 30 * 24 * time.Hour

// OpenKeyring reads the credentials of a store; pin is that of the controller's authority, whom tokens are for.
func OpenKeyring(dir, pin string, st *store.Store, log *slog.Logger) (*Keyring, error) {
	key, err := pki.OpenKey(filepath.Join(dir, site.TokenKeyFile))
	if err != nil {
		return nil, fmt.Errorf("key of the tokens: %w", err)
	}
	k := &Keyring{key: key, pin: pin, tokens: map[string]*token{}, damaged: map[string]bool{}, nodes: map[string]*NodeKey{}, signed: map[[sha256.Size]byte]jwt.Claims{}}
	if k.sign, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, new(jose.SignerOptions).WithType("JWT")); err != nil {
		return nil, fmt.Errorf("key of the tokens: %w", err)
	}
	err = st.All(state.KindToken, func(r state.Record) error {
		t, err := StoredToken(r)
		if err != nil { // this one alone is refused
			log.Error("a token is refused until `gctld fsck --quarantine` has taken its record out, and then as unknown: make a new one for whom it was", "token", r.Name, "error", err)
			k.damaged[r.Name] = true
			return nil
		}
		k.PutToken(t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return k, st.All(state.KindNodeKey, func(r state.Record) error {
		var n NodeKey
		if err := json.Unmarshal(r.Value, &n); err != nil {
			return fmt.Errorf("decode key record of node %s: %w", r.Name, err)
		}
		k.PutNode(r.Name, &n)
		return nil
	})
}

// hasUser says whether somebody has a token.
func (k *Keyring) hasUser(name string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, t := range k.tokens {
		if t.User == name && t.Use != api.TokenJoin {
			return true
		}
	}
	return false
}

// PutToken puts what is durable into force.
func (k *Keyring) PutToken(t api.Token) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := &token{Token: t}
	if old := k.tokens[t.ID]; old != nil {
		n.ended, n.end = old.ended, old.end
	} else {
		n.ended, n.end = context.WithCancel(context.Background())
	}
	if !t.Revoked.IsZero() {
		n.end()
	}
	k.tokens[t.ID] = n
}

// PutNode does the same with a node's key; nil takes it away.
func (k *Keyring) PutNode(name string, n *NodeKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.nodes[name]; old != nil {
		old.end()
	}
	if n == nil {
		delete(k.nodes, name)
		return
	}
	n.ended, n.end = context.WithCancel(context.Background())
	k.nodes[name] = n
}

// knows says whether a certificate is of the key with which the node has
// joined.
func (k *Keyring) knows(name string, leaf *x509.Certificate) (context.Context, bool) {
	id := pki.KeyOf(leaf)
	k.mu.RLock()
	defer k.mu.RUnlock()
	n := k.nodes[name]
	if n == nil || n.Key != id {
		return nil, false
	}
	return n.ended, true
}

// issue makes the text of a token.
func (k *Keyring) issue(t api.Token) (string, error) {
	return k.issueFor(t, t.Use)
}

// issueFor makes a text by which the holder of a token is known for one use.
func (k *Keyring) issueFor(t api.Token, use string) (string, error) {
	return jwt.Signed(k.sign).Claims(jwt.Claims{
		Issuer: "gctld", Audience: jwt.Audience{k.audience(use)}, ID: t.ID, Subject: t.User,
		IssuedAt: jwt.NewNumericDate(t.Created), Expiry: jwt.NewNumericDate(t.Expires),
	}).Serialize()
}

func (k *Keyring) audience(use string) string { return use + "@" + k.pin }

const hintToken = "get a new one by `gadm token create` on the controller's machine"

// verify says what a token is, and whether it is in force. One that is not known
// or not signed here is nil.
func (k *Keyring) verify(raw string, now time.Time) (*token, *api.Error) {
	return k.verifyFor(raw, now, func(t *token) string { return t.Use })
}

// verifyFor is verify of a text that is for one use.
func (k *Keyring) verifyFor(raw string, now time.Time, use func(*token) string) (*token, *api.Error) {
	c, e := k.claims(raw)
	if e != nil {
		return nil, e
	}
	k.mu.RLock()
	t := k.tokens[c.ID]
	k.mu.RUnlock()
	switch {
	case t == nil && k.damaged[c.ID]:
		return nil, api.Errorf(api.CodeUnauthorized, "what the controller has stored of the token %s is damaged", c.ID).WithHint(hintToken)
	case t == nil:
		return nil, api.Errorf(api.CodeUnauthorized, "the token is not known here: it has expired long ago, or was made before a backup was restored").
			WithHint(hintToken)
	case !t.Revoked.IsZero():
		return t, api.Errorf(api.CodeUnauthorized, "the token %s was revoked", t.ID).WithHint(hintToken)
	}
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: "gctld", AnyAudience: jwt.Audience{k.audience(use(t))}, Subject: t.User, Time: now}, 0)
	switch {
	case errors.Is(err, jwt.ErrExpired) || err == nil && (c.Expiry == nil || !now.Before(t.Expires)):
		return t, api.Errorf(api.CodeUnauthorized, "the token %s has expired", t.ID).WithHint(hintToken)
	case errors.Is(err, jwt.ErrIssuedInTheFuture): // and everything else holds: this machine's clock was set back, or another controller's is ahead
	case err != nil:
		return t, api.Errorf(api.CodeUnauthorized, "the token is meant for something else: %v", err).WithHint(hintToken)
	}
	return t, nil
}

// claims is what a token says, if it is signed here. The signatures of the last ones are
// remembered: an open page sends the same token each few seconds.
func (k *Keyring) claims(raw string) (c jwt.Claims, e *api.Error) {
	sum := sha256.Sum256([]byte(raw))
	k.mu.RLock()
	c, ok := k.signed[sum]
	k.mu.RUnlock()
	if ok {
		return c, nil
	}
	parsed, err := jwt.ParseSigned(raw, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return c, api.Errorf(api.CodeUnauthorized, "the token is not one of this controller's").WithHint(hintToken)
	}
	if err := parsed.Claims(k.key.Public(), &c); err != nil {
		return c, api.Errorf(api.CodeUnauthorized, "the token is not one of this controller's: its signature does not hold").WithHint(hintToken)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.signed) >= maxSigned {
		clear(k.signed)
	}
	k.signed[sum] = c
	return c, nil
}

// list gives the tokens, and takes out those that expired long ago.
func (k *Keyring) list(now time.Time) (live []api.Token, old []state.Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.tokens, func(id string, t *token) bool {
		keep := keepTokens
		if t.Use == api.TokenLogin || t.Use == api.TokenWeb {
			keep = 0 // there are many, and who logged in is in the audit log
		}
		if now.After(t.Expires.Add(keep)) {
			old = append(old, state.Record{Kind: state.KindToken, Name: id})
			return true
		}
		live = append(live, t.Token)
		return false
	})
	return live, old
}

// Expiring counts the tokens in force that were to last for so long at least and run
// out within a time, by use: those that somebody relies on, and that are to be replaced.
func (k *Keyring) Expiring(now time.Time, lasted, within time.Duration) map[string]int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	out := map[string]int{api.TokenUser: 0, api.TokenJoin: 0}
	for _, t := range k.tokens { // counts: order does not matter
		if _, counts := out[t.Use]; counts && t.Revoked.IsZero() && now.Before(t.Expires) && t.Expires.Before(now.Add(within)) && t.Expires.Sub(t.Created) >= lasted {
			out[t.Use]++
		}
	}
	return out
}

// Token is a token by its id.
func (k *Keyring) Token(id string) (api.Token, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	t := k.tokens[id]
	if t == nil {
		return api.Token{}, false
	}
	return t.Token, true
}

// Node is the key of a node; nil: it has none.
func (k *Keyring) Node(name string) *NodeKey {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.nodes[name]
}

// NodeKeyRecord is a node's key as it is stored; nil deletes it.
func NodeKeyRecord(name string, n *NodeKey) state.Record {
	r := state.Record{Kind: state.KindNodeKey, Name: name}
	if n != nil {
		r.Value = wire.Encode(n)
	}
	return r
}
