package disk

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// area is a file system on which ranks write.
type area struct {
	dir   string // on it, the node's own
	dev   uint64
	size  int64
	lacks error // why it holds no project to its bound; nil: it does
}

func openArea(dir string, dev uint64) (*area, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return nil, fmt.Errorf("look at %s: %w", dir, err)
	}
	return &area{dir: dir, dev: dev, lacks: tryQuotas(dir), size: int64(fs.Blocks) * fs.Bsize}, nil
}

// count is what a project uses, and at most may.
func (a *area) count(id project) (dqblk, error) {
	dir, err := os.Open(a.dir)
	if err != nil {
		return dqblk{}, err
	}
	defer dir.Close()
	return count(dir, id)
}

// bound bounds a project; 0 takes its bounds back.
func (a *area) bound(id project, bytes, files int64) error {
	dir, err := os.Open(a.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return bound(dir, id, bytes, files)
}

// free is how much jobs can still write.
func (a *area) free() (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(a.dir, &fs); err != nil {
		return 0, fmt.Errorf("look at %s: %w", a.dir, err)
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}

// runLock keeps the daemons of a machine from choosing the same project.
const runLock = "/run/gbatch/projects"

func lockProjects() (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(runLock), 0o711); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(runLock, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			f.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", runLock, err)
	}
	return f, nil
}

// assign has what is made in directories of one file system from now on counted
// by a project that nobody else has. If the first has one of ours, it is that.
func assign(paths []string) (project, error) {
	lock, err := lockProjects()
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	id := projectAt(paths[0])
	if !id.ours() {
		id, err = freeProject(paths[0])
	}
	for _, path := range paths {
		if err == nil {
			err = setProjectAt(path, id)
		}
	}
	return id, err
}

// freeProject is one that nothing is counted by and that has no bounds.
func freeProject(path string) (project, error) {
	dir, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	h := fnv.New32a()
	h.Write([]byte(path))
	for i := range uint32(projects) {
		id := firstProject + project((h.Sum32()+i)%projects)
		q, err := count(dir, id)
		if err != nil {
			return 0, err
		}
		if q.Inodes == 0 && q.Bytes == 0 && q.HardBlocks == 0 && q.HardInodes == 0 {
			return id, nil
		}
	}
	return 0, fmt.Errorf("all %d projects of the file system at %s are taken", projects, path)
}

func (id project) ours() bool { return id >= firstProject && id < firstProject+projects }

// sweepProjects takes back the bounds of projects of ours that nothing is
// counted by any more: a crash leaves them.
func sweepProjects(path string) error {
	lock, err := lockProjects()
	if err != nil {
		return err
	}
	defer lock.Close()
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	for id := project(firstProject); id.ours(); id++ {
		var q dqblk
		err := quotactl(dir, nextQuota, id, &q)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list quotas: %w", err)
		}
		if id = project(q.ID); id.ours() && q.Inodes == 0 && q.HardBlocks > 0 {
			if err := bound(dir, id, 0, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// tryQuotas tries whether the file system at path holds a project to its bound.
// The error says what it lacks.
func tryQuotas(path string) error {
	top, err := os.MkdirTemp(path, ".quota-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	id, err := assign([]string{top})
	if err != nil {
		return err
	}
	dir, err := os.Open(top)
	if err != nil {
		return err
	}
	defer dir.Close()
	defer func() { _ = bound(dir, id, 0, 0) }() // sweepProjects does else
	if err := bound(dir, id, 64<<10, 16); err != nil {
		return err
	}
	done := make(chan error)
	go func() { // ends before tryQuotas does, and its thread with it
		runtime.LockOSThread()
		done <- overfill(filepath.Join(top, "f"))
	}()
	return <-done
}

// overfill writes more than a project may, as containers do: without the right
// of root to write beyond a quota. overlayfs takes that right away by itself.
func overfill(path string) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	caps[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
	if err := unix.Capset(&header, &caps[0]); err != nil {
		return fmt.Errorf("set capabilities: %w", err)
	}
	err := os.WriteFile(path, make([]byte, 1<<20), 0o600)
	switch {
	case errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.ENOSPC):
		return nil
	case err == nil:
		return errors.New("it counts projects, and does not bound them")
	}
	return err
}
