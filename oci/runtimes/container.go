package runtimes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Container is one container. Dir is its bundle, which also holds the program's
// state: only root may enter it.
type Container struct {
	Runtime
	ID  string
	Dir string

	still bool // as Stand left its processes
}

// What lies in a bundle.
const (
	fileSpec    = "config.json"
	fileLog     = "log.json"
	filePID     = "pid"
	fileInner   = "inner"
	fileProcess = "process.json"
	fileConsole = "console"
	dirState    = "state"
)

// environment is that of each command. Nothing of the caller's goes in.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// Stdio are a process's files; nil is /dev/null. Groups are further groups of the
// host that a sandbox has, so that it reaches what its user may by them.
type Stdio struct {
	In, Out, Err *os.File
	Groups       []uint32
}

// Create makes the container of a spec up to the point where its first process
// waits for Start, and returns that process's number, or its sandbox's: by then
// it is a child of the caller, if that is a subreaper. With console, the container's
// terminal is sent there, and the files are not used.
func (c *Container) Create(spec *specs.Spec, stdio Stdio, console *Console) (int, error) {
	if err := errors.Join(os.MkdirAll(c.path(dirState), 0o700), writeJSON(c.path(fileSpec), spec)); err != nil {
		return 0, err
	}
	args := []string{"create", "--bundle", c.Dir, "--pid-file", c.path(filePID)}
	if c.Kind != Runsc {
		// The caller's is the container's. One that the first process makes would
		// count for its user.
		args = append(args, "--no-new-keyring")
	}
	if console != nil {
		args = append(args, "--console-socket", console.path)
	}
	cmd := c.command(append(args, c.ID)...)
	if console == nil {
		setFiles(cmd, stdio)
	}
	if c.Kind.Sandboxed() && len(stdio.Groups) > 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: stdio.Groups}}
	}
	if err := c.run(cmd); err != nil {
		return 0, err
	}
	return readPID(c.path(filePID))
}

func setFiles(cmd *exec.Cmd, stdio Stdio) {
	for _, f := range []struct {
		file *os.File
		set  func(*os.File)
	}{
		{stdio.In, func(f *os.File) { cmd.Stdin = f }},
		{stdio.Out, func(f *os.File) { cmd.Stdout = f }},
		{stdio.Err, func(f *os.File) { cmd.Stderr = f }},
	} {
		if f.file != nil { // a nil *os.File is no nil interface
			f.set(f.file)
		}
	}
}

// Start has the first process execute its program.
func (c *Container) Start() error { return c.do("start", c.ID) }

// Stand makes all processes stand still, or go on, if they do not: programs refuse what is
// so already.
func (c *Container) Stand(still bool) error {
	if c.still == still {
		return nil
	}
	what := "resume"
	if still {
		what = "pause"
	}
	err := c.do(what, c.ID)
	if err == nil {
		c.still = still
	}
	return err
}

// Kill sends a signal to the first process.
func (c *Container) Kill(sig syscall.Signal) error {
	return c.do("kill", c.ID, strconv.Itoa(int(sig)))
}

// Delete removes what the program has of the container, and ends what lives.
func (c *Container) Delete() error { return c.do("delete", "--force", c.ID) }

// do executes a command that has nothing to say.
func (c *Container) do(args ...string) error { return c.run(c.command(args...)) }

func (c *Container) command(args ...string) *exec.Cmd {
	all := slices.Concat(c.Args, c.flags(), []string{"--root", c.path(dirState), "--log", c.path(fileLog), "--log-format", "json"}, args)
	cmd := exec.Command(c.Path, all...)
	cmd.Env = environment
	return cmd
}

// run executes a command to its end. What the program says of an error is in its
// log; what it writes elsewhere is for a command whose log says nothing.
func (c *Container) run(cmd *exec.Cmd) error {
	_ = os.Remove(c.path(fileLog))
	var said bytes.Buffer
	if cmd.Stderr == nil {
		cmd.Stderr = &limited{buf: &said}
	}
	err := cmd.Run()
	if err == nil {
		return nil
	}
	return c.explain(err, said.String())
}

// explain is why a command failed.
func (c *Container) explain(err error, said string) error {
	text, _ := os.ReadFile(c.path(fileLog))
	if why := lastError(text); why != "" {
		said = why
	}
	if said = strings.TrimSpace(said); said == "" {
		return fmt.Errorf("%s: %w", c.Kind, err)
	}
	return fmt.Errorf("%s: %s", c.Kind, said)
}

// lastError is the last error in a log of lines of JSON.
func lastError(log []byte) (why string) {
	for line := range bytes.Lines(log) {
		var e struct{ Level, Msg string }
		if json.Unmarshal(line, &e) == nil && (e.Level == "error" || e.Level == "fatal") && e.Msg != "" {
			why = e.Msg
		}
	}
	return why
}

// limited keeps the first of what is written.
type limited struct{ buf *bytes.Buffer }

// maxSaid bounds what is kept of what a program says.
const maxSaid = 4096

func (l *limited) Write(p []byte) (int, error) {
	l.buf.Write(p[:min(len(p), maxSaid-min(l.buf.Len(), maxSaid))])
	return len(p), nil
}

func (c *Container) path(name string) string { return filepath.Join(c.Dir, name) }

func readPID(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("the runtime wrote %.20q for a process's number", text)
	}
	return pid, nil
}

func writeJSON(file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
