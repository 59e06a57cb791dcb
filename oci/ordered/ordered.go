// Package ordered is a shim's side of a container whose first process is a keeper: it
// has that begin programs, one at a time, and hears how they ended. See package keeper.
package ordered

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/oci/failure"
	"gbatch/oci/keeper"
	"gbatch/oci/message"
)

// Keeper is the first process of a container, as its shim has it.
type Keeper struct {
	Pid    int // on the host
	socket int
}

// Open makes a keeper's socket. The files are for the process that is to be one, behind
// its standard error, and are the caller's.
func Open(program string) (*Keeper, []*os.File, error) {
	file, err := os.Open(program)
	if err != nil {
		return nil, nil, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("reach the keeper: %w", err)
	}
	return &Keeper{socket: fds[0]}, []*os.File{file, os.NewFile(uintptr(fds[1]), "keeper")}, nil
}

// Close hangs up, by which the keeper ends, and the container with it.
func (k *Keeper) Close() { _ = unix.Close(k.socket) }

// Begin has it begin a program with this standard input, output and errors, and says which
// process that is on the host. No input is an empty one. A failure.Failure is the keeper's
// own word: it goes on.
func (k *Keeper) Begin(p *specs.Process, in, out, errs *os.File) (pid int, err error) {
	if in == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return 0, err
		}
		defer null.Close()
		in = null
	}
	order := &keeper.Order{Args: p.Args, Env: p.Env, Dir: p.Cwd}
	if err := keeper.Send(k.socket, order, int(in.Fd()), int(out.Fd()), int(errs.Fd())); err != nil {
		return 0, fmt.Errorf("reach the keeper: %w", err)
	}
	var w keeper.Word
	files, err := keeper.Receive(k.socket, &w)
	defer message.CloseAll(files)
	if err != nil {
		return 0, fmt.Errorf("hear of the keeper: %w", err)
	}
	if err := refusal(w, p); err != nil {
		return 0, err
	}
	return pidOf(files, k.Pid), nil
}

// pidOf is a program's number on the host, by the handle that its keeper sent. Without
// one it is the keeper's, which is in the same container.
func pidOf(files []*os.File, keeper int) int {
	if len(files) == 1 {
		if pid := pidIn(fmt.Sprintf("/proc/self/fdinfo/%d", files[0].Fd())); pid > 0 {
			return pid
		}
	}
	return keeper
}

// pidIn is the number in what the kernel says of a handle; 0: there is none. It makes no more calls than it must.
func pidIn(file string) (pid int) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	text := make([]byte, 512) // of some 80
	n, err := unix.Read(fd, text)
	if err != nil {
		return 0
	}
	_, line, _ := strings.Cut(string(text[:n]), "\nPid:\t")
	line, _, _ = strings.Cut(line, "\n")
	pid, _ = strconv.Atoi(line) // an error: 0
	return pid
}

// refusal is why a program did not begin, by its keeper's word.
func refusal(w keeper.Word, p *specs.Process) error {
	f := failure.Failure{Kind: failure.RuntimeFailed, Message: "the program could not be begun", Detail: w.Text}
	switch w.Failure {
	case "":
		return nil
	case keeper.NoDir:
		f.Kind, f.Message = failure.WorkDirMissing, fmt.Sprintf("working directory %q cannot be used in the image", p.Cwd)
	case keeper.NotFound:
		f.Kind, f.Message = failure.CommandNotFound, fmt.Sprintf("command %q is not in the image", p.Args[0])
	case keeper.NotRunable:
		f.Kind, f.Message = failure.CommandNotRunable, fmt.Sprintf("command %q is not executable by the container's user", p.Args[0])
	}
	return &f
}

// Await waits until the program has ended, and all that it left. Left says that something
// is there all the same that goes only with the container. An error is that the keeper has ended.
// A program of the keeper's user can have it say what it likes, but not that it ended in no way.
func (k *Keeper) Await() (status syscall.WaitStatus, left bool, err error) {
	var w keeper.Word
	files, err := keeper.Receive(k.socket, &w)
	message.CloseAll(files)
	status = syscall.WaitStatus(w.Status)
	if !status.Exited() && !status.Signaled() {
		status = syscall.WaitStatus(unix.SIGKILL)
	}
	return status, w.Left, err
}
