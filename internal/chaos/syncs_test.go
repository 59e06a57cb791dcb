package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Nodes' files are true ones, in which nobody sees what was synced. So the kernel is asked to tell of each sync that this process
// makes (seccomp's notifications), and who makes it waits until it was noted what the file or the directory is then. That is
// what a power cut leaves for sure.

// fileID is a file or a directory, whatever name it has.
type fileID struct {
	inode uint64
	born  unix.StatxTimestamp
}

// named is what a name in a directory is of.
type named struct {
	id  fileID
	dir bool
}

// platter is what of a directory, and of all below it, survives a power cut.
type platter struct {
	root   string
	leaves func(path string) bool // a planted bug: this sync is left out; nil: none is

	mu    sync.Mutex
	files map[fileID][]byte
	dirs  map[fileID]map[string]named
}

// platters has all that there are, by their roots.
var platters sync.Map

func newPlatter(root string, leaves func(path string) bool) *platter {
	p := &platter{root: root, leaves: leaves, files: map[fileID][]byte{}, dirs: map[fileID]map[string]named{}}
	platters.Store(root, p)
	return p
}

// synced notes what a file or a directory is.
func (p *platter) synced(path string) error {
	if p.leaves != nil && p.leaves(path) {
		return nil
	}
	is, err := look(path)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if is.dir {
		p.dirs[is.id], err = names(path)
	} else {
		p.files[is.id], err = os.ReadFile(path)
	}
	return err
}

func look(path string) (named, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	if err != nil {
		return named{}, fmt.Errorf("look at %s: %w", path, err)
	}
	return named{fileID{st.Ino, st.Btime}, st.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

// names are those in a directory.
func names(path string) (map[string]named, error) {
	list, err := os.ReadDir(path)
	out := map[string]named{}
	for _, e := range list {
		if out[e.Name()], err = look(filepath.Join(path, e.Name())); err != nil {
			return nil, err
		}
	}
	return out, err
}

// cut is a power cut. Of what was not synced the names in a directory are there or not, all of them, and of what was written to
// a file nothing, a part, or zeros in its place. Changed are the files whose content is another one than before.
func (p *platter) cut(r *rand.Rand) (changed []string, err error) {
	root, err := look(p.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := powerCut{platter: p, draw: r}
	if err == nil {
		err = c.dir(p.root, root.id)
	}
	return c.changed, err
}

// powerCut is one under way.
type powerCut struct {
	*platter
	draw    *rand.Rand
	changed []string
}

func (c *powerCut) dir(path string, id fileID) error {
	there, err := names(path)
	if err != nil {
		return err
	}
	left := there
	if c.draw.IntN(2) == 0 {
		left = c.dirs[id]
	}
	for name, is := range there {
		if left[name] != is {
			if err := os.RemoveAll(filepath.Join(path, name)); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		at, is := filepath.Join(path, name), left[name]
		switch {
		case is.dir && there[name] == is:
			err = c.dir(at, is.id)
		case is.dir:
			if err = os.Mkdir(at, 0o700); err == nil {
				err = c.dir(at, is.id) // nothing is there, and what was synced comes back or not
			}
		default:
			err = c.file(at, is.id, there[name] == is)
		}
		if err != nil {
			return err
		}
	}
	return c.noted(path)
}

// noted has what is left be what is on the disk.
func (p *platter) noted(dir string) error {
	is, err := look(dir)
	if err == nil {
		p.dirs[is.id], err = names(dir)
	}
	return err
}

func (c *powerCut) file(path string, id fileID, there bool) error {
	sure := c.files[id]
	text := sure
	if there {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return err
		}
	}
	left := torn(sure, text, c.draw)
	if !bytes.Equal(left, text) {
		c.changed = append(c.changed, path)
	}
	if !bytes.Equal(left, text) || !there {
		if err := os.WriteFile(path, left, 0o600); err != nil {
			return err
		}
	}
	is, err := look(path)
	c.files[is.id] = left
	return err
}

// torn is what a power cut leaves of a file of which some is synced.
func torn(sure, text []byte, r *rand.Rand) []byte {
	if bytes.Equal(sure, text) {
		return text
	}
	same := 0
	for same < min(len(sure), len(text)) && sure[same] == text[same] {
		same++
	}
	to := same + r.IntN(len(text)-same+1)
	left := slices.Clone(text[:to])
	if to < len(sure) {
		left = append(left, sure[to:]...)
	}
	if r.IntN(3) == 0 {
		left = append(left, make([]byte, max(0, len(text)-len(left)))...)
	}
	return left
}

// noticeSyncs has the kernel tell of each sync of this process from now on.
func noticeSyncs() error {
	runtime.LockOSThread() // whose filter all others get
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const number, tells, passes = 0, unix.SECCOMP_RET_USER_NOTIF, unix.SECCOMP_RET_ALLOW
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FSYNC, Jt: 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FDATASYNC, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: passes},
		{Code: unix.BPF_RET | unix.BPF_K, K: tells},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	go answerSyncs(fd) // ends with the process
	return nil
}

// notified and answered are the kernel's struct seccomp_notif and seccomp_notif_resp.
type (
	syncNotice struct {
		id         uint64
		thread, _  uint32
		_, _       uint32
		_          uint64
		descriptor uint64
		_          [5]uint64
	}
	syncAnswer struct {
		id    uint64
		value int64
		error int32
		flags uint32
	}
)

// answerSyncs notes what is synced. The true disk need not do it.
func answerSyncs(fd uintptr) {
	for {
		var q syncNotice
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&q))); errno != 0 {
			continue // EINTR, or who asked has ended
		}
		a := syncAnswer{id: q.id}
		path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", q.descriptor))
		if p := platterOf(path); err == nil && p != nil {
			err = p.synced(path)
		}
		if err != nil {
			a.error = -int32(unix.EIO)
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a))) // who asked may have ended
	}
}

func platterOf(path string) (p *platter) {
	platters.Range(func(root, v any) bool {
		if path == root || strings.HasPrefix(path, root.(string)+"/") {
			p = v.(*platter)
		}
		return p == nil
	})
	return p
}
