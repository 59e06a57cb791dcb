package noded

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// removeGroups removes the cgroups that ranks' groups are made in, so that a
// node that is idle leaves nothing when it stops. One that is not empty stays:
// a container lives in it, or another daemon of this machine uses it.
func (a *Agent) removeGroups() {
	for _, point := range a.host.cgroups.Mounts {
		dir := filepath.Join(point, a.cgroupPrefix())
		if unix.Rmdir(dir) == nil {
			_ = unix.Rmdir(filepath.Dir(dir))
		}
	}
}
