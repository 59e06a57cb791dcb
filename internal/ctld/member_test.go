package ctld

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/pki"
)

// TestRefer: who asks a controller that does not lead, as to drain a node, is told that nothing was done, who leads,
// and an address by which whoever leads is found.
func TestRefer(t *testing.T) {
	for name, tc := range map[string]struct {
		advertise, leader string
		want              []string
	}{
		"all are known": {"c1:7077,c2:7077", "c1", []string{"this is controller c2, and c1 leads: nothing was done", "--controller 'https://c1:7077,c2:7077#sha256=x'"}},
		"itself alone":  {"c2:7077", "c1", []string{"and c1 leads", "`gadm join-string`"}},
		"it loads":      {"c1:7077,c2:7077", "c2", []string{"controller c2 is about to lead", "try again"}},
		"nobody leads":  {"c1:7077,c2:7077", "", []string{"no controller leads at the moment", "too few of the controllers run"}},
	} {
		e := referral(site.Config{Advertise: tc.advertise, Replica: &site.Replica{Name: "c2"}}, tc.leader, "sha256=x")
		for _, want := range tc.want {
			if text := e.Message + "; " + e.Hint; e.Code != api.CodeElsewhere || e.Status != 421 || !strings.Contains(text, want) {
				t.Errorf("%s: %d %s: %s, want %q", name, e.Status, e.Code, text, want)
			}
		}
	}
}

// TestListenHint: a name that cannot be looked up is told apart from an address that is used.
func TestListenHint(t *testing.T) {
	unknown := fmt.Errorf("listen: %w", &net.OpError{Op: "listen", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "c1"}})
	if got := listenHint("replica.listen", unknown); !strings.Contains(got, "look-up of names") || !strings.Contains(got, "`replica.listen`") {
		t.Errorf("of a name that is not known: %s", got)
	}
	if got := listenHint("listen", errors.New("address already in use")); !strings.Contains(got, "stop what uses it") {
		t.Errorf("of an address that is used: %s", got)
	}
}

// TestEmptiedMember: one of several controllers whose directory was emptied makes no keys of its own, and says what to do. The
// first one of a new site starts when `gctld init` has made them.
func TestEmptiedMember(t *testing.T) {
	c := site.Default()
	c.Dir, c.Listen, c.Replica = filepath.Join(t.TempDir(), "c1"), "127.0.0.1:0", &site.Replica{Name: "c1", Listen: "127.0.0.1:7078"}
	c.Socket = filepath.Join(t.TempDir(), "s")
	source := func() (site.Config, error) { return c, nil }
	log := slog.New(slog.DiscardHandler)
	for _, made := range []bool{false, true} {
		if made {
			if err := os.Mkdir(c.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		_, err := OpenMember(source, nil, log)
		for _, want := range []string{"gadm controllers remove c1", "gctld init --join FILE", "first controller of a new site"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("directory: %t: %v, want %q", made, err, want)
			}
		}
		if there, err := pki.Exists(c.Dir); there || err != nil {
			t.Errorf("directory: %t: it has keys: %t, %v", made, there, err)
		}
	}
	if _, err := Init(c); err != nil {
		t.Fatal(err)
	}
	if err := hasKeys(c); err != nil {
		t.Errorf("after init: %v", err)
	}
}
