package ctld

import (
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
)

// TestPerUserLimits: who has as much as one user may have is told so, with the
// numbers and the key; others and operators are not held up.
func TestPerUserLimits(t *testing.T) {
	s := newSite(t, func(c *site.Config) {
		c.Operators = byName("op")
		c.Limits.PerUser.Jobs = 2
		c.Limits.Users = map[string]site.PerUser{"bob": {Jobs: 3}}
	})
	submit := func(user string, hold bool) error {
		req := hello(1)
		req.Hold = hold
		_, err := s.user(user).Submit(t.Context(), req, "")
		return err
	}
	for user, most := range map[string]int{"ann": 2, "bob": 3, "op": 5} {
		for range most {
			if err := submit(user, true); err != nil {
				t.Fatalf("%s: %v", user, err)
			}
		}
	}
	err := submit("ann", false)
	if want := "user ann has 2 of at most 2 jobs that are not over (limits.perUser.jobs), and asks for 1 more"; !client.IsCode(err, api.CodeOverLimit) || !strings.Contains(err.Error(), want) {
		t.Errorf("ann's third job: %v, want %q", err, want)
	}
	if err := submit("bob", false); !client.IsCode(err, api.CodeOverLimit) {
		t.Errorf("bob's fourth job: %v", err)
	}
	if _, err := s.user("ann").Action(t.Context(), "release", &api.ActionRequest{User: "ann", State: string(job.OnHold)}); err != nil {
		t.Error(err)
	}
	if err := submit("ann", false); !client.IsCode(err, api.CodeOverLimit) {
		t.Errorf("after she let them go: %v", err)
	}
}

// TestStoredPerDay: what a user has stored within a day counts over a restart, too.
func TestStoredPerDay(t *testing.T) {
	s := newSite(t, func(c *site.Config) {
		c.Operators = byName("op")
		c.Limits.PerUser.DayMiB = 1
	})
	submit := func() error {
		req := hello(1)
		req.Hold = true
		req.Job = []byte(strings.Replace(string(req.Job), `"docker":{`, `"docker":{"environment":{"NOTE":"`+strings.Repeat("x", 100_000)+`"},`, 1))
		_, err := s.user("ann").Submit(t.Context(), req, "")
		return err
	}
	var err error
	for range 20 {
		if err = submit(); err != nil {
			break
		}
	}
	if !client.IsCode(err, api.CodeOverLimit) || !strings.Contains(err.Error(), "limits.perUser.storedMiBPerDay") {
		t.Fatalf("after 2 MB: %v", err)
	}
	s.stop()
	s.start()
	if err := submit(); !client.IsCode(err, api.CodeOverLimit) {
		t.Errorf("after a restart: %v", err)
	}
}
