package atomicfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestSum: a file is read as it was written, also where blanks keep room behind it and where an earlier
// version wrote it; whichever bit is changed, it is damaged or its text is no JSON any more.
func TestSum(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	read := func(text []byte) (string, error) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path)
		return string(got), err
	}
	for _, text := range []string{"", "{}", `{"a":1}`, "12", "a\n#crc32c 00000000\n"} {
		whole := Sum([]byte(text))
		for _, stored := range [][]byte{whole, append(bytes.Clone(whole), bytes.Repeat([]byte(" "), 100)...)} {
			if got, err := read(stored); got != text || err != nil {
				t.Errorf("%q is read as %q, %v", stored, got, err)
			}
		}
		for bit := range 8 * len(whole) {
			changed := bytes.Clone(whole)
			changed[bit/8] ^= 1 << (bit % 8)
			if got, err := read(changed); !errors.Is(err, ErrDamaged) && got == text {
				t.Errorf("bit %d of %q is changed, and it is read", bit, whole)
			} else if err == nil && !bytes.Contains([]byte(got), []byte("crc")) && bit/8 < len(text) {
				t.Errorf("bit %d of %q is changed, and %q is read", bit, whole, got)
			}
		}
	}
	if got, err := read([]byte(`{"old":true}`)); got != `{"old":true}` || err != nil {
		t.Errorf("of an earlier version: %q, %v", got, err)
	}
	if _, err := Read(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
