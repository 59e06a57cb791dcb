package program

import "sync"

// tail keeps the last bytes that were written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
	cut  bool // something before kept is gone
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - maxOutput; over > 0 {
		t.kept, t.cut = append([]byte(nil), t.kept[over:]...), true
	}
	return len(p), nil
}

// String is what was kept; a line whose beginning is gone is left out.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.kept
	if t.cut {
		for i, c := range text {
			if c == '\n' {
				return string(text[i+1:])
			}
		}
	}
	return string(text)
}
