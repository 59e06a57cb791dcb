package boot

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestBoot compares both with what else the kernel says of them.
func TestBoot(t *testing.T) {
	id, err := ID()
	if again, _ := ID(); err != nil || len(id) != len("00000000-0000-0000-0000-000000000000") || again != id {
		t.Errorf("%q, %v, then %q", id, err, again)
	}
	before := Elapsed()
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	s, err := strconv.ParseFloat(first, 64)
	if err != nil {
		t.Fatal(err)
	}
	const unit = 10 * time.Millisecond // of what the file tells
	if up := time.Duration(s * float64(time.Second)); up < before-unit || up > Elapsed()+unit {
		t.Errorf("the machine is up for %v, and between %v and %v", up, before, Elapsed())
	}
}
