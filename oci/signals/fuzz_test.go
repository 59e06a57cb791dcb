package signals

import "testing"

// FuzzStat: a process that calls itself as it likes is no other process's child.
func FuzzStat(f *testing.F) {
	for _, name := range []string{"sh", "a) Z 1", "a) R 7 7 7", ") ", "\n", "(x)"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		line := []byte("12 (" + name[:min(len(name), 15)] + ") S 42 12 43 0 -1 4194560\n")
		if n, err := fieldOf(line, 12, statParent); err != nil || n != 42 {
			t.Errorf("%q has the parent %d, %v", name, n, err)
		}
		if n, err := fieldOf(line, 12, statSession); err != nil || n != 43 {
			t.Errorf("%q is in session %d, %v", name, n, err)
		}
		_, _ = fieldOf([]byte(name), 12, statParent)
	})
}
