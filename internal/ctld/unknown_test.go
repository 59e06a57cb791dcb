package ctld

import (
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
)

// TestUnknownUser: a list of the jobs of somebody of whom the site has never heard says
// so; of somebody with a token, an account, a place in the rules or a job it does not.
func TestUnknownUser(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Operators = byName("listed-oda") })
	if _, err := s.CreateToken(t.Context(), api.TokenRequest{Use: api.TokenUser, User: "token-tom"}); err != nil {
		t.Fatal(err)
	}
	list := func(name string) *api.JobList {
		l, err := s.Jobs(t.Context(), client.JobFilter{User: name, All: true})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for name, want := range map[string]bool{"root": false, "token-tom": false, "listed-oda": false, "no-such-user": true, "0": true, "": false} {
		l := list(name)
		for until := time.Now().Add(time.Minute); want && !l.NoUser && time.Now().Before(until); { // the machine may be too busy to say
			l = list(name)
		}
		if l.NoUser != want {
			t.Errorf("%q: unknown %t, want %t", name, l.NoUser, want)
		}
	}
}
