package access

import (
	"bytes"
	"encoding/base64"
	"log/slog"
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
	k, err := OpenKeyring(dir, "pin", st, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	ann := api.Token{ID: "1", Use: api.TokenUser, User: "ann", Created: time.Unix(1000, 0), Expires: time.Unix(2000, 0)}
	secret, err := k.issue(ann)
	if err != nil {
		f.Fatal(err)
	}
	k.PutToken(ann)
	var texts [][]byte // header, claims and signature
	parts := strings.Split(secret, ".")
	for _, p := range parts {
		text, err := base64.RawURLEncoding.DecodeString(p)
		if err != nil {
			f.Fatal(err)
		}
		texts = append(texts, text)
	}
	f.Add(texts[0], texts[1], texts[2])
	f.Add([]byte(`{"alg":"none"}`), texts[1], []byte{})
	f.Add([]byte(`{"alg":"HS256"}`), texts[1], texts[2])
	f.Add([]byte(`{"alg":"ES256","jwk":{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}}`), texts[1], texts[2])
	f.Add(texts[0], []byte(`{"sub":"root","jti":"1","exp":9e99}`), texts[2])
	f.Fuzz(func(t *testing.T, head, claims, signature []byte) { // so that all of it gets to be read
		raw := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(claims) + "." + base64.RawURLEncoding.EncodeToString(signature)
		got, refused := k.verify(raw, time.Unix(1500, 0))
		if refused == nil && (got.User != "ann" || !bytes.Equal(head, texts[0]) || !bytes.Equal(claims, texts[1])) {
			t.Errorf("%q is taken for %q", raw, got.User)
		}
		if refused != nil && refused.Code != api.CodeUnauthorized {
			t.Errorf("%q: %+v", raw, refused)
		}
	})
}
