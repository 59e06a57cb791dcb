package runtimes

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Process is a child of the caller: a container's first process, its sandbox, or
// a process beside it, for which another one stands where that is in a sandbox.
type Process struct {
	pid int

	inner int // its number in the sandbox; 0: it is in none, or the first
	box   *Container
}

// ProcessOf is the child of that number.
func ProcessOf(pid int) *Process { return &Process{pid: pid} }

// Pid is its number.
func (p *Process) Pid() (int, error) { return p.pid, nil }

// Wait waits for its end. It is called once.
func (p *Process) Wait() (*os.ProcessState, error) {
	child, err := os.FindProcess(p.pid)
	if err != nil {
		return nil, err
	}
	return child.Wait()
}

// Signal sends it a signal. Into a sandbox the program does, so that it has to be
// called as methods of the Container are.
func (p *Process) Signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	switch {
	case !ok:
		return fmt.Errorf("%v is no signal", sig)
	case p.inner != 0:
		return p.box.do("kill", "--pid", strconv.Itoa(p.inner), p.box.ID, strconv.Itoa(int(number)))
	}
	return syscall.Kill(p.pid, number)
}

// Exec begins a further process. With console it has a terminal, which is sent
// there, and the files are not used.
func (c *Container) Exec(process *specs.Process, stdio Stdio, console *Console) (*Process, error) {
	if err := writeJSON(c.path(fileProcess), process); err != nil {
		return nil, err
	}
	defer os.Remove(c.path(fileProcess))
	for _, name := range []string{filePID, fileInner} {
		_ = os.Remove(c.path(name))
	}
	args := []string{"exec", "--detach", "--process", c.path(fileProcess), "--pid-file", c.path(filePID)}
	if c.Kind.Sandboxed() {
		args = append(args, "--internal-pid-file", c.path(fileInner))
	}
	if console != nil {
		args = append(args, "--console-socket", console.path)
	}
	cmd := c.command(append(args, c.ID)...)
	if console == nil {
		setFiles(cmd, stdio)
	}
	if err := c.run(cmd); err != nil {
		return nil, err
	}
	p := &Process{box: c}
	var err error
	if p.pid, err = readPID(c.path(filePID)); err == nil && c.Kind.Sandboxed() {
		p.inner, err = readPID(c.path(fileInner))
	}
	return p, err
}
