package checks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/noded/config"
)

// asker looks at directories that may not answer, as those of a file server that
// is away. Whoever asks such a one waits in the kernel, so each is asked by one
// goroutine at a time, which outlives the asker.
type asker struct {
	ask   func(path string) (Disk, error)
	limit time.Duration

	mu      sync.Mutex
	waiting map[string]chan struct{} // closed when the answer has come
	since   map[string]time.Time
}

func newAsker(ask func(path string) (Disk, error), limit time.Duration) *asker {
	return &asker{ask: ask, limit: limit, waiting: map[string]chan struct{}{}, since: map[string]time.Time{}}
}

type answer struct {
	Disk
	err error
}

// Disk is what a directory's file system says of itself.
type Disk struct {
	ReadOnly    bool
	Total, Free int64 // bytes; free for users
}

// Storage is what was found of a root of the site's storage.
type Storage struct {
	Name string
	Away string // why jobs cannot have it, empty: they can
	Disk
}

// look asks one directory. Late says for how long it has not answered.
func (a *asker) look(ctx context.Context, path string) (got answer, late time.Duration) {
	a.mu.Lock()
	if _, still := a.waiting[path]; still {
		defer a.mu.Unlock()
		return got, max(time.Since(a.since[path]), 1)
	}
	done, result := make(chan struct{}), make(chan answer, 1)
	a.waiting[path], a.since[path] = done, time.Now()
	a.mu.Unlock()
	// Ends when the directory answers; there is no way to break it off.
	go func() {
		disk, err := a.ask(path)
		result <- answer{disk, err}
		a.mu.Lock()
		delete(a.waiting, path)
		a.mu.Unlock()
		close(done)
	}()
	limit := time.NewTimer(a.limit)
	defer limit.Stop()
	select {
	case got = <-result:
		<-done
		return got, 0
	case <-limit.C:
		return got, a.limit
	case <-ctx.Done():
		return got, 0 // nobody wants to know
	}
}

// storage asks the directories that jobs may mount.
func (a *asker) storage(ctx context.Context, c *config.Config) (list []Storage) {
	for _, s := range c.Storage {
		base, _, named := strings.Cut(s.Path, "{")
		if named {
			base = filepath.Dir(base + "x")
		} else if s.Create {
			base = filepath.Dir(s.Path)
		}
		got := Storage{Name: s.Name}
		got.Away, got.Disk = a.judge(ctx, base, s.ReadOnly)
		list = append(list, got)
	}
	return list
}

// away says which storage jobs cannot have.
func away(stored []Storage) (list []string) {
	for _, s := range stored {
		if s.Away != "" {
			list = append(list, fmt.Sprintf("storage %s: %s", s.Name, s.Away))
		}
	}
	return list
}

func (a *asker) mounts(ctx context.Context, c *config.Config) (list []string) {
	for _, m := range c.Health.Mounts {
		if text, _ := a.judge(ctx, m, true); text != "" {
			list = append(list, text)
		}
	}
	return list
}

func (a *asker) judge(ctx context.Context, path string, readOnly bool) (wrong string, disk Disk) {
	got, late := a.look(ctx, path)
	if got.err == nil {
		disk = got.Disk
	}
	switch {
	case late > 0:
		return fmt.Sprintf("directory %s does not answer within %s: see its server, and dmesg", path, a.limit), disk
	case errors.Is(got.err, fs.ErrNotExist):
		return fmt.Sprintf("directory %s is not there: mount it", path), disk
	case got.err != nil:
		return fmt.Sprintf("directory %s cannot be read: %v", path, got.err), disk
	case got.ReadOnly && !readOnly:
		return fmt.Sprintf("directory %s is on a read-only file system: see dmesg", path), disk
	}
	return "", disk
}

// Ask looks at a directory of this machine.
func Ask(path string) (Disk, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Disk{}, err
	}
	bytes := func(blocks uint64) int64 {
		return int64(min(blocks, 1<<62/uint64(max(st.Bsize, 1))) * uint64(max(st.Bsize, 1)))
	}
	return Disk{ReadOnly: st.Flags&unix.ST_RDONLY != 0, Total: bytes(st.Blocks), Free: bytes(st.Bavail)}, nil
}
