package lease

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"gbatch/oci/boot"
)

// Lease is the content of a lease's file: until when the container may
// run without anybody saying more. Its owner replaces the file as a whole to
// renew it.
type Lease struct {
	// UntilMS is a moment of the clock that runs from boot and through sleep
	// (CLOCK_BOOTTIME), in milliseconds, so that steps of the wall clock do not
	// touch it.
	UntilMS int64 `json:"untilMs"`
	// GuardMS is the same for a Guard, somewhat later: what the shims have not ended
	// by then it ends.
	GuardMS int64 `json:"guardMs,omitempty"`
}

// Left is how long a shim's container may go on.
func Left(file string) (time.Duration, error) {
	l, err := read(file)
	if err != nil {
		return 0, err
	}
	return untilBoot(l.UntilMS), nil
}

// guardLeft is how long a guard leaves containers to their shims.
func guardLeft(file string) (time.Duration, error) {
	l, err := read(file)
	if err != nil {
		return 0, err
	}
	return untilBoot(max(l.GuardMS, l.UntilMS)), nil
}

func read(file string) (l Lease, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return l, fmt.Errorf("read lease: %w", err)
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return l, fmt.Errorf("read lease %s: %w", file, err)
	}
	return l, nil
}

// untilBoot is how far a moment of the clock that runs from boot is away.
func untilBoot(ms int64) time.Duration { return time.Duration(ms)*time.Millisecond - boot.Elapsed() }
