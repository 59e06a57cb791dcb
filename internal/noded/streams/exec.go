package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/oci"
	"gbatch/oci/wire"
)

// shell is what runs when no command was given. It needs no knowledge of the
// image but that it has a shell.
var shell = []string{"/bin/sh", "-c", "if [ -x /bin/bash ]; then exec /bin/bash; fi; exec /bin/sh"}

// execution is a command and its client. Its goroutines end with the stream or
// the command.
type execution struct {
	*session
	proc    *wire.ExecProcess
	in      *os.File // to the command: a pipe's end, or the terminal
	outputs []output
	tools   string // the file that is all tools; empty: there is none
}

// output is something to read and what to send it as.
type output struct {
	file *os.File
	kind api.FrameType
}

// serveExec runs a command for the client. An error has not been told yet.
func (s *Streams) serveExec(ctx context.Context, se *session, container *oci.Container, start []byte) error {
	var want api.ExecStart
	if err := json.Unmarshal(start, &want); err != nil {
		return fmt.Errorf("read what to execute: %w", err)
	}
	if len(want.Args) == 0 && want.Tool == "" {
		want.Args = shell
	}
	e := &execution{session: se, tools: s.node.Tools()}
	if err := e.start(container, want); err != nil {
		return err
	}
	defer e.close()
	e.run(ctx, peer{in: e.in, endInput: e.endInput, other: e.control, last: e.result, stop: func() { e.proc.Close() }})
	return nil
}

func (e *execution) start(container *oci.Container, want api.ExecStart) error {
	if want.Tool != "" && want.Terminal {
		return fmt.Errorf("%s takes no terminal", want.Tool)
	}
	req := wire.ExecRequest{Args: want.Args, Env: want.Env, WorkDir: want.WorkDir, User: want.User, Part: want.Container,
		Terminal: want.Terminal, Width: want.Width, Height: want.Height}
	if want.Terminal {
		proc, err := container.Exec(req, wire.ExecStdio{})
		if err != nil {
			return err
		}
		e.proc, e.in, e.outputs = proc, proc.Terminal, []output{{proc.Terminal, api.FrameOutput}}
		return nil
	}
	tool, err := e.tool(&req, want)
	if err != nil {
		return err
	}
	defer closeFiles([]*os.File{tool})
	var ends [6]*os.File // read and write ends of the three
	for i := 0; i < len(ends); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeFiles(ends[:])
			return fmt.Errorf("open pipes for the command: %w", err)
		}
		ends[i], ends[i+1] = r, w
	}
	proc, err := container.Exec(req, wire.ExecStdio{Stdin: ends[0], Stdout: ends[3], Stderr: ends[5], Program: tool})
	closeFiles([]*os.File{ends[0], ends[3], ends[5]})
	if err != nil {
		closeFiles([]*os.File{ends[1], ends[2], ends[4]})
		return err
	}
	e.proc, e.in = proc, ends[1]
	e.outputs = []output{{ends[2], api.FrameOutput}, {ends[4], api.FrameErrOutput}}
	return nil
}

// tool is the program to run where the client wants a tool, else nil.
func (e *execution) tool(req *wire.ExecRequest, want api.ExecStart) (*os.File, error) {
	switch {
	case want.Tool == "":
		return nil, nil
	case want.Tool != api.ToolSFTP && want.Tool != api.ToolConnect:
		return nil, fmt.Errorf("this node has no tool %q; it may be older than gexec", want.Tool)
	case e.tools == "":
		return nil, fmt.Errorf("this node was built without the program that is %s in containers", want.Tool)
	}
	req.Args = append([]string{string(want.Tool)}, want.Args...)
	return os.Open(e.tools)
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

func (e *execution) control(f api.Frame) {
	switch {
	case f.Type == api.FrameResize && e.proc.Terminal != nil:
		_ = e.proc.Resize(f.Size()) // of a command that ends at this moment
	case f.Type == api.FrameSignal && f.Count() > 0 && f.Count() <= maxSignal:
		_ = e.proc.Signal(syscall.Signal(f.Count())) // the same
	}
}

// maxSignal is the last signal that Linux has.
const maxSignal = 64

// endInput tells the command that no more input comes: at a terminal, as a
// user does.
func (e *execution) endInput() {
	const endOfTransmission = 4
	if e.proc.Terminal != nil {
		_, _ = e.in.Write([]byte{endOfTransmission}) // it may have ended
		return
	}
	e.in.Close()
}

// result copies the command's output until it has ended and all was sent, and
// tells how it ended.
func (e *execution) result(ctx context.Context) api.Frame {
	var out sync.WaitGroup
	for _, o := range e.outputs {
		out.Go(func() { e.copyOut(ctx, o) }) // ends with the command or the client
	}
	code, err := e.proc.Wait()
	for _, o := range e.outputs {
		_ = o.file.SetReadDeadline(time.Unix(1, 0)) // ends the wait for more
	}
	out.Wait()
	if err != nil {
		return api.FailureFrame(125, e.say(fmt.Sprintf("what became of the command is not known: %v", err)))
	}
	return api.CountFrame(api.FrameExit, code)
}

// copyOut sends what the command writes. The command's end breaks off the
// reading, as something that it left running may hold its files open; what it
// wrote itself is sent all the same.
func (e *execution) copyOut(ctx context.Context, o output) {
	err := e.send(ctx, o, o.file)
	if errors.Is(err, io.EOF) && o.kind == api.FrameOutput {
		_ = e.st.Send(ctx, api.Frame{Type: api.FrameEndOutput}) // or the client has gone
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	if e.proc.Terminal == nil {
		if n := pending(o.file); n > 0 {
			_ = o.file.SetReadDeadline(time.Time{})
			_ = e.send(ctx, o, io.LimitReader(o.file, n)) // the client has gone, or it is all
		}
		return
	}
	// The kernel hangs a terminal up when the command ends, so its end comes by
	// itself.
	quiet := readerFunc(func(p []byte) (int, error) {
		_ = o.file.SetReadDeadline(time.Now().Add(terminalQuiet))
		return o.file.Read(p)
	})
	_ = e.send(ctx, o, quiet) // the same
}

// terminalQuiet ends the reading of a terminal whose command has ended.
const terminalQuiet = 200 * time.Millisecond

func (e *execution) send(ctx context.Context, o output, r io.Reader) error {
	buf := make([]byte, api.FrameChunk)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if serr := e.st.Send(ctx, api.Frame{Type: o.kind, Data: buf[:n]}); serr != nil {
				return serr
			}
		}
		if err != nil {
			return err
		}
	}
}

// pending is how many bytes wait in a pipe.
func pending(f *os.File) (n int64) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		got, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		if err == nil {
			n = int64(got)
		}
	})
	return n
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// close ends what still runs.
func (e *execution) close() {
	e.proc.Close()
	e.st.Close()
	e.in.Close()
	for _, o := range e.outputs {
		o.file.Close()
	}
	e.copies.Wait()
}
