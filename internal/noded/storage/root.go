package storage

import (
	"os"
	"strconv"

	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
)

// OpenRoot opens a directory of a job's storage for what the daemon reads and
// writes there itself. Nothing that is done with the result leaves it, whatever
// links other users make there meanwhile. For writing missing directories are
// made, below what has to be there.
func (s *Roots) OpenRoot(hostPath string, who Tenant, write bool) (*os.Root, error) {
	root, rest, err := s.find(hostPath)
	if err != nil {
		return nil, err
	}
	if write && root.ReadOnly {
		return nil, reason.Errorf(job.Mount, "storage %q can only be read", root.Name)
	}
	top, err := expand(root.Path, who)
	if err != nil {
		return nil, err
	}
	make := who.maker(root.Path, uint32(root.Mode))
	if write && root.Create {
		if err := make.base(root.Path, top); err != nil {
			return nil, reason.Errorf(job.Mount, "cannot make %s for storage %q on this node: %v", root.Name, hostPath, plain(err))
		}
	}
	h, err := make.resolve(top, rest, write)
	if err != nil {
		return nil, explainOpen(hostPath, root, err)
	}
	defer h.Close()
	return RootOf(h)
}

// RootOf makes a root of a handle on a directory.
func RootOf(h *os.File) (*os.Root, error) {
	return os.OpenRoot("/proc/self/fd/" + strconv.Itoa(int(h.Fd())))
}
