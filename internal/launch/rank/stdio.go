package rank

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gbatch/internal/launch"
)

// inputWindow is how many frames of input srun may send before they are taken.
const inputWindow = 16

// stdio opens what a task reads and writes: its side, for the caller to close.
func (g *group) stdio(t *task, dir string) (files []*os.File, err error) {
	o := &g.order
	if o.Terminal != nil && t.ID == 0 {
		return g.terminal(t, *o.Terminal)
	}
	in, err := g.openInput(t, dir)
	if err != nil {
		return nil, err
	}
	files = append(files, in)
	out, err := g.openOutput(t, o.Output, dir, launch.KindOutput)
	if err != nil {
		return files, err
	}
	files = append(files, out)
	if o.Errors == launch.Merged {
		fd, err := unix.FcntlInt(out.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return files, err
		}
		return append(files, os.NewFile(uintptr(fd), "errors")), nil
	}
	errs, err := g.openOutput(t, o.Errors, dir, launch.KindErrors)
	if err != nil {
		return files, err
	}
	return append(files, errs), nil
}

func (g *group) openInput(t *task, dir string) (*os.File, error) {
	switch in := g.order.Input; in {
	case launch.Stream:
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		t.stdin, t.files = w, append(t.files, w)
		return r, nil
	case launch.Null:
		return os.Open(os.DevNull)
	default:
		return os.Open(g.path(in, t, dir))
	}
}

func (g *group) openOutput(t *task, to, dir string, kind launch.Kind) (*os.File, error) {
	switch to {
	case launch.Null:
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	case launch.Stream:
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		t.files = append(t.files, r)
		g.output.Go(func() { g.copy(t, r, kind) }) // awaited by clear
		return w, nil
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if g.order.Append {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	return os.OpenFile(g.path(to, t, dir), flags, 0o666)
}

// path is the name of a task's file.
func (g *group) path(pattern string, t *task, dir string) string {
	p := launch.Pattern{Info: g.s.info, Step: g.order.Layout.Step, Task: t.ID, Node: g.order.Own, Host: g.s.info.Own().Name}
	name := p.Expand(pattern)
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return name
}

// copy sends what a task writes.
func (g *group) copy(t *task, from io.Reader, kind launch.Kind) {
	buf := make([]byte, launch.ChunkBytes)
	for {
		n, err := from.Read(buf)
		if n > 0 && g.send(kind, t.ID, buf[:n]) != nil {
			return
		}
		if err != nil {
			return
		}
	}
}

// feed writes srun's input to the tasks that it is for. One that does not read
// holds up the others, as in a pipe.
func (g *group) feed() {
	for f := range g.input {
		g.give(f)
		if f.Kind == launch.KindInput && g.conn.Send(launch.KindTaken, 0, nil) != nil {
			return
		}
	}
}

// give gives the tasks that a frame of input is for what is in it.
func (g *group) give(f launch.Frame) {
	g.feeding.Lock()
	defer g.feeding.Unlock()
	for _, t := range g.tasks {
		if t.stdin == nil || f.Task != launch.AllTasks && int(f.Task) != t.ID {
			continue
		}
		if f.Kind == launch.KindInputEnd {
			if t.tty == nil {
				_ = t.stdin.(io.Closer).Close()
				t.stdin = nil
			}
		} else if _, err := t.stdin.Write(f.Body); err != nil {
			t.stdin = nil
		}
	}
}

// terminal gives a task one of its own.
func (g *group) terminal(t *task, size launch.Size) ([]*os.File, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	var slave *os.File
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, errors.Join(errors.New("open a terminal"), err)
	}
	t.tty, t.stdin, t.files = master, master, append(t.files, master)
	g.resize(size)
	_ = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Height, Col: size.Width})
	g.output.Go(func() { g.copy(t, master, launch.KindOutput) }) // ends when nobody has the other side
	var files []*os.File
	for range 2 {
		fd, err := unix.FcntlInt(slave.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			slave.Close()
			return files, err
		}
		files = append(files, os.NewFile(uintptr(fd), slave.Name()))
	}
	return append([]*os.File{slave}, files...), nil
}

func (g *group) resize(size launch.Size) {
	for _, t := range g.tasks {
		if t.tty != nil {
			_ = unix.IoctlSetWinsize(int(t.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Height, Col: size.Width})
		}
	}
}
