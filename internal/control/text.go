package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gbatch/sched"
)

// trimZeros writes thousandths as a decimal number.
func trimZeros(milli int64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%03d", milli/1000, milli%1000), "0"), ".")
}

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
	return fmt.Sprintf("%s cores and %s", trimZeros(a.MilliCPU), mem)
}

func joinInts(list []int) string {
	var texts []string
	for _, n := range list {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ", ")
}

func joinNames[V any](m map[string]V) string {
	return strings.Join(slices.SortedFunc(maps.Keys(m), cmp.Compare), ", ")
}
