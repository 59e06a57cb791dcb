package atomicfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestParts: each part of a file is read whatever became of the other, and not where it is damaged itself.
func TestParts(t *testing.T) {
	one, two, room := Sum([]byte("one")), Sum([]byte("two")), bytes.Repeat([]byte(" "), 9)
	bad := func(part []byte) []byte {
		part = bytes.Clone(part)
		part[1] ^= 1
		return part
	}
	const damaged = "damaged"
	for name, tc := range map[string]struct {
		text        []byte
		first, last string
	}{
		"one":            {one, "one", "one"},
		"one-with-room":  {slices.Concat(one, room), "one", "one"},
		"two":            {slices.Concat(one, room, two, room), "one", "two"},
		"first-damaged":  {slices.Concat(bad(one), room, two, room), damaged, "two"},
		"second-damaged": {slices.Concat(one, room, bad(two), room), "one", damaged},
		"second-torn":    {slices.Concat(one, room, two[:8]), "one", damaged},
		"without-sum":    {[]byte("old"), "old", "old"},
		"nothing":        {nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, tc.text, 0o600); err != nil {
				t.Fatal(err)
			}
			for part, want := range map[Part]string{First: tc.first, Last: tc.last} {
				got, err := ReadPart(path, part)
				if is := errors.Is(err, ErrDamaged); is != (want == damaged) || !is && (string(got) != want || err != nil) {
					t.Errorf("part %d: %q, %v, want %q", part, got, err, want)
				}
			}
		})
	}
}
