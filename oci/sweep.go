package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
)

// SweepRequest says what is ours and what of it is still wanted.
type SweepRequest struct {
	// CgroupPrefix holds all cgroups of this daemon, such as "/gbatch/node1".
	CgroupPrefix string
	// Dirs are the directories that have containers' directories in them.
	Dirs []string
	// Keep says whether a container's directory belongs to a live attempt, or
	// to one whose log is still kept.
	Keep func(dir string) bool
}

// Sweep kills and removes every container below Dirs that is not kept, and
// then every cgroup below the prefix that no remaining container has. It is
// for the daemon's start, after it has adopted what it wants, and returns what
// it removed. One failure does not end it.
func Sweep(r SweepRequest) (removed []string, err error) {
	var errs []error
	wanted := map[string]bool{}
	for _, parent := range r.Dirs {
		entries, err := os.ReadDir(parent)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("sweep: %w", err))
		}
		for _, e := range entries {
			dir := filepath.Join(parent, e.Name())
			if r.Keep(dir) {
				if g, err := groupOf(dir); err == nil {
					wanted[g.Path()] = true
				}
				continue
			}
			if err := sweepDir(dir); err != nil {
				errs = append(errs, err)
				continue
			}
			removed = append(removed, dir)
		}
	}
	groups, err := cgroups.Sweep(r.CgroupPrefix, func(path string) bool { return wanted[path] })
	return append(removed, groups...), errors.Join(append(errs, err)...)
}

// sweepDir ends whatever lives in dir and removes it, also one that Prepare
// did not finish.
func sweepDir(dir string) error {
	_, shim, err := Adopt(dir)
	if err != nil {
		return err
	}
	if shim != nil {
		if err := shim.Kill(); err != nil {
			return fmt.Errorf("sweep %s: %w", dir, err)
		}
		<-shim.Done()
	}
	if err := Cleanup(dir); err != nil {
		return err
	}
	err = os.RemoveAll(dir)
	// A shim that is about to end may write its last file meanwhile.
	for end := time.Now().Add(time.Second); errors.Is(err, unix.ENOTEMPTY) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	return nil
}
