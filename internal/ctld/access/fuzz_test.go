package access

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/store"
)

// FuzzVerify: no token is taken but the very one that was given out.
func FuzzVerify(f *testing.F) {
	dir := f.TempDir()
	st, err := store.Open(store.Config{Dir: filepath.Join(dir, site.StoreDir)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { st.Close() })
	k, err := OpenKeyring(dir, "pin", st)
	if err != nil {
		f.Fatal(err)
	}
	ann := api.Token{ID: "1", Use: api.TokenUser, User: "ann", Created: time.Unix(1000, 0), Expires: time.Unix(2000, 0)}
	secret, err := k.issue(ann)
	if err != nil {
		f.Fatal(err)
	}
	k.PutToken(ann)
	head, rest, _ := strings.Cut(secret, ".")
	f.Add(secret)
	f.Add("eyJhbGciOiJub25lIn0." + rest)
	f.Add(head + "." + strings.Split(rest, ".")[0] + ".")
	f.Add(`{"payload":"","signatures":[]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		got, refused := k.verify(raw, time.Unix(1500, 0))
		if refused == nil && (got.User != "ann" || !strings.HasPrefix(strings.TrimSpace(raw), strings.TrimSuffix(secret[:len(secret)-4], "="))) {
			t.Errorf("%q is taken for %q", raw, got.User)
		}
		if refused != nil && refused.Status != 401 {
			t.Errorf("%q: %+v", raw, refused)
		}
	})
}
