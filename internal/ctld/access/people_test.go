package access

import (
	"log/slog"
	"os"
	"strings"
	"testing"
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
		if got := p.name(4000001); got != "dora" {
			t.Errorf("uid 4000001 is %q", got)
		}
		check("first", "dora", true)
	}
	if got := p.name(4000002); got != "uid4000002" {
		t.Errorf("a number without a name is %q", got)
	}
	check("first", "ann", true)
	check("first", "eve", false)
	check("first", "far-lab", false)
	if p.name(0) != "root" {
		t.Errorf("uid 0 is %q", p.name(0))
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
