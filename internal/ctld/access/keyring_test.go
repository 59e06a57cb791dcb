package access

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

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
	k, err := OpenKeyring(dir, "pin", st)
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
}
