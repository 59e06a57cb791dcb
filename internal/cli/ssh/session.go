package ssh

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// Bounds of the environment that a client may send for one command.
const (
	maxVariables = 256
	maxVariable  = 32 << 10 // bytes of name and value
)

// session is one command, shell or file transfer.
type session struct {
	server  *server
	ch      ssh.Channel
	start   api.ExecStart
	image   []string // in place of a tool, where the node cannot give it
	started bool

	mu     sync.Mutex
	st     *client.Stream // nil: not opened yet
	passed []api.Frame    // what came before that
}

// session serves a session channel until the client closes it.
func (s *server) session(ctx context.Context, c ssh.NewChannel) {
	ch, requests, err := c.Accept()
	if err != nil {
		return
	}
	ctx, gone := context.WithCancel(ctx)
	se := &session{server: s, ch: ch, start: api.ExecStart{User: s.user}}
	var work sync.WaitGroup
	for r := range requests {
		ok := se.request(r)
		if r.WantReply {
			_ = r.Reply(ok, nil) // or the client has gone
		}
		if ok && !se.started && runs(r.Type) {
			se.started = true
			work.Go(func() { se.run(ctx) }) // ends with the command, or with ctx
		}
	}
	gone()
	work.Wait()
}

// runs says whether a request begins something.
func runs(kind string) bool { return kind == "shell" || kind == "exec" || kind == "subsystem" }

// request takes in what the client asks for, and says whether it may.
func (se *session) request(r *ssh.Request) bool {
	if se.started && r.Type != "window-change" && r.Type != "signal" {
		return false
	}
	switch r.Type {
	case "env":
		return se.env(r.Payload)
	case "pty-req":
		return se.terminal(r.Payload)
	case "shell":
		return true
	case "exec":
		return se.command(r.Payload)
	case "subsystem":
		return se.subsystem(r.Payload)
	case "window-change":
		var m struct{ Width, Height, PixelWidth, PixelHeight uint32 }
		if ssh.Unmarshal(r.Payload, &m) != nil {
			return false
		}
		se.pass(api.ResizeFrame(cells(m.Width), cells(m.Height)))
		return true
	case "signal":
		var m struct{ Name string }
		if ssh.Unmarshal(r.Payload, &m) != nil || signals[m.Name] == 0 {
			return false
		}
		se.pass(api.CountFrame(api.FrameSignal, signals[m.Name]))
		return true
	case "auth-agent-req@openssh.com":
		se.server.note("the job does not reach your SSH agent: -A and ForwardAgent are not supported")
	case "x11-req":
		se.server.note("the job does not reach your display: -X and ForwardX11 are not supported")
	}
	return false
}

// signals are Linux's numbers of those that SSH has names for.
var signals = map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "FPE": 8, "KILL": 9,
	"USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15}

func cells(n uint32) uint16 { return uint16(min(n, 1<<16-1)) }

func (se *session) env(payload []byte) bool {
	var m struct{ Name, Value string }
	return ssh.Unmarshal(payload, &m) == nil && se.variable(m.Name, m.Value)
}

// variable gives the command a variable, if it can be one and there is room.
func (se *session) variable(name, value string) bool {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") ||
		len(name)+len(value) > maxVariable || len(se.start.Env) >= maxVariables {
		return false
	}
	start := se.start
	start.Env = append(slices.Clip(start.Env), name+"="+value)
	return se.begin(start)
}

// begin has the command begin like that, if it can be told to the node.
func (se *session) begin(start api.ExecStart) bool {
	if len(api.JSONFrame(api.FrameStart, start).Data) >= api.MaxFrame/2 {
		return false
	}
	se.start = start
	return true
}

func (se *session) terminal(payload []byte) bool {
	var m struct {
		Term                                   string
		Width, Height, PixelWidth, PixelHeight uint32
		Modes                                  string
	}
	if ssh.Unmarshal(payload, &m) != nil {
		return false
	}
	if m.Term != "" && !se.variable("TERM", m.Term) {
		return false
	}
	se.start.Terminal, se.start.Width, se.start.Height = true, cells(m.Width), cells(m.Height)
	return true
}

