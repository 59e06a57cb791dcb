package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Sweep kills and removes every group below prefix that is not to be kept,
// in every hierarchy, and returns their paths. keep gets a full path such as
// "/gbatch/node1/7.0"; with a group, its subgroups and its parents are kept.
// The prefix group itself stays. Only one daemon may use a prefix.
func Sweep(prefix string, keep func(path string) bool) ([]string, error) {
	if err := checkPath(prefix); err != nil {
		return nil, err
	}
	h, err := Detect()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, point := range h.points() {
		paths, err := notKept(point, prefix, keep)
		if err != nil {
			return nil, err
		}
		found = append(found, paths...)
	}
	slices.Sort(found)
	found = slices.Compact(found)

	var removed []string
	var errs []error
	for _, path := range found {
		g := &Group{host: h, path: path}
		if err := errors.Join(g.Kill(killTimeout), g.Remove()); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, path)
	}
	return removed, errors.Join(errs...)
}

// Below lists the topmost groups below prefix, in every hierarchy.
func Below(prefix string) ([]string, error) {
	if err := checkPath(prefix); err != nil {
		return nil, err
	}
	h, err := Detect()
	if err != nil {
		return nil, err
	}
	return h.below(prefix)
}

func (h *Host) below(prefix string) ([]string, error) {
	var found []string
	for _, point := range h.points() {
		paths, err := notKept(point, prefix, func(string) bool { return false })
		if err != nil {
			return nil, err
		}
		found = append(found, paths...)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// KillBelow ends every process in the groups below prefix, and leaves the groups
// and those that are spared.
func KillBelow(prefix string, spared func(group string) bool) error {
	if err := checkPath(prefix); err != nil {
		return err
	}
	h, err := Detect()
	if err != nil {
		return err
	}
	found, err := h.below(prefix)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, spared)
	var errs []error
	for _, path := range found { // each is sent its signals before one is waited for
		_, err := (&Group{host: h, path: path}).killOnce()
		errs = append(errs, err)
	}
	for _, path := range found {
		errs = append(errs, (&Group{host: h, path: path}).Kill(killTimeout))
	}
	return errors.Join(errs...)
}

// killTimeout is how long a killed process may take to leave the kernel.
const killTimeout = 10 * time.Second

// notKept lists the topmost groups below prefix in one hierarchy that have
// nothing to be kept in or above them.
func notKept(point, prefix string, keep func(string) bool) ([]string, error) {
	root := filepath.Join(point, prefix)
	var all, kept []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || !d.IsDir() || p == root {
			return err
		}
		path := strings.TrimPrefix(p, point)
		if keep(path) {
			kept = append(kept, path)
			return fs.SkipDir
		}
		all = append(all, path)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sweep cgroups below %s: %w", root, err)
	}
	var out []string
	for _, path := range all { // subgroups come directly after their group
		inside := len(out) > 0 && strings.HasPrefix(path, out[len(out)-1]+"/")
		parent := slices.ContainsFunc(kept, func(k string) bool { return strings.HasPrefix(k, path+"/") })
		if !inside && !parent {
			out = append(out, path)
		}
	}
	return out, nil
}
