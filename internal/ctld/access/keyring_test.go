package access

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/store"
)

// TestTokenEnds: a token holds until the end that the store has of it, whatever
// it says itself.
func TestTokenEnds(t *testing.T) {
	dir := t.TempDir()
	st, err := store.Open(store.Config{Dir: filepath.Join(dir, site.StoreDir)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	k, err := OpenKeyring(dir, "pin", st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ann := api.Token{ID: "1", Use: api.TokenUser, User: "ann", Created: time.Unix(1000, 0), Expires: time.Unix(2000, 0)}
	secret, err := k.issue(ann)
	if err != nil {
		t.Fatal(err)
	}
	k.PutToken(ann)
	endless, err := jwt.Signed(k.sign).Claims(jwt.Claims{Issuer: "gctld", Audience: jwt.Audience{k.audience(api.TokenUser)}, ID: ann.ID, Subject: "ann"}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	if _, e := k.verify(endless, ann.Expires); e == nil || !strings.Contains(e.Message, "has expired") {
		t.Errorf("at the record's end: %v", e)
	}
	if _, e := k.verify(secret, ann.Expires.Add(-time.Second)); e != nil {
		t.Errorf("a second before its end: %v", e)
	}
	if _, e := k.verify(secret, ann.Expires); e == nil {
		t.Error("it holds at its end")
	}
	if _, e := k.verify(secret, ann.Created.Add(-26*time.Hour)); e != nil {
		t.Errorf("after the clock was set back: %v", e)
	}
}

// TestExpiring: what is counted are tokens that somebody relies on, shortly before
// their end.
func TestExpiring(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	k := &Keyring{tokens: map[string]*token{}}
	for id, x := range map[string]struct {
		use         string
		since, left time.Duration
		revoked     time.Time
	}{
		"soon":    {use: api.TokenUser, since: 89 * day, left: day},
		"join":    {use: api.TokenJoin, since: 13 * day, left: 2 * day},
		"later":   {use: api.TokenUser, since: 80 * day, left: 10 * day},
		"over":    {use: api.TokenUser, since: 90 * day, left: -time.Second},
		"short":   {use: api.TokenUser, since: day, left: 2 * day},
		"session": {use: api.TokenWeb, since: 89 * day, left: day},
		"revoked": {use: api.TokenUser, since: 89 * day, left: day, revoked: now.Add(-day)},
	} {
		k.tokens[id] = &token{Token: api.Token{ID: id, Use: x.use, Created: now.Add(-x.since), Expires: now.Add(x.left), Revoked: x.revoked}}
	}
	if diff := cmp.Diff(map[string]int{api.TokenUser: 1, api.TokenJoin: 1}, k.Expiring(now, 14*day, 3*day)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
