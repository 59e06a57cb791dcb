package netns

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// maxDumps is how often a list is asked for that changes again and again.
const maxDumps = 50

// whole asks for a list until none of it has changed while the kernel gave it: as others come and go, parts may lack.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range maxDumps {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
