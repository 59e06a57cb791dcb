package rank

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/node"
)

// gpuMemNow is the memory that is used now on GPUs, all together; nil: not known.
func gpuMemNow(ids []string, samples []api.GPUSample) *int64 {
	var sum *int64
	for _, s := range samples {
		if s.MemUsed == nil || !slices.Contains(ids, s.UUID) {
			continue
		}
		if sum == nil {
			sum = new(int64)
		}
		*sum += *s.MemUsed
	}
	return sum
}

// networkNow is what went through the own network of a container, by the number of its
// first process; nil: that is just ending.
func networkNow(pid int) *node.NetUse {
	if pid == 0 {
		return nil
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "net/dev"))
	if err != nil {
		return nil
	}
	return interfaces(string(text))
}

// interfaces adds up the counters of all interfaces but the loopback, as the kernel
// writes them: two lines of heads, then each name with eight counters of what was
// received and eight of what was sent, of which the first are bytes.
func interfaces(text string) *node.NetUse {
	use := &node.NetUse{}
	for line := range strings.Lines(text) {
		name, counters, ok := strings.Cut(line, ":")
		fields := strings.Fields(counters)
		if !ok || strings.TrimSpace(name) == "lo" || len(fields) < 9 {
			continue
		}
		received, err1 := strconv.ParseInt(fields[0], 10, 64)
		sent, err2 := strconv.ParseInt(fields[8], 10, 64)
		if err1 == nil && err2 == nil {
			use.Received += received
			use.Sent += sent
		}
	}
	return use
}
