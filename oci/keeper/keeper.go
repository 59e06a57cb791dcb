package keeper

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Main serves the shim until it hangs up, which ends the container.
func Main() error {
	// What runs here later may have the same user: it has no business in this process.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	return Init()
}

// Init is Main for a single program, which may look at this process: others read the
// environment that it began with there.
func Init() error {
	runtime.GOMAXPROCS(1)
	// Programs are begun by this thread alone, so they inherit what it has; see posture.
	runtime.LockOSThread()
	unix.CloseOnExec(FdProgram)
	unix.CloseOnExec(FdSocket)
	// It hears signals from inside and does nothing. Programs do not inherit that.
	signal.Notify(make(chan os.Signal, 1), heard()...)
	own := openPosture()
	before := readPosture(own)
	for {
		var o Order
		files, err := Receive(FdSocket, &o)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		changed := func() bool { return readPosture(own) != before }
		if err := serve(o, files, changed); err != nil {
			return err
		}
	}
}

// serve takes one program from its begin to the end of all that it left. Changed says whether this
// process's posture is another one than at first: no program before changed it, as one that does is the last.
func serve(o Order, files []*os.File, changed func() bool) error {
	handle := -1
	pid, refused := begin(o, files, &handle)
	for _, f := range files {
		f.Close()
	}
	if refused != nil {
		return Send(FdSocket, refused)
	}
	var handles []int
	if handle >= 0 {
		handles = append(handles, handle)
		defer unix.Close(handle)
	}
	if err := Send(FdSocket, &Word{}, handles...); err != nil {
		return err
	}
	status, err := await(pid)
	if err != nil {
		return err
	}
	if err := clear(); err != nil {
		return err
	}
	return Send(FdSocket, &Word{Status: uint32(status), Left: leaves() || changed()})
}

// heard are the signals that would end this process: the kernel keeps those away from
// the first process that it has no handler for, and the Go runtime has one for most.
func heard() (list []os.Signal) {
	for n := syscall.Signal(1); n <= lastSignal; n++ {
		if n != unix.SIGCHLD && n != unix.SIGURG { // they are ignored, and come often
			list = append(list, n)
		}
	}
	return list
}

const lastSignal = 31 // of those that have names

// begin begins the program in a session of its own.
func begin(o Order, files []*os.File, handle *int) (pid int, refused *Word) {
	if len(o.Args) == 0 || len(files) != 3 {
		return 0, &Word{Failure: Refused, Text: "the order lacks a program or its files"}
	}
	if err := os.Chdir(o.Dir); err != nil {
		return 0, &Word{Failure: NoDir, Text: err.Error()}
	}
	defer os.Chdir("/") //nolint:errcheck // it stays where it is at worst
	path, err := lookup(o.Args[0], o.Env)
	if err == nil {
		attr := os.ProcAttr{Env: o.Env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true, PidFD: handle}}
		var p *os.Process
		if p, err = os.StartProcess(path, o.Args, &attr); err == nil {
			pid = p.Pid
			_ = p.Release() // it is waited for with all others
			return pid, nil
		}
	}
	w := &Word{Failure: Refused, Text: err.Error()}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.ELOOP):
		w.Failure = NotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOEXEC):
		w.Failure = NotRunable
	}
	return 0, w
}

// lookup finds a program as shells do, by the PATH that it will have.
func lookup(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	var path string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	err := error(&fs.PathError{Op: "find", Path: name, Err: fs.ErrNotExist})
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		file := filepath.Join(dir, name)
		if !strings.Contains(file, "/") {
			file = "./" + file
		}
		found := executable(file)
		if found == nil {
			return file, nil
		}
		if errors.Is(found, fs.ErrPermission) {
			err = found // told if nothing better is found
		}
	}
	return "", err
}

func executable(file string) error {
	var st unix.Stat_t
	err := unix.Access(file, unix.X_OK) // first, as most directories do not have it
	if err == nil {
		err = unix.Stat(file, &st)
	}
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = unix.EACCES
	}
	if err != nil {
		return &fs.PathError{Op: "execute", Path: file, Err: err}
	}
	return nil
}

// await waits for a program's end, and takes note of what ended beside it.
func await(pid int) (status unix.WaitStatus, err error) {
	for {
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case got == pid:
			return status, nil
		}
	}
}

// clear ends all other processes of the container. The kernel reaches also what forks
// at that moment; and the children of what has ended are this process's before
// that is waited for. So without a child nothing is left: what comes from outside is
// its shim's to see.
func clear() error {
	how := unix.WNOHANG
	for {
		pid, err := unix.Wait4(-1, nil, how, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case err == nil && pid == 0:
			if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			how = 0
		}
	}
}
