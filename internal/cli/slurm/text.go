package slurm

import (
	"fmt"
	"strconv"
	"time"

	"gbatch/internal/api"
)

// number is a number that was written as text.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// exitStatus is a code and a signal, of which Slurm shows one.
func exitStatus(j *api.Job) string {
	code, signal := exitPair(j)
	return fmt.Sprintf("%d:%d", code, signal)
}

// elapsed is sacct's and scontrol's: two digits for hours at least.
func elapsed(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if days := s / 86400; days > 0 {
		text = fmt.Sprintf("%d-%s", days, text)
	}
	return text
}
