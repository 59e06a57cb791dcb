package fixed

import "testing"

func TestLogarithmAndBack(t *testing.T) {
	for _, x := range []uint64{1, 2, 3, 7, 8, 100, 1000, 12_345, 1 << 30, 1<<40 + 12345, 1 << 62} {
		back := Exp2(Log2(x))
		if back > x || x-back > x/40+1 {
			t.Errorf("%d comes back as %d", x, back)
		}
	}
}
