package e2e

import (
	"os/exec"
	"runtime"
	"syscall"
)

// starts is what is done on a thread that lives as long as the tests.
var starts = make(chan func())

func init() {
	go func() { // ends with the process
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
}

// startChild starts a process that is killed when the tests end, also where they
// crash. The kernel takes the end of the thread that started it for that, and
// threads do end: those that were in another network namespace.
func startChild(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	starts <- func() { started <- cmd.Start() }
	return <-started
}
