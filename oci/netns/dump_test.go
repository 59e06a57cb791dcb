package netns

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
)

// TestWhole: a list that changed meanwhile is asked for again, but not for ever, and another error is told.
func TestWhole(t *testing.T) {
	other := errors.New("no permission")
	for name, tc := range map[string]struct {
		answers []error // the last one for all that follow
		asked   int
		want    error
	}{
		"at once":    {[]error{nil}, 1, nil},
		"then":       {[]error{netlink.ErrDumpInterrupted, netlink.ErrDumpInterrupted, nil}, 3, nil},
		"never":      {[]error{netlink.ErrDumpInterrupted}, maxDumps, netlink.ErrDumpInterrupted},
		"not at all": {[]error{netlink.ErrDumpInterrupted, other}, 2, other},
	} {
		asked := 0
		list, err := whole(func() ([]int, error) {
			err := tc.answers[min(asked, len(tc.answers)-1)]
			asked++
			return []int{asked}, err
		})
		if asked != tc.asked || !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: asked %d times, %v", name, asked, err)
		}
		if diff := cmp.Diff([]int{tc.asked}, list); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
