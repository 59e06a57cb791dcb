package storage

import (
	"os"
	"strconv"

	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/rights"
)

// OpenRoot opens a directory of a job's storage for what the daemon reads and
// writes there itself, which it does with the tenant's rights. Nothing that is
// done with the result leaves it, whatever links other users make there
// meanwhile. For writing missing directories are made.
func (s *Roots) OpenRoot(hostPath string, who Tenant, write bool) (*os.Root, error) {
	root, rest, err := s.find(hostPath)
	if err != nil {
		return nil, err
	}
	if write && root.ReadOnly {
		return nil, reason.Errorf(job.Mount, "storage %q can only be read", root.Name)
	}
	h, err := who.open(root, rest, write)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return RootOf(h, who.Rights)
}

// RootOf makes a root of a handle on a directory. Below it the kernel asks
// anew for each step; a file server may let only the user open it at all, and
// one that may be passed and not listed only the daemon can.
func RootOf(h *os.File, as rights.Rights) (root *os.Root, err error) {
	open := func() error {
		root, err = os.OpenRoot("/proc/self/fd/" + strconv.Itoa(int(h.Fd())))
		return err
	}
	if as.Do(open) != nil {
		err = open()
	}
	return root, err
}
