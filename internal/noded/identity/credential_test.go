package identity

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/noded/config"
	"gbatch/internal/pki"
)

// authority signs as the controller does.
type authority struct {
	ca       *pki.Authority
	token    string // that is good
	joins    int
	renewals int
	fail     error
}

func (a *authority) JoinNode(_ context.Context, name, token string, req []byte) ([]byte, error) {
	a.joins++
	if token != a.token {
		return nil, errors.Join(a.fail, api.Errorf(api.CodeUnauthorized, "the token has been used up"))
	}
	text, _, err := a.ca.SignNode(name, req)
	return text, err
}

func (a *authority) RenewNode(_ context.Context, name string, req []byte) ([]byte, error) {
	a.renewals++
	if a.fail != nil {
		return nil, a.fail
	}
	text, _, err := a.ca.SignNode(name, req)
	return text, err
}

// TestCredential: a node joins once, keeps its key over restarts, renews in time, and
// joins again when the controller no longer knows it.
func TestCredential(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	ca, err := pki.Open(t.TempDir(), clock)
	if err != nil {
		t.Fatal(err)
	}
	ctl := &authority{ca: ca, token: "one"}
	cfg := &config.Config{Name: "gpu1", Controller: "https://head:1#" + ca.Pin(), StateDir: t.TempDir(), JoinTokenFile: filepath.Join(t.TempDir(), "token")}
	log := slog.New(slog.DiscardHandler)
	var k *Credential
	restart := func() {
		t.Helper()
		if k, err = OpenCredential(cfg); err != nil {
			t.Fatal(err)
		}
		k.now = clock
	}
	ready := func(step, want string, joins, renewals int) {
		t.Helper()
		err := k.Ready(t.Context(), ctl, log)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
		if ctl.joins != joins || ctl.renewals != renewals {
			t.Errorf("%s: joined %d times and renewed %d; want %d and %d", step, ctl.joins, ctl.renewals, joins, renewals)
		}
	}
	put := func(token string) {
		if err := os.WriteFile(cfg.JoinTokenFile, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	restart()
	ready("no token file", "read join token", 0, 0)
	put("")
	ready("empty file", "is empty", 0, 0)
	put("wrong")
	ready("wrong token", "join as node gpu1", 1, 0)
	put("one")
	ready("good token", "", 2, 0)
	ready("joined", "", 2, 0)
	id, _ := pki.KeyID(k.key.Public())
	restart()
	ready("after a restart", "", 2, 0)
	if again, _ := pki.KeyID(k.key.Public()); again != id {
		t.Error("a restart made another key")
	}
	if err := os.Remove(cfg.JoinTokenFile); err != nil {
		t.Fatal(err)
	}
	now = pki.RenewAt(k.shown().Leaf).Add(time.Minute)
	ctl.fail = errors.New("away")
	ready("renewal fails", "", 2, 1)
	ready("not again at once", "", 2, 1)
	ctl.fail = nil
	now = now.Add(renewEvery)
	ready("renewal", "", 2, 2)
	ready("renewed", "", 2, 2)
	now = k.shown().Leaf.NotAfter.Add(time.Hour)
	ready("expired, no token", "read join token", 2, 2)
	put("one")
	ready("expired", "", 3, 2)
	k.Refused(&api.Error{Status: 401, Code: api.CodeUnauthorized})
	ready("forgotten", "", 4, 2)
	ready("known again", "", 4, 2)
	k.Refused(errors.New("no answer"))
	ready("controller away", "", 4, 2)
	cfg.Name = "gpu2"
	restart()
	ready("another name", "", 5, 2)
	for _, f := range []string{"node.key", "node.crt"} {
		if st, err := os.Stat(filepath.Join(cfg.StateDir, f)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, st, err)
		}
	}
	cfg.Controller = "unix:///run/x.sock"
	restart()
	ready("beside the controller", "", 5, 2)
}
