package atomicfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestParts: the last part of a file is read whatever became of the other, and not where it is damaged itself.
func TestParts(t *testing.T) {
	one, two, room := Sum([]byte("one")), Sum([]byte("two")), bytes.Repeat([]byte(" "), 9)
	bad := func(part []byte) []byte {
		part = bytes.Clone(part)
		part[1] ^= 1
		return part
	}
	const damaged = "damaged"
	for name, tc := range map[string]struct {
		text []byte
		want string
	}{
		"one":            {one, "one"},
		"one-with-room":  {slices.Concat(one, room), "one"},
		"two":            {slices.Concat(one, room, two, room), "two"},
		"first-damaged":  {slices.Concat(bad(one), room, two, room), "two"},
		"second-damaged": {slices.Concat(one, room, bad(two), room), damaged},
		"second-torn":    {slices.Concat(one, room, two[:8]), damaged},
		"without-sum":    {[]byte("old"), "old"},
		"nothing":        {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, tc.text, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadLast(path)
			if is := errors.Is(err, ErrDamaged); is != (tc.want == damaged) || !is && (string(got) != tc.want || err != nil) {
				t.Errorf("%q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
