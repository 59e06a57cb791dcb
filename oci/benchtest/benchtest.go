// Package benchtest tells benchmarks of containers what these cost the machine.
package benchtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is what this process and its children have used, those that live also.
// It varies less with the machine's other load than the time on the wall.
func ProcessorTime(tb testing.TB) time.Duration {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		tb.Fatal(err)
	}
	sum := time.Duration(use.Utime.Nano() + use.Stime.Nano())
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &use); err != nil { // those that it waited for
		tb.Fatal(err)
	}
	sum += time.Duration(use.Utime.Nano() + use.Stime.Nano())
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, name := range tasks {
		pids, _ := os.ReadFile(name)
		for pid := range strings.FieldsSeq(string(pids)) {
			sum += childTime(pid)
		}
	}
	return sum
}

// childTime is what a child that lives and those that it waited for have used.
func childTime(pid string) time.Duration {
	line, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(line), ") ")
	fields := strings.Fields(rest)
	var ticks int
	for i := 11; i <= 14 && i < len(fields); i++ { // utime, stime, cutime, cstime
		n, _ := strconv.Atoi(fields[i])
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}
