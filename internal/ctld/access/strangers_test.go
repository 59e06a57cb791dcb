package access

import (
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/ctld/site"
)

// TestStrangers: who is known by the machine's files or its directory service is
// no stranger; where that does not answer, nobody is called one.
func TestStrangers(t *testing.T) {
	c := site.Default()
	c.Admins = site.Members{{User: "root"}, {User: "far-ann"}, {User: "no-bob"}, {Group: "root"}, {Group: "no-lab"}, {Group: "far-lab"}}
	c.Projects[0].UserShares = map[string]int64{}
	for i := range 150 {
		c.Projects[0].UserShares[fmt.Sprintf("u%03d", i)] = 2
	}
	missing := exec.Command("sh", "-c", "exit 2").Run()
	calls := 0
	p := NewPeople(slog.New(slog.DiscardHandler))
	p.run = func(program string, args ...string) (string, error) {
		calls++
		switch strings.Join(append([]string{program}, args[:min(len(args), 5)]...), " ") {
		case "getent group -- no-lab far-lab":
			return "far-lab:*:7001:x,y\n", missing
		case "getent passwd -- far-ann no-bob":
			return "far-ann:x:5001:5001::/:\n", missing
		}
		return "", missing
	}
	want := []string{
		"admins: nobody is in no-lab, which this machine does not know as groups",
		"admins: this machine has no account of no-bob, who can come by tokens alone",
		"projects[0].userShares: this machine has no account of u000, u001, u002, u003, u004, u005, u006, u007 and 142 more, who can come by tokens alone",
	}
	if diff := cmp.Diff(want, p.Strangers(c)); diff != "" || calls != 4 {
		t.Errorf("%d questions, (-want +got):\n%s", calls, diff)
	}
	p.run = func(string, ...string) (string, error) { return "", errors.New("timed out") }
	if got := p.Strangers(c); got != nil {
		t.Errorf("without an answer: %q", got)
	}
}
