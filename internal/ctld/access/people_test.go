package access

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/ctld/site"
)

// TestPeople: users and groups, those of a directory service too, are asked for
// and remembered for a minute.
func TestPeople(t *testing.T) {
	now, asked := time.Unix(1000, 0), []string{}
	groups := "20 5000"
	p := NewPeople(slog.New(slog.DiscardHandler))
	p.now = func() time.Time { return now }
	p.run = func(program string, args ...string) (string, error) {
		line := program + " " + strings.Join(args, " ")
		asked = append(asked, line)
		switch line {
		case "getent passwd 4000001":
			return "dora:x:4000001:4000001:Dora:/home/dora:/bin/sh\n", nil
		case "id -G -- dora":
			return groups + "\n", nil
		case "getent group -- far-lab":
			return "far-lab:*:5000:\n", nil
		}
		return "", os.ErrNotExist
	}
	list := site.Members{{User: "ann"}, {Group: "far-lab"}, {Group: "no-such-group"}}
	check := func(step string, name string, want bool) {
		t.Helper()
		if got := p.Among(list, name); got != want {
			t.Errorf("%s: %s among them: %t", step, name, got)
		}
	}
	for range 3 {
		if got, err := p.name(4000001); got != "dora" || err != nil {
			t.Errorf("uid 4000001 is %q, %v", got, err)
		}
		check("first", "dora", true)
	}
	if got, err := p.name(4000002); got != "uid4000002" || err != nil {
		t.Errorf("a number without a name is %q, %v", got, err)
	}
	check("first", "ann", true)
	check("first", "eve", false)
	check("first", "far-lab", false)
	if got, err := p.name(0); got != "root" || err != nil {
		t.Errorf("uid 0 is %q, %v", got, err)
	}
	n := len(asked)
	groups = "20"
	check("within a minute", "dora", true)
	if len(asked) != n {
		t.Errorf("asked again for %v", asked[n:])
	}
	now = now.Add(keepPeople + time.Second)
	check("a minute later", "dora", false)
}

// TestPeopleUnknown: who cannot be looked up is nobody, not a user called after
// the number, and is asked for again.
func TestPeopleUnknown(t *testing.T) {
	tests := map[string]struct {
		script, want string
		status       int
	}{
		"no entry":   {"exit 2", "uid4000003", 0},
		"an entry":   {"echo eve:x:4000003:1::/:/bin/sh", "eve", 0},
		"failure":    {"exit 1", "", 503},
		"empty":      {"exit 0", "", 503},
		"not at all": {"kill -9 $$", "", 503},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := NewPeople(slog.New(slog.DiscardHandler))
			p.run = func(string, ...string) (string, error) { return runProgram("sh", "-c", tc.script) }
			got, err := p.name(4000003)
			if got != tc.want || (err != nil) != (tc.status != 0) || err != nil && err.Status != tc.status {
				t.Errorf("%q, %v", got, err)
			}
			if tc.status == 0 {
				return
			}
			p.run = func(string, ...string) (string, error) { return "eve:x:4000003:1::/:/bin/sh", nil }
			if got, err := p.name(4000003); got != "eve" || err != nil {
				t.Errorf("when the directory is back: %q, %v", got, err)
			}
		})
	}
}

// TestNumbersForNames: who is called by a number has nothing of the account that has
// this number: neither its groups nor its number.
func TestNumbersForNames(t *testing.T) {
	p := NewPeople(slog.New(slog.DiscardHandler))
	if p.Among(site.Members{{Group: "root"}}, "0") || p.Among(site.Members{{Group: "daemon"}}, "1") {
		t.Error("a user with a number for a name is in the groups of the account with that number")
	}
	for _, name := range []string{"0", "1", "no-such-user"} {
		if uid, err := p.Account(name); uid != nil || err != nil {
			t.Errorf("%s is an account: %v, %v", name, uid, err)
		}
	}
	if uid, err := p.Account("daemon"); err != nil || uid == nil || *uid != 1 {
		t.Errorf("daemon is %v, %v", uid, err)
	}
}

// TestAccountUnknown: an account that cannot be looked up is an error, and asked for
// again; one that is not there is none.
func TestAccountUnknown(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		none   bool
	}{
		"no entry":   {"exit 2", true},
		"of another": {"echo eve:x:1:1::/:/bin/sh", true},
		"failure":    {"exit 1", false},
		"empty":      {"exit 0", false},
		"not at all": {"kill -9 $$", false},
		"no number":  {"echo far-away:x:many:1::/:/bin/sh", false},
	} {
		p := NewPeople(slog.New(slog.DiscardHandler))
		p.run = func(string, ...string) (string, error) { return runProgram("sh", "-c", tc.script) }
		uid, err := p.Account("far-away")
		if uid != nil || (err == nil) != tc.none || err != nil && err.Status != 503 || p.UID("far-away") != nil {
			t.Errorf("%s: %v, %v", name, uid, err)
		}
		p.run = func(string, ...string) (string, error) { return "far-away:x:4000003:1::/:/bin/sh", nil }
		if uid, err := p.Account("far-away"); !tc.none && (err != nil || uid == nil || *uid != 4000003) {
			t.Errorf("%s, when the directory is back: %v, %v", name, uid, err)
		}
	}
}

// TestDirectoryAway: while names cannot be looked up, requests without end write a
// line when it begins and one a minute, and a last one when it is over. Many that
// ask at once have one program asked for each user, and few programs in all.
func TestDirectoryAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewPeople(slog.New(slog.NewTextHandler(&out, nil)))
		away, running, most, asked := true, 0, 0, 0
		var mu sync.Mutex
		p.run = func(_ string, args ...string) (string, error) {
			mu.Lock()
			running++
			asked++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			running--
			if away {
				return "", errors.New("directory is away")
			}
			return "eve:x:1:1::/:/bin/sh", nil
		}
		rush := func() {
			var all sync.WaitGroup
			for i := range 1000 {
				all.Go(func() { _, _ = p.name(4_000_000 + uint32(i%40)) }) // ends when it is answered
			}
			all.Wait()
		}
		for began := time.Now(); time.Since(began) < 150*time.Second; {
			rush()
		}
		if asked > 40*60 || most > programsAtOnce {
			t.Errorf("%d programs ran, %d at once", asked, most)
		}
		away = false
		rush()
		if got := strings.Count(out.String(), "cannot be looked up"); got != 3 {
			t.Errorf("%d lines say that it goes on, want 3:\n%s", got, &out)
		}
		if got := strings.Count(out.String(), "can be looked up again"); got != 1 {
			t.Errorf("%d lines say that it is over, want 1", got)
		}
	})
}
