package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/site"
	"gbatch/internal/state"
)

// How long tokens live when nothing is said, and at most.
const (
	userLife, maxUserLife = 30 * 24 * time.Hour, 366 * 24 * time.Hour
	joinLife, maxJoinLife = time.Hour, 30 * 24 * time.Hour

	loginLife, maxLoginLife = 2 * time.Minute, 10 * time.Minute
)

const (
	onRecord    = 10  // times the tokens that one user has in force, with those that are over
	maxNote     = 200 // bytes
	maxJoinUses = 10_000
)

// Tokens makes, lists and revokes tokens.
type Tokens struct {
	Conf func() *site.Config
	Keys *Keyring
	Loop *loop.Loop
	Now  func() time.Time
}

// TokenInput asks for a token.
type TokenInput struct{ Body api.TokenRequest }

// Create makes a token. Users make their own where a machine says who
// they are: a token makes no tokens, or one that was stolen would live on.
func (s *Tokens) Create(ctx context.Context, in *TokenInput) (*api.Token, error) {
	id, q := Caller(ctx), in.Body
	t, err := s.newToken(id, q)
	if err != nil {
		return nil, err
	}
	return s.give(ctx, t)
}

// Enter makes a token for a user who has logged in at the site's identity provider. A
// name is one subject's: with a token on record, another one is not given it.
func (s *Tokens) Enter(ctx context.Context, t api.Token) (*api.Token, error) {
	t.ID, t.Use, t.By, t.Note = rand.Text()[:12], api.TokenUser, t.User, "login"
	return s.give(WithCaller(ctx, Identity{User: t.User, Role: RoleUser, Via: "login"}, "POST "+api.PathLogin), t)
}

// give puts a token into force, and gives its secret away this once.
func (s *Tokens) give(ctx context.Context, t api.Token) (*api.Token, error) {
	s.Keys.Change.Lock()
	defer s.Keys.Change.Unlock()
	live, old := s.Keys.list(s.Now())
	if err := sameSubject(t, live); err != nil {
		return nil, err
	}
	if err := s.tooMany(t, live); err != nil {
		return nil, err
	}
	secret, err := s.Keys.issue(t)
	if err != nil {
		return nil, err
	}
	object, change := "token "+t.ID, "for "+t.User
	if t.Use == api.TokenJoin {
		change = fmt.Sprintf("to join %d nodes %s", t.Left, t.Node)
	}
	change = strings.TrimSpace(change) + ", until " + t.Expires.Format(time.RFC3339)
	if err := s.Loop.Commit(ctx, object, change, append(old, TokenRecord(t))...); err != nil {
		return nil, err
	}
	s.Keys.PutToken(t)
	t.Secret = secret
	return &t, nil
}

// sameSubject refuses a login under a name that was another subject's lately.
func sameSubject(t api.Token, live []api.Token) error {
	for _, x := range live {
		if t.Subject != "" && x.User == t.User && x.Subject != "" && x.Subject != t.Subject {
			return api.Errorf(api.CodeDenied, "the identity provider has given the name %s to somebody else than lately", t.User).
				WithHint("tell your operator: it is refused until the tokens of the other are forgotten, 30 days after they expired")
		}
	}
	return nil
}

// tooMany refuses one more token of a user. Those that were revoked stay on
// record for a while: making and revoking them is no way to fill the store.
func (s *Tokens) tooMany(t api.Token, live []api.Token) error {
	most := int(s.Conf().Limits.Of(t.User).Tokens)
	if most == 0 || t.Use == api.TokenJoin {
		return nil
	}
	inForce, kept := 0, 0
	for _, x := range live {
		if x.Use == api.TokenJoin || x.User != t.User {
			continue
		}
		kept++
		if x.Revoked.IsZero() && s.Now().Before(x.Expires) {
			inForce++
		}
	}
	switch {
	case inForce >= most:
		return api.Errorf(api.CodeOverLimit, "%s has %d of at most %d tokens and sessions in force (limits.perUser.tokens)", t.User, inForce, most).
			WithHint("revoke some by `gadm token revoke`")
	case kept >= onRecord*most:
		return api.Errorf(api.CodeOverLimit, "%s has %d tokens on record, revoked ones too, of at most %d (ten times limits.perUser.tokens)", t.User, kept, onRecord*most).
			WithHint("they are forgotten 30 days after they would have expired; make tokens that live longer, or ask an administrator for a higher limit")
	}
	return nil
}

