package oci

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// stage is where a container is put together: a file system in memory, in the
// mount namespace of its shim's thread alone, with which it goes. Root of a
// container is nobody special on the host: it may not pass through the
// directories that lead to its own.
const stage = "/run/gbatch/stage"

// What lies there beside the spec, for hooks.
const (
	stageRootfs = stage + "/" + dirRootfs // the root file system
	stageState  = stage + "/" + dirState  // libcontainer's files
)

// stageMode lets the container's root pass.
const stageMode = 0o711

func makeStage() error {
	if err := os.MkdirAll(stage, stageMode); err != nil {
		return err
	}
	if err := unix.Mount("gbatch", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=16m,mode=711"); err != nil {
		return fmt.Errorf("make a place for the container on %s: %w", stage, err)
	}
	return os.Mkdir(stageRootfs, stageMode)
}

// seenByAll is a path to what lies on the stage for threads that do not have
// this one's mounts, as long as this one lives.
func seenByAll(path string) string {
	return fmt.Sprintf("/proc/self/task/%d/root%s", unix.Gettid(), path)
}

// bundle puts the spec on the stage if there are hooks, which look for it there.
// Those that run in the container's namespaces are its root.
func (s *shim) bundle() error {
	h := s.spec.Hooks
	if h == nil {
		return nil
	}
	text, err := os.ReadFile(fileSpec)
	if err != nil {
		return err
	}
	at := filepath.Join(stage, fileSpec)
	if err := os.WriteFile(at, text, 0o400); err != nil {
		return fmt.Errorf("show hooks the spec: %w", err)
	}
	if uid, gid, ok := s.received.ids.Host(0, 0); ok && s.received.user != nil {
		return os.Chown(at, uid, gid)
	}
	return nil
}
