// Command program is what gnoded mounts into the containers of jobs that start
// tasks by srun: see internal/noded/inside. It is one file for all that is
// called there, and static, so that it works in every image.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

// In a rank that waits for tasks this is the first process: it holds the
// container until it is told to end, and takes in the processes of those whose
// parents have gone.
func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCHLD)
	for s := range signals {
		switch s {
		case syscall.SIGCHLD:
			for {
				if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
					break
				}
			}
		case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
			return
		}
	}
}
