package noded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/oci"
)

// shell is what runs when no command was given. It needs no knowledge of the
// image but that it has a shell.
var shell = []string{"/bin/sh", "-c", "if [ -x /bin/bash ]; then exec /bin/bash; fi; exec /bin/sh"}

// execution is a command and its client. Its goroutines end with the stream or
// the command.
type execution struct {
	st      *client.Stream
	proc    *oci.ExecProcess
	in      *os.File // to the command: a pipe's end, or the terminal
	outputs []output
	input   *inputQueue
	copies  sync.WaitGroup
}

// output is something to read and what to send it as.
type output struct {
	file *os.File
	kind api.FrameType
}

// serveExec runs a command for the client. An error has not been told yet.
func serveExec(ctx context.Context, st *client.Stream, shim *oci.Shim, start []byte) error {
	var want api.ExecStart
	if err := json.Unmarshal(start, &want); err != nil {
		return fmt.Errorf("read what to execute: %w", err)
	}
	if len(want.Args) == 0 {
		want.Args = shell
	}
	e := &execution{st: st, input: newInputQueue()}
	if err := e.start(shim, want); err != nil {
		return err
	}
	defer e.close()
	e.run(ctx)
	return nil
}

func (e *execution) start(shim *oci.Shim, want api.ExecStart) error {
	req := oci.ExecRequest{Args: want.Args, Env: want.Env, WorkDir: want.WorkDir, User: want.User,
		Terminal: want.Terminal, Width: want.Width, Height: want.Height}
	if want.Terminal {
		proc, err := shim.Exec(req, oci.ExecStdio{})
		if err != nil {
			return err
		}
		e.proc, e.in, e.outputs = proc, proc.Terminal, []output{{proc.Terminal, api.FrameOutput}}
		return nil
	}
	var ends [6]*os.File // read and write ends of the three
	for i := 0; i < len(ends); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeFiles(ends[:])
			return fmt.Errorf("open pipes for the command: %w", err)
		}
		ends[i], ends[i+1] = r, w
	}
	proc, err := shim.Exec(req, oci.ExecStdio{Stdin: ends[0], Stdout: ends[3], Stderr: ends[5]})
	closeFiles([]*os.File{ends[0], ends[3], ends[5]})
	if err != nil {
		closeFiles([]*os.File{ends[1], ends[2], ends[4]})
		return err
	}
	e.proc, e.in = proc, ends[1]
	e.outputs = []output{{ends[2], api.FrameOutput}, {ends[4], api.FrameErrOutput}}
	return nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// run works until the command has ended and its client has been told, or the
// client or the daemon goes.
func (e *execution) run(ctx context.Context) {
	live, gone := context.WithCancel(context.WithoutCancel(ctx)) // until the client has gone
	defer gone()
	e.copies.Go(func() { // ends with the client
		defer gone()
		e.receive(live)
	})
	e.copies.Go(func() { feed(live, e.st, e.input, e.in, e.endInput) }) // ends with the client, or close
	last := make(chan api.Frame, 1)
	e.copies.Go(func() { last <- e.result(live) }) // ends with the command: close sees to that
	parting := ctx
	var f api.Frame
	select {
	case <-live.Done():
		return
	case <-ctx.Done():
		e.proc.Close()
		var cancel context.CancelFunc
		parting, cancel = context.WithTimeout(live, partingTime)
		defer cancel()
		f = api.FailureFrame(125, stoppingText)
	case f = <-last:
	}
	if e.st.Send(parting, f) != nil {
		return
	}
	select {
	case <-live.Done(): // it has read all, and gone
	case <-parting.Done():
	}
}

// stoppingText is what clients hear when the daemon ends.
const stoppingText = "the node's daemon is being stopped, which ends this stream; the job goes on"

// receive takes what the client sends until it goes.
func (e *execution) receive(ctx context.Context) {
	for {
		f, err := e.st.Receive(ctx)
		switch {
		case err != nil:
			return
		case f.Type == api.FrameInput && !e.input.put(f.Data):
			return // it sends more than it may
		case f.Type == api.FrameEndInput:
			e.input.end()
		case f.Type == api.FrameResize && e.proc.Terminal != nil:
			_ = e.proc.Resize(f.Size()) // of a command that ends at this moment
		}
	}
}

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
		return api.FailureFrame(125, fmt.Sprintf("what became of the command is not known: %v", err))
	}
	return api.CountFrame(api.FrameExit, code)
}

// copyOut sends what the command writes. The command's end breaks off the
// reading, as something that it left running may hold its files open; what it
// wrote itself is sent all the same.
func (e *execution) copyOut(ctx context.Context, o output) {
	err := e.send(ctx, o, o.file)
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
