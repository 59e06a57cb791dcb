package storage

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Shown is something of the node's that a program has mounted.
type Shown struct {
	Target, Source string
	Storage        string // of the site, as the job has it; "": none
	Memory         int64  // bytes of a file system in memory, which has no source before it is made
	ReadOnly       bool
	Later          bool // what it shows is found when the program begins

	on   *Shown // it is mounted on what that shows, and comes into the container with it
	base bool   // others are mounted on what it shows
}

// Shows is all that a program has mounted.
type Shows []*Shown

// Add adds what is mounted on a place of the container.
func (l *Shows) Add(s Shown) {
	s.Target = path.Clean(s.Target)
	*l = append(*l, &s)
}

// bottom is what the container mounts to see it.
func (s *Shown) bottom() *Shown {
	for s.on != nil {
		s = s.on
	}
	return s
}

// above is what a path of the container lies in; nil: its image.
func (l Shows) above(p string) (found *Shown) {
	for _, s := range l {
		rel, err := filepath.Rel(s.Target, p)
		if err == nil && rel != "." && filepath.IsLocal(rel) && (found == nil || len(s.Target) > len(found.Target)) {
			found = s
		}
	}
	return found
}

// Nest mounts what lies in a directory of the site's storage on what shows that. All else
// the container mounts by itself, and makes the places for it. The
// names of file systems in memory that are made for it begin with place.
func (l Shows) Nest(who Tenant, place string) error {
	list := slices.SortedStableFunc(slices.Values(l), func(x, y *Shown) int {
		return cmp.Compare(strings.Count(x.Target, "/"), strings.Count(y.Target, "/"))
	})
	for i, s := range list {
		on := l.above(s.Target)
		if on == nil || on.bottom().Storage == "" || s.Later {
			continue
		}
		if s.Source == "" {
			s.Source = place + strconv.Itoa(i)
			if err := MakeMemory(s.Source, "1777", s.Memory); err != nil {
				return err
			}
		}
		if err := s.put(who, on); err != nil {
			return err
		}
	}
	return nil
}

// MakeMemory makes a file system in memory.
func MakeMemory(at, mode string, bytes int64) error {
	err := os.MkdirAll(at, 0o700)
	if err == nil {
		err = unix.Mount("gbatch", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=%s,size=%d", mode, bytes))
	}
	if err != nil {
		return fmt.Errorf("make a file system in memory: %w", err)
	}
	return nil
}

// Cover mounts a file of the job's, for reading only, if it lies in something else that is
// mounted. By itself says that the container has to mount it.
func (l Shows) Cover(who Tenant, target, source string) (byItself bool, err error) {
	on := l.above(target)
	if on.bottom().Storage == "" {
		return true, nil
	}
	s := &Shown{Target: target, Source: source, ReadOnly: true}
	return false, s.put(who, on)
}

// Covers says whether a path lies in something that is mounted.
func (l Shows) Covers(target string) bool { return l.above(target) != nil }

// put mounts it on what shows another.
func (s *Shown) put(who Tenant, on *Shown) error {
	bottom := on.bottom()
	b := base{place: bottom.Source, name: bottom.Storage, who: who}
	if !bottom.base {
		if err := b.begin(bottom.ReadOnly); err != nil {
			return fmt.Errorf("mount on storage: %w", err)
		}
		bottom.base = true
	}
	rel, err := filepath.Rel(bottom.Target, s.Target)
	if err != nil {
		return err
	}
	s.on = on
	return b.mount(rel, s.Source, s.ReadOnly)
}

// Nested says that it comes into the container with something else.
func (s *Shown) Nested() bool { return s.on != nil }

// Nested says the same of what is mounted on a place of the container.
func (l Shows) Nested(target string) bool {
	return slices.ContainsFunc(l, func(s *Shown) bool { return s.Nested() && s.Target == path.Clean(target) })
}

// MustProtect says that the container has to make it read-only: what else is mounted on it
// may not be, and then it is so already.
func (s *Shown) MustProtect() bool { return s.ReadOnly && !s.base }
