package events

import (
	"bytes"
	"strconv"
	"testing"
)

// TestTold: an event is written once while it is among the last, a stream that is
// behind takes no place from others, and a long one is not kept.
func TestTold(t *testing.T) {
	var kept told
	written := 0
	text := func(id uint64, size int) string {
		b, err := kept.text(id, func() ([]byte, error) {
			written++
			return bytes.Repeat(strconv.AppendUint(nil, id%10, 10), size), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, tc := range []struct {
		what string
		id   uint64
		size int
		want string
		new  bool
	}{
		{"the first", 1, 2, "11", true},
		{"the first, again", 1, 2, "11", false},
		{"another", 2, 2, "22", true},
		{"in the place of the first", 1 + toldEvents, 1, strconv.Itoa((1 + toldEvents) % 10), true},
		{"the first, behind", 1, 2, "11", true},
		{"which has its place still", 1 + toldEvents, 1, strconv.Itoa((1 + toldEvents) % 10), false},
	} {
		before := written
		if got := text(tc.id, tc.size); got != tc.want || (written > before) != tc.new {
			t.Errorf("%s: %q, written anew: %v; want %q, %v", tc.what, got, written > before, tc.want, tc.new)
		}
	}
	before := written
	text(5, toldBytes+1)
	text(5, toldBytes+1)
	if written != before+2 {
		t.Errorf("a long one was written %d times, want 2", written-before)
	}
}