// newToken checks what is asked.
func (s *Tokens) newToken(id Identity, q api.TokenRequest) (api.Token, error) {
	bad := func(format string, args ...any) error {
		return api.Errorf(api.CodeBadRequest, format, args...)
	}
	life, longest := userLife, maxUserLife
	now := s.Now().UTC().Truncate(time.Second)
	t := api.Token{ID: rand.Text()[:12], Use: q.Use, Created: now, By: id.User, Note: q.Note}
	switch {
	case len(q.Note) > maxNote:
		return t, bad("the note is longer than %d bytes", maxNote)
	case q.Use == api.TokenUser && (q.Node != "" || q.Uses != 0):
		return t, bad("a user's token has no node and no uses")
	case q.Use == api.TokenUser:
		t.User = cmp.Or(q.User, id.User)
		if !site.NameRule.MatchString(t.User) {
			return t, bad("%q is no user name", t.User)
		}
	case q.Use == api.TokenLogin && (q.User != "" || q.Node != "" || q.Uses != 0):
		return t, bad("a link to the web page is for yourself, and for once")
	case q.Use == api.TokenLogin:
		t.User, t.Left = id.User, 1
		life, longest = loginLife, maxLoginLife
	case q.Use == api.TokenJoin && q.User != "":
		return t, bad("a token to join has no user")
	case q.Use == api.TokenJoin:
		if q.Node != "" && !site.NodeNameRule.MatchString(q.Node) {
			return t, bad("%q is no node name", q.Node)
		}
		if q.Uses < 0 || q.Uses > maxJoinUses || q.Node != "" && q.Uses > 1 {
			return t, bad("uses: %d: must be 1 to %d, and 1 for a named node", q.Uses, maxJoinUses)
		}
		t.Node, t.Left = q.Node, max(q.Uses, 1)
		life, longest = joinLife, maxJoinLife
	default:
		return t, bad("a token is for use %q, %q or %q", api.TokenUser, api.TokenJoin, api.TokenLogin)
	}
	if q.LifeS != 0 {
		life = time.Duration(q.LifeS) * time.Second
	}
	if q.LifeS < 0 || q.LifeS > int64(longest/time.Second) {
		return t, bad("a token of this use lives at most %v", longest)
	}
	t.Expires = now.Add(life)
	switch own := t.Use != api.TokenJoin && t.User == id.User; {
	case t.Use == api.TokenLogin && id.Token != "":
		if by, ok := s.Keys.Token(id.Token); ok {
			t.Of = cmp.Or(by.Of, by.ID) // what comes of it ends with that
		}
	case id.admin() && t.Use != api.TokenLogin:
	case !own:
		return t, api.Errorf(api.CodeDenied, "only an admin makes tokens for others and for nodes")
	case !id.Machine:
		return t, api.Errorf(api.CodeDenied, "a token makes no tokens").
			WithHint("log in on the controller's machine, or where the site has MUNGE, and ask there")
	}
	return t, nil
}

type tokensInput struct {
	All bool `query:"all" doc:"everyone's; admins only"`
}

// List lists the caller's tokens, or all.
func (s *Tokens) List(ctx context.Context, in *tokensInput) (*api.TokenList, error) {
	id := Caller(ctx)
	if in.All && !id.admin() {
		return nil, api.Errorf(api.CodeDenied, "only an admin sees everyone's tokens").WithHint("leave --all out")
	}
	live, _ := s.Keys.list(s.Now())
	out := api.TokenList{Tokens: []api.Token{}}
	for _, t := range live {
		if in.All || t.Use != api.TokenJoin && t.User == id.User {
			out.Tokens = append(out.Tokens, t)
		}
	}
	slices.SortFunc(out.Tokens, func(a, b api.Token) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return &out, nil
}

// TokenName names a token.
type TokenName struct {
	ID string `path:"id"`
}

// Revoke takes a token out of force, and ends what is open by it. To do so
// twice is fine.
func (s *Tokens) Revoke(ctx context.Context, in *TokenName) error {
	id := Caller(ctx)
	s.Keys.Change.Lock()
	defer s.Keys.Change.Unlock()
	t, ok := s.Keys.Token(in.ID)
	if !ok || !id.admin() && (t.Use == api.TokenJoin || t.User != id.User) {
		return api.Errorf(api.CodeNotFound, "you have no token %q", in.ID).WithHint("`gadm token list` shows yours")
	}
	return s.revoke(ctx, t)
}

// revoke takes a token out of force, and the sessions that were opened by it. The
// caller holds Keys.Change.
func (s *Tokens) revoke(ctx context.Context, t api.Token) error {
	var ended []api.Token
	var records []state.Record
	live, _ := s.Keys.list(s.Now())
	for _, x := range live {
		if x.Revoked.IsZero() && (x.ID == t.ID || x.Of == t.ID) {
			x.Revoked = s.Now().UTC().Truncate(time.Second)
			ended, records = append(ended, x), append(records, TokenRecord(x))
		}
	}
	if len(ended) == 0 {
		return nil
	}
	if err := s.Loop.Commit(ctx, "token "+t.ID, "revoked, of "+cmp.Or(t.User, "nodes"), records...); err != nil {
		return err
	}
	for _, x := range ended {
		s.Keys.PutToken(x)
	}
	return nil
}