// command is run by a shell, as SSH has it: bash where the image has it.
func (se *session) command(payload []byte) bool {
	var m struct{ Command string }
	if ssh.Unmarshal(payload, &m) != nil {
		return false
	}
	const script = `if [ -x /bin/bash ]; then exec /bin/bash -c "$0"; fi; exec /bin/sh -c "$0"`
	start := se.start
	start.Args = []string{"/bin/sh", "-c", script, m.Command}
	return se.begin(start)
}

func (se *session) subsystem(payload []byte) bool {
	var m struct{ Name string }
	if ssh.Unmarshal(payload, &m) != nil || m.Name != "sftp" {
		return false
	}
	se.start.Tool, se.start.Terminal = api.ToolSFTP, false
	const script = `for f in /usr/lib/openssh /usr/libexec/openssh /usr/lib/ssh /usr/libexec; do [ -x $f/sftp-server ] && exec $f/sftp-server; done
echo "this node cannot serve files, and the image has no sftp-server" >&2; exit 127`
	se.image = []string{"/bin/sh", "-c", script}
	return true
}

// pass sends a frame to the command, or keeps it until that begins.
func (se *session) pass(f api.Frame) {
	se.mu.Lock()
	st := se.st
	if st == nil && len(se.passed) < maxPassed {
		se.passed = append(se.passed, f)
	}
	se.mu.Unlock()
	if st != nil {
		_ = st.Send(context.Background(), f) // it ends with the stream, which says why
	}
}

// maxPassed bounds what is kept for a command that begins.
const maxPassed = 16

// run begins the command and joins it with the channel until it has ended.
func (se *session) run(ctx context.Context) {
	defer se.ch.Close()
	code, err := se.result(ctx, se.start)
	if f, ok := errors.AsType[*api.StreamFailure](err); ok && se.image != nil && f.Code != 125 {
		se.start.Tool, se.start.Args = "", se.image
		code, err = se.result(ctx, se.start)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		end := "\n"
		if se.start.Terminal {
			end = "\r\n"
		}
		_, _ = io.WriteString(se.ch.Stderr(), "gexec: "+err.Error()+end) // or the client has gone
		code = failed
		if f, ok := errors.AsType[*api.StreamFailure](err); ok {
			code = f.Code
		}
	}
	_, _ = se.ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)})) // the same
}

// failed is the exit code where there is none of a command: ssh's own.
const failed = 255

// result runs a command and gives its exit code.
func (se *session) result(ctx context.Context, start api.ExecStart) (code int, err error) {
	st, err := se.server.exec(ctx)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	if err := st.Send(ctx, api.JSONFrame(api.FrameStart, start)); err != nil {
		return 0, errBroken
	}
	se.mu.Lock()
	se.st = st
	passed := se.passed
	se.passed = nil
	se.mu.Unlock()
	for _, f := range passed {
		if st.Send(ctx, f) != nil {
			break // the receiver says why
		}
	}
	go func() { _ = st.SendFrom(ctx, se.ch) }() // ends with the stream or the channel; the receiver says why
	for {
		f, err := st.Receive(ctx)
		if err != nil {
			return 0, errBroken
		}
		switch f.Type {
		case api.FrameOutput:
			_, err = se.ch.Write(f.Data)
		case api.FrameErrOutput:
			_, err = se.ch.Stderr().Write(f.Data)
		case api.FrameEndOutput: // in SSH it would be that of standard error, too, which goes on
		case api.FrameError:
			return 0, f.Failure()
		case api.FrameExit:
			return f.Count(), nil
		}
		if err != nil {
			return 0, err // the client has gone
		}
	}
}

var errBroken = errors.New("the controller broke the stream off: it was restarted or cannot be reached; what ran in the job for you is ended, the job is not")
