package rank

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/rights"
	"gbatch/oci"
)

// maxProgressFile bounds what is read of a progress file, maxProgressName the
// name in it that is shown.
const (
	maxProgressFile = 64 << 10
	maxProgressName = 190
)

// readProgress is what a progress file says, nil if that is nothing. What a
// program writes there is not trusted.
func readProgress(in io.Reader) *node.Done {
	b, err := io.ReadAll(io.LimitReader(in, maxProgressFile+1))
	var file struct {
		Percent *float64 `json:"percentComplete"`
		Name    string   `json:"name"`
	}
	if err != nil || len(b) > maxProgressFile || json.Unmarshal(b, &file) != nil || file.Percent == nil {
		return nil
	}
	done := &node.Done{Percent: int(min(max(*file.Percent, 0), 100))}
	for _, c := range file.Name {
		if len(done.Name) < maxProgressName && unicode.IsPrint(c) {
			done.Name += string(c)
		}
	}
	return done
}

// lookAtProgress looks at the file unless that is being done. Nobody waits for
// it: a file server that hangs must not keep the rank from being stopped.
func (w *watch) lookAtProgress() {
	select {
	case w.looking <- struct{}{}:
		go func() { // ends when the file was read
			lookAtProgress(w.r.container, w.r.order.Spec.Gbatch.ProgressFile, w.r.state)
			<-w.looking
		}()
	default:
	}
}

// lookAtProgress reads the file of a program that runs, through the eyes of
// its first process and with its rights: it may lie on any mount.
func lookAtProgress(container *oci.Container, path string, s *state) {
	pid := container.PID()
	if pid == 0 {
		return
	}
	root, err := os.OpenFile(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return // it ends at this moment
	}
	defer root.Close()
	as, err := rights.OfProcess(pid)
	if err != nil {
		return
	}
	var fd int
	err = as.Do(func() error {
		fd, err = unix.Openat2(int(root.Fd()), strings.TrimPrefix(path, "/"), &unix.OpenHow{
			Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
		})
		return err
	})
	if err != nil {
		return // not written yet
	}
	f := os.NewFile(uintptr(fd), "progress")
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
		s.tellProgress(readProgress(f))
	}
}

// tellProgress takes what a file says: it never falls.
func (s *state) tellProgress(d *node.Done) {
	if d == nil {
		return
	}
	s.mu.Lock()
	old := s.status.Done
	s.mu.Unlock()
	if old != nil {
		d.Percent = max(d.Percent, old.Percent)
		if *old == *d {
			return
		}
	}
	s.change(contact.WithinPull, func(st *node.RankStatus) { st.Done = d })
}

// checkProgress looks at the progress file for the last time, and at what success needs.
func (r *Rank) checkProgress(out *node.Exit) {
	g := r.order.Spec.Gbatch
	if g.ProgressFile == "" {
		return
	}
	r.readLastProgress(g.ProgressFile)
	r.state.mu.Lock()
	done := r.state.status.Done
	r.state.mu.Unlock()
	switch {
	case !out.OK() || done != nil && done.Percent >= 100:
	case g.RequireProgress && done == nil:
		out.Code, out.Reason = 125, job.Progress
		out.Message = fmt.Sprintf("exit code 0, but the program never wrote its progress to %s", g.ProgressFile)
	case g.RequireProgress:
		out.Code, out.Reason = 125, job.Progress
		out.Message = fmt.Sprintf("exit code 0 at %d percent of its progress", done.Percent)
	case done != nil:
		out.Message = fmt.Sprintf("finished; warning: exit code 0 at %d percent of its progress", done.Percent)
	}
}

// readLastProgress reads what a program wrote just before its end.
func (r *Rank) readLastProgress(p string) {
	dir, name, err := r.node.Data.OpenWritten(r.data(), p)
	if err != nil {
		return // on a tmpfs, or never written
	}
	defer dir.Root.Close()
	if name == "" {
		return
	}
	f, err := dir.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	r.state.tellProgress(readProgress(f))
}
