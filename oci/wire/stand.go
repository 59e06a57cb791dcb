package wire

import (
	"slices"
	"strings"
)

// Stand is the operation that makes the container's processes stand still, or go on.
func Stand(still bool) string {
	if still {
		return OpPause
	}
	return OpResume
}

// so are the answers of shims from before 2026-11-30 to what was so already.
var so = []string{"container not running", "container not paused", "the container is so already", " in state "}

// UnlessSo is the error of such an operation, if it is one: those shims refuse what is so.
func UnlessSo(err error) error {
	if err != nil && slices.ContainsFunc(so, func(s string) bool { return strings.Contains(err.Error(), s) }) {
		return nil
	}
	return err
}
