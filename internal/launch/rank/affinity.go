package rank

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// pin keeps this goroutine on its thread and the thread on the cores, which what
// it begins inherits; nil are all. Back undoes both.
func pin(cpus []int) (back func(), err error) {
	runtime.LockOSThread()
	if len(cpus) == 0 {
		return runtime.UnlockOSThread, nil
	}
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("bind to cores: %w", err)
	}
	for _, c := range cpus {
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("bind to cores: %w", err)
	}
	return func() {
		if unix.SchedSetaffinity(0, &before) == nil {
			runtime.UnlockOSThread()
		} // else the thread ends with its goroutine
	}, nil
}
