// Package boot says which boot of the machine this is, and how long ago it was.
// It keeps nothing: both are the kernel's.
package boot

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ID is of this boot: the machine has another one after each start.
func ID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// Elapsed is how long ago the machine started, with the time in which it slept. Nobody
// can set this clock, as one can the wall clock.
func Elapsed() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every kernel that Go runs on has this clock
	}
	return time.Duration(ts.Nano())
}
