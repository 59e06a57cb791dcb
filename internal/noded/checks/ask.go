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
	ask   func(path string) (bool, error)
	limit time.Duration

	mu      sync.Mutex
	waiting map[string]chan struct{} // closed when the answer has come
	since   map[string]time.Time
}

func newAsker(ask func(path string) (bool, error), limit time.Duration) *asker {
	return &asker{ask: ask, limit: limit, waiting: map[string]chan struct{}{}, since: map[string]time.Time{}}
}

type answer struct {
	readOnly bool
	err      error
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
		readOnly, err := a.ask(path)
		result <- answer{readOnly, err}
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
func (a *asker) storage(ctx context.Context, c *config.Config) (list []string) {
	for _, s := range c.Storage {
		base, _, named := strings.Cut(s.Path, "{")
		if named {
			base = filepath.Dir(base + "x")
		} else if s.Create {
			base = filepath.Dir(s.Path)
		}
		if text := a.judge(ctx, base, s.ReadOnly); text != "" {
			list = append(list, fmt.Sprintf("storage %s: %s", s.Name, text))
		}
	}
	return list
}

func (a *asker) mounts(ctx context.Context, c *config.Config) (list []string) {
	for _, m := range c.Health.Mounts {
		if text := a.judge(ctx, m, true); text != "" {
			list = append(list, text)
		}
	}
	return list
}

func (a *asker) judge(ctx context.Context, path string, readOnly bool) string {
	got, late := a.look(ctx, path)
	switch {
	case late > 0:
		return fmt.Sprintf("directory %s does not answer within %s: see its server, and dmesg", path, a.limit)
	case errors.Is(got.err, fs.ErrNotExist):
		return fmt.Sprintf("directory %s is not there: mount it", path)
	case got.err != nil:
		return fmt.Sprintf("directory %s cannot be read: %v", path, got.err)
	case got.readOnly && !readOnly:
		return fmt.Sprintf("directory %s is on a read-only file system: see dmesg", path)
	}
	return ""
}

// Ask looks at a directory of this machine.
func Ask(path string) (readOnly bool, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return false, err
	}
	return st.Flags&unix.ST_RDONLY != 0, nil
}
