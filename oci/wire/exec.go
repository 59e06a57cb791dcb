package wire

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"gbatch/oci/door"
	"gbatch/oci/failure"
	"gbatch/oci/message"
	"gbatch/oci/stdio"
)

// ExecRequest is a further command for a running container.
type ExecRequest struct {
	Args    []string `json:"args"`
	Env     []string `json:"env,omitempty"`     // over the container's
	WorkDir string   `json:"workdir,omitempty"` // "" is the container's
	User    string   `json:"user,omitempty"`    // "" is the container's
	// Part is the name of the program whose container it runs in, where several run at
	// once; "": the container's own.
	Part string `json:"part,omitempty"`

	// Terminal gives the command a terminal of this size in place of stdio.
	Terminal bool   `json:"terminal,omitempty"`
	Width    uint16 `json:"width,omitempty"`
	Height   uint16 `json:"height,omitempty"`

	// Program says that ExecStdio.Program is executed in place of a program of
	// the image; Args are its arguments.
	Program bool `json:"program,omitempty"`
}

// ExecStdio are the command's files. They are handed to the command itself and
// stay the caller's to close; nil is /dev/null.
type ExecStdio struct {
	Stdin, Stdout, Stderr *os.File

	// Program is a static program of the host, which the container's user may
	// execute and not write. Nil: a program of the image. It goes with files only,
	// not with a terminal.
	Program *os.File
}

// ExecProcess is a command that runs in a container. When it is closed, or this
// process dies, the command's session gets HUP, and KILL some seconds later.
type ExecProcess struct {
	// Terminal is the user's side of the terminal, nil without one. Reading
	// from it fails with EIO once nothing has the other side open. It takes
	// deadlines.
	Terminal *os.File
	PID      int // on the host

	conn *net.UnixConn
	in   *message.Reader
}

// Exec starts a command in the container of a directory. The error wraps a *failure.Failure if the
// container has no such command, directory or user.
func Exec(dir string, req ExecRequest, files ExecStdio) (*ExecProcess, error) {
	conn, err := door.Dial(dir)
	if err != nil {
		return nil, err
	}
	p := &ExecProcess{conn: conn, in: message.NewReader(conn)}
	if err := p.start(req, files); err != nil {
		conn.Close()
		return nil, fmt.Errorf("execute in container: %w", err)
	}
	return p, nil
}

func (p *ExecProcess) start(req ExecRequest, with ExecStdio) error {
	var files []*os.File
	if req.Program = with.Program != nil; req.Program && req.Terminal {
		return errors.New("a program of the host gets no terminal")
	}
	if !req.Terminal {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer null.Close()
		for _, f := range []*os.File{with.Stdin, with.Stdout, with.Stderr} {
			if f == nil {
				f = null
			}
			files = append(files, f)
		}
	}
	if req.Program {
		files = append(files, with.Program)
	}
	r, passed, err := p.ask(Request{Op: OpExec, Exec: &req}, files...)
	if err != nil {
		return err
	}
	if req.Terminal {
		if len(passed) != 1 {
			message.CloseAll(passed)
			return errors.New("the shim sent no terminal")
		}
		if p.Terminal, err = stdio.Pollable(passed[0]); err != nil {
			return err
		}
	} else {
		message.CloseAll(passed)
	}
	p.PID = r.PID
	return nil
}

// Ask sends the first request on a connection, with files, and returns the answer.
func Ask(conn *net.UnixConn, req Request, files ...*os.File) (Reply, []*os.File, error) {
	return (&ExecProcess{conn: conn, in: message.NewReader(conn)}).ask(req, files...)
}

func (p *ExecProcess) ask(req Request, files ...*os.File) (Reply, []*os.File, error) {
	req.Version, req.Seq = Version, 1
	if err := message.Send(p.conn, req, files...); err != nil {
		return Reply{}, nil, err
	}
	return p.answer()
}

// answer returns the next message for this command, past those about phases.
// Files that seem to come with one of those belong to the answer that was read
// together with it.
func (p *ExecProcess) answer() (Reply, []*os.File, error) {
	var files []*os.File
	for {
		line, more, err := p.in.Next()
		files = append(files, more...)
		if err != nil {
			message.CloseAll(files)
			return Reply{}, nil, fmt.Errorf("the shim has gone: %w", err)
		}
		r, err := Parse(line)
		if err == nil && r.Seq == 0 {
			continue
		}
		if err == nil && r.Kind != "" {
			err = &failure.Failure{Kind: r.Kind, Message: r.Error}
		} else if err == nil && r.Error != "" {
			err = errors.New(r.Error)
		}
		if err != nil {
			message.CloseAll(files)
			return Reply{}, nil, err
		}
		return r, files, nil
	}
}

// Wait returns the command's exit code, 128+n after signal n, and closes the
// process but for its Terminal. It is called once.
func (p *ExecProcess) Wait() (int, error) {
	defer p.conn.Close()
	r, files, err := p.answer()
	message.CloseAll(files)
	if err != nil {
		return 0, fmt.Errorf("wait for command: %w", err)
	}
	return r.Code, nil
}

// Signal sends a signal to the command itself.
func (p *ExecProcess) Signal(sig syscall.Signal) error {
	return message.Send(p.conn, Request{Version: Version, Seq: 2, Op: OpSignal, Signal: int(sig)})
}

// Resize tells the command the terminal's new size.
func (p *ExecProcess) Resize(width, height uint16) error {
	if p.Terminal == nil {
		return errors.New("resize: the command has no terminal")
	}
	return stdio.Resize(p.Terminal, width, height)
}

// Close ends the command if it still runs. It may be called more than once.
func (p *ExecProcess) Close() error {
	if p.Terminal != nil {
		p.Terminal.Close()
	}
	return p.conn.Close()
}
