package ctld

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
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
