package e2e

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"gbatch/internal/e2e/crash"
)

// TestFailingSyncs: a controller whose disk does not sync what is written to the common log, or to its store, ends and says so,
// whether it leads or follows; what was acknowledged is there, and it takes part again when its disk is whole.
func TestFailingSyncs(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("NOT TESTED: calls are refused on amd64 alone")
	}
	t.Parallel()                       // it mostly waits
	var failing atomic.Pointer[string] // what the files' paths have
	tracer := &crash.Tracer{Name: programs, Refuse: func(_, call string) syscall.Errno {
		if of := failing.Load(); of != nil && strings.Contains(call, "sync ") && strings.Contains(call, *of) {
			return syscall.EIO
		}
		return 0
	}}
	c := newSeveral(t, siteOptions{made: func(s *site) { s.ctld.tracer = tracer }}, nil, nil)
	first, ids := c.all[0], []string{}
	submit := func() { ids = append(ids, c.as("gsubmit", c.s.write(doc{command: sh("true")}.json()))) }
	submit()
	for _, of := range []string{"/replica/", "/store/"} {
		for _, leads := range []bool{true, false} {
			what := fmt.Sprintf("%s, leads %t", of, leads)
			eventually(t, what, func() bool {
				i := c.leader()
				if leads == (i == 0) {
					return true
				}
				c.s.runOn(c.socket(i), "gadm", "controllers", "transfer", map[bool]string{true: "c1", false: "c2"}[leads])
				return false
			})
			failing.Store(&of)
			submit()
			eventually(t, what+": it has ended", func() bool { return !first.running() })
			if end := tail(first.log, 40); !strings.Contains(end, "input/output error") {
				t.Errorf("%s: its log ends with\n%s", what, end)
			}
			failing.Store(nil)
			_ = first.stop() // it has ended
			submit()
			first.start()
			c.wholly()
		}
	}
	c.as("gqueue", append([]string{"wait"}, ids...)...)
	if want := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}; !slices.Equal(ids, want) {
		t.Errorf("numbers %q, want %q", ids, want)
	}
	c.first()
}
