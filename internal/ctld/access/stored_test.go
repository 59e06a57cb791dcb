package access

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// TestDamagedToken: whichever byte of a token's record is changed, that token is refused, and no other: neither one
// beside it nor one that an earlier version stored.
func TestDamagedToken(t *testing.T) {
	token := func(id string) api.Token {
		return api.Token{ID: id, Use: api.TokenUser, User: "ann", Created: time.Unix(1000, 0).UTC(), Expires: time.Unix(2000, 0).UTC(), By: "root", Note: `of "a",`,
			Revoked: time.Unix(1500, 0).UTC()}
	}
	whole := TokenRecord(token("whole"))
	if got, err := StoredToken(whole); err != nil || !cmp.Equal(got, token("whole")) {
		t.Errorf("the whole record: %+v, %v", got, err)
	}
	for at := range whole.Value {
		for _, with := range []byte{0x01, 0x04, 0x20, 0x80} {
			r := whole
			r.Value = bytes.Clone(whole.Value)
			r.Value[at] ^= with
			if got, err := StoredToken(r); err == nil {
				t.Errorf("with byte %d changed by %#x it is %+v", at, with, got)
			}
		}
		r := whole
		r.Value = whole.Value[:at]
		if got, err := StoredToken(r); err == nil {
			t.Errorf("cut after %d bytes it is %+v", at, got)
		}
	}
	if got, err := StoredToken(state.Record{Kind: state.KindToken, Name: "another", Value: whole.Value}); err == nil {
		t.Errorf("under another name it is %+v", got)
	}

	dir := t.TempDir()
	st, err := store.Open(store.Config{Dir: filepath.Join(dir, site.StoreDir)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var records []state.Record
	for _, id := range []string{"damaged", "old", "whole"} {
		x := token(id)
		x.Revoked = time.Time{}
		r := TokenRecord(x)
		switch id {
		case "old":
			r.Value = wire.Encode(x)
		case "damaged":
			r.Value[bytes.Index(r.Value, []byte("ann"))] ^= 1
		}
		records = append(records, r)
	}
	if err := st.Commit(records); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	k, err := OpenKeyring(dir, "pin", st, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		secret, err := k.issue(token(r.Name))
		if err != nil {
			t.Fatal(err)
		}
		_, refused := k.verify(secret, time.Unix(1200, 0))
		if damaged := r.Name == "damaged"; (refused != nil) != damaged || damaged && !strings.Contains(refused.Message, "the token damaged is damaged") {
			t.Errorf("%s: %v", r.Name, refused)
		}
	}
	if !strings.Contains(log.String(), "token=damaged") || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the log has %s", &log)
	}
}
