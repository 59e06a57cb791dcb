package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrNotFrozen says that processes went on for longer than Freeze waits.
var ErrNotFrozen = fmt.Errorf("its processes do not stand still within %v: they wait for something in the kernel, or for a processor", freezeTime)

// freezeTime is how long processes may take to stand still: each has to get a processor
// for a moment, for which many may wait.
const freezeTime = 3 * time.Second

// Freeze makes every process of the group stand still, or go on. It returns when they
// stand still; where they do not, they go on, and the error is ErrNotFrozen.
func (g *Group) Freeze(on bool) error {
	dir, ok := g.host.dir("freezer", g.path)
	if !ok {
		return fmt.Errorf("freeze cgroup %s: no freezer controller on this host", g.path)
	}
	f := freezer{file: filepath.Join(dir, "freezer.state"), frozen: "FROZEN", thawed: "THAWED", events: filepath.Join(dir, "freezer.state"), stands: "FROZEN\n"}
	if g.host.Mode == V2 {
		f = freezer{file: filepath.Join(dir, "cgroup.freeze"), frozen: "1", thawed: "0", events: filepath.Join(dir, "cgroup.events"), stands: "frozen 1\n"}
	}
	err := f.set(on)
	if err != nil && !(gone(err) && !on) {
		return fmt.Errorf("freeze cgroup %s: %w", g.path, err)
	}
	return nil
}

// freezer is what makes one group stand still.
type freezer struct {
	file           string
	frozen, thawed string // what is written to it
	events, stands string // the file that says whether it stands still, and how
}

func (f *freezer) set(on bool) error {
	if !on {
		return os.WriteFile(f.file, []byte(f.thawed), 0)
	}
	deadline := time.Now().Add(freezeTime)
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 50*time.Millisecond) {
		// Each time anew: on v1 a process that was just begun may have missed it.
		if err := os.WriteFile(f.file, []byte(f.frozen), 0); err != nil {
			return err
		}
		now, err := os.ReadFile(f.events)
		if err != nil || strings.Contains(string(now), f.stands) {
			return err
		}
		if time.Now().After(deadline) {
			return errors.Join(ErrNotFrozen, os.WriteFile(f.file, []byte(f.thawed), 0))
		}
		time.Sleep(wait)
	}
}

// thaw lets the group and each group below it run: on v1 a frozen process does
// not die, and a subgroup that was frozen itself does not follow its parent.
func (g *Group) thaw() error {
	dir, ok := g.host.dir("freezer", g.path)
	if !ok || g.host.Mode == V2 {
		return nil
	}
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if gone(err) {
			return nil
		}
		if err != nil || !d.IsDir() {
			return err
		}
		err = os.WriteFile(filepath.Join(p, "freezer.state"), []byte("THAWED"), 0)
		if err != nil && !gone(err) {
			return fmt.Errorf("thaw: %w", err)
		}
		return nil
	})
}
