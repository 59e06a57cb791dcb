package state

import (
	"testing"
	"unsafe"
)

// A queue of a hundred thousand jobs is mostly values of this type. Memory is
// given out in classes of sizes, and 352 is one.
func TestJobIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Job{}); size > 352 {
		t.Errorf("a job takes %d bytes, want at most 352; the next class is 384", size)
	}
}
