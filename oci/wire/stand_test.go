package wire

import (
	"errors"
	"testing"
)

// TestUnlessSo: shims of before refuse what is so already; that is no error, and all else is.
func TestUnlessSo(t *testing.T) {
	for answer, so := range map[string]bool{
		"pause: container not running":                            true,
		"resume: container not paused":                            true,
		"pause: the container is so already":                      true,
		`pause: cannot pause container "1_0.1.0" in state paused`: true,
		"pause: unable to freeze":                                 false,
		"pause: freeze cgroup /a: its processes do not stand still within 3s: they wait for something in the kernel, or for a processor": false,
		"pause: the container does not run": false,
	} {
		if err := UnlessSo(errors.New(answer)); (err == nil) != so {
			t.Errorf("%s: got %v", answer, err)
		}
	}
	if err := UnlessSo(nil); err != nil {
		t.Error(err)
	}
}
