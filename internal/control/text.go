package control

import (
	"fmt"

	"gbatch/sched"
	"gbatch/sched/words"
)

func joinText(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// sizeText is CPU and memory for people.
func sizeText(a sched.Allocation) string {
	mem := fmt.Sprintf("%d MiB", a.MemMiB)
	if a.MemMiB%1024 == 0 {
		mem = fmt.Sprintf("%d GiB", a.MemMiB>>10)
	}
	return fmt.Sprintf("%s cores and %s", words.Thousandths(a.MilliCPU), mem)
}
