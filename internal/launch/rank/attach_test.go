package rank

import (
	"fmt"
	"testing"

	"gbatch/internal/launch"
)

// TestWatchers: who reads too slowly loses the place, and nobody else does.
func TestWatchers(t *testing.T) {
	var all watchers
	slow, err := all.join()
	if err != nil {
		t.Fatal(err)
	}
	quick, err := all.join()
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 8)
	for n := range watcherFrames + 1 {
		copy(body, fmt.Sprintf("%8d", n)) // the writer uses it again
		all.tell(launch.Frame{Kind: launch.KindOutput, Body: body})
		if f := <-quick.frames; string(f.Body) != fmt.Sprintf("%8d", n) {
			t.Fatalf("frame %d is %q", n, f.Body)
		}
	}
	seen := 0
	for range slow.frames {
		seen++
	}
	if seen != watcherFrames || !slow.late || quick.late {
		t.Errorf("the slow one saw %d frames, late: %v; the quick one late: %v", seen, slow.late, quick.late)
	}
	for range maxWatchers - 1 {
		if _, err := all.join(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := all.join(); err == nil {
		t.Error("more than the most were let in")
	}
	all.leave(slow) // again
	all.leave(quick)
	all.end()
	if _, more := <-quick.frames; more {
		t.Error("something came after the end")
	}
	if _, err := all.join(); err == nil {
		t.Error("somebody was let in after the end")
	}
}
