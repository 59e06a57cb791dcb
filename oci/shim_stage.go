package oci

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gbatch/oci/rootfs"
	"gbatch/oci/stage"
)

// File is a small file that a container finds in place of its image's, and may
// change: it is one of those that it writes itself.
type File = rootfs.File

// What lies on the stage beside the spec, for hooks.
const (
	stageRootfs = stage.Dir + "/" + dirRootfs // the root file system
	stageState  = stage.Dir + "/" + dirState  // libcontainer's files
)

// seenByAll is a path to what lies on the stage for threads that do not have
// this one's mounts, as long as this one lives.
func seenByAll(path string) string {
	return fmt.Sprintf("/proc/self/task/%d/root%s", unix.Gettid(), path)
}

// bundle puts the part's spec on the stage if there are hooks, which look for it there.
// Those that run in the container's namespaces are its root. What was handed over is not in it.
func (p *part) bundle(s *shim) error {
	if p.hooked == nil {
		return nil
	}
	at := filepath.Join(stage.Dir, fileSpec)
	if err := os.WriteFile(at, p.hooked, 0o400); err != nil {
		return fmt.Errorf("show hooks the spec: %w", err)
	}
	if uid, gid, ok := s.received.IDs.Host(0, 0); ok && s.received.User != nil {
		return os.Chown(at, uid, gid)
	}
	return nil
}

// keepForHooks keeps the spec as it is before variables were handed over.
func (p *part) keepForHooks() (err error) {
	if p.Spec.Hooks != nil {
		p.hooked, err = json.Marshal(p.Spec)
	}
	return err
}
