package oci

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/annex"
	"gbatch/oci/atomicfile"
	"gbatch/oci/changes"
	"gbatch/oci/held"
	"gbatch/oci/rmtree"
	"gbatch/oci/stage"
	"gbatch/oci/userns"
)

// ErrAlive says that a directory cannot be cleaned while its shim lives.
var ErrAlive = errors.New("the container is alive; stop it first")

// Cleanup removes what a container without a shim left on the host: its processes, cgroup, mounts and its own writes, which may
// take long. What is kept are the log, the result and the description. It can be repeated, and works after a crash at any point.
func Cleanup(dir string) error { return cleanup(dir, false) }

// CleanupEarlier is Cleanup for a container of an earlier boot of the machine, of which nothing lives. A loss of power may have
// left its description empty, which is removed then: what it wrote in a scratch directory goes with that.
func CleanupEarlier(dir string) error { return cleanup(dir, true) }

func cleanup(dir string, earlier bool) error {
	if !exists(filepath.Join(dir, fileShim)) {
		return nil
	}
	if err := clean(dir, earlier); err != nil {
		return fmt.Errorf("clean up container %s: %w", filepath.Base(dir), err)
	}
	return nil
}

func clean(dir string, earlier bool) error {
	lock, err := held.TakeWithin(dir, held.Passing)
	if errors.Is(err, held.ErrHeld) {
		return ErrAlive
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	cfg, err := readShim(dir)
	lost := err != nil && earlier
	if err == nil {
		err = killLeftovers(dir)
	}
	if err != nil && !lost {
		return err
	}
	if err := stage.UnmountLeft(filepath.Join(dir, dirRootfs)); err != nil {
		return err
	}
	if cfg.ID != "" { // else what it wrote goes with its scratch directory
		scratch := cmp.Or(cfg.Scratch, dir)
		for i := range cfg.others() {
			if err := stage.Remove(scratch, partID(cfg.ID, i)); err != nil {
				return err
			}
		}
		if err := errors.Join(annex.Remove(scratch, cfg.ID), stage.Remove(scratch, cfg.ID), rmtree.Remove(tmpDir(scratch, cfg.ID))); err != nil {
			return err
		}
	}
	err = errors.Join(
		os.RemoveAll(filepath.Join(dir, dirState)), os.RemoveAll(filepath.Join(dir, dirRoom)),
		// Empty by now; if a mount were still on it, this would fail and not reach into the image.
		rmtree.Empty(filepath.Join(dir, dirRootfs)),
		rmtree.Empty(filepath.Join(dir, dirScratch)),
		rmtree.File(filepath.Join(dir, fileSocket)),
	)
	if err == nil && lost {
		err = os.Remove(filepath.Join(dir, fileShim)) // so that nobody reads it again
	}
	return err
}

// Remove is Cleanup and then removes the directory with log and result.
func Remove(dir string) error {
	if err := Cleanup(dir); err != nil {
		return err
	}
	return rmtree.Remove(dir)
}

// Written is the directory of what a container that has ended wrote in its own file system, over its image: whatever lies there is
// the user's doing. It is there until Cleanup.
func Written(dir string) (string, error) {
	cfg, err := readShim(dir)
	if err != nil {
		return "", fmt.Errorf("find what the container wrote: %w", err)
	}
	upper, _ := stage.Written(cmp.Or(cfg.Scratch, dir), cfg.ID)
	return upper, nil
}

// Changes is what a container has written over its image so far, but for what was
// mounted or made for it. It is complete while the container stands still.
func Changes(dir string) (changes.Container, error) {
	var cfg ShimConfig
	var spec specs.Spec
	if err := errors.Join(atomicfile.ReadJSON(filepath.Join(dir, fileShim), &cfg), atomicfile.ReadJSON(filepath.Join(dir, fileSpec), &spec)); err != nil {
		return changes.Container{}, fmt.Errorf("find what the container wrote: %w", err)
	}
	if r := cfg.Runtime; r != nil && r.Kind.Sandboxed() {
		return changes.Container{}, errors.New("what a container of this runtime writes is not to be seen from outside of it")
	}
	upper, _ := stage.Written(cmp.Or(cfg.Scratch, dir), cfg.ID)
	out := changes.Container{Upper: upper, Skip: []string{"/dev", "/proc", "/sys"}}
	if spec.Linux != nil {
		out.IDs = userns.Map{UIDs: spec.Linux.UIDMappings, GIDs: spec.Linux.GIDMappings}
	}
	for _, m := range spec.Mounts {
		out.Skip = append(out.Skip, filepath.Clean(m.Destination))
	}
	for _, f := range cfg.Files {
		out.Skip = append(out.Skip, filepath.Clean(f.Path))
	}
	return out, nil
}
