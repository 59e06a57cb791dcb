package launch

import (
	"bytes"
	"maps"
	"testing"
)

// TestParts: what is said of a fence is cut into frames that a connection takes, of
// which the last says that it is.
func TestParts(t *testing.T) {
	for name, sizes := range map[string][]int{
		"nothing": nil,
		"little":  {10, 20},
		"much":    {PMIxTask, PMIxTask, 1, PMIxTask / 2, PMIxTask/2 + 1},
	} {
		f := PMIxFence{Tasks: []int{0, 9}, Data: map[int][]byte{}}
		for task, n := range sizes {
			f.Data[task] = make([]byte, n)
		}
		got := PMIxFence{Data: map[int][]byte{}}
		parts := f.Parts()
		for k, p := range parts {
			if body, err := Encode(p); err != nil || len(body) > maxBody {
				t.Errorf("%s: part %d has %d bytes, %v", name, k, len(body), err)
			}
			if last := k == len(parts)-1; p.Fence.More == last {
				t.Errorf("%s: part %d of %d says more: %v", name, k, len(parts), p.Fence.More)
			}
			maps.Copy(got.Data, p.Fence.Data)
		}
		if !maps.EqualFunc(f.Data, got.Data, bytes.Equal) {
			t.Errorf("%s: the parts are not the whole", name)
		}
	}
}
