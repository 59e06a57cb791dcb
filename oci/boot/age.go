package boot

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// AgeOf is for how long a process has run, by the clock that runs from boot.
func AgeOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, which the program chooses, ends at the last parenthesis; the start is
	// the 20th field after it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	if err != nil {
		return 0, err
	}
	const tick = time.Second / 100 // on every architecture that Go knows
	return Elapsed() - time.Duration(ticks)*tick, nil
}
