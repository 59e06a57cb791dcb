package ordered

import (
	"errors"
	"os"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// first is a container's first process.
type first interface {
	Pid() (int, error)
	Signal(os.Signal) error
	Wait() (*os.ProcessState, error)
}

// Program is the only program of a container whose first process is a keeper, so that it
// is a process as others are: signals do to it what they do outside of containers, and
// somebody waits for what it leaves. To its shim it is the first process. Begin
// and Wait are called once, one after the other.
type Program struct {
	first  // its keeper
	keeper *Keeper
	files  []*os.File // its standard input, output and errors, until it has begun
	pid    int        // on the host; 0: it has not begun
	status *syscall.WaitStatus
}

// NewProgram takes over a keeper that does not run yet. The program's standard input, output
// and errors stay the caller's.
func NewProgram(p first, k *Keeper, files ...*os.File) (*Program, error) {
	one := &Program{first: p, keeper: k}
	var err error
	if k.Pid, err = p.Pid(); err != nil {
		return one, err
	}
	for _, f := range files {
		if f == nil {
			one.files = append(one.files, nil)
			continue
		}
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return one, os.NewSyscallError("dup", err)
		}
		one.files = append(one.files, os.NewFile(uintptr(fd), f.Name()))
	}
	return one, nil
}

// Begin begins it, once its keeper runs. That takes as long as its directory takes to be entered.
func (p *Program) Begin(of *specs.Process) (err error) {
	p.pid, err = p.keeper.Begin(of, p.files[0], p.files[1], p.files[2])
	p.drop()
	return err
}

func (p *Program) drop() {
	for _, f := range p.files {
		f.Close() // nil: an error
	}
	p.files = nil
}

// Pid is its number on the host.
func (p *Program) Pid() (int, error) {
	if p.pid == 0 {
		return 0, errors.New("it has not begun")
	}
	return p.pid, nil
}

// Wait waits until the container has ended, which it does with the program.
func (p *Program) Wait() (*os.ProcessState, error) {
	p.drop()
	status, _, err := p.keeper.Await()
	if err == nil && p.pid != 0 {
		p.status = &status
	}
	p.keeper.Close()
	return p.first.Wait()
}

// StatusOf is how a first process ended for which Wait has returned this, or the program
// that it is to its shim. That is not known where the container was ended as a whole.
func StatusOf(p any, state *os.ProcessState) syscall.WaitStatus {
	if one, ok := p.(*Program); ok && one.status != nil {
		return *one.status
	}
	status, _ := state.Sys().(syscall.WaitStatus) // it is one on Linux
	return status
}
