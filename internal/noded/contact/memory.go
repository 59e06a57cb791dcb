package contact

import (
	"os"
	"time"

	"gbatch/oci/atomicfile"
)

// memory is what the controller said last of how far its records have come. The
// node says it again at each sync, so that a controller whose records went back
// to an older state learns of that.
type memory struct {
	path  string
	text  string
	saved time.Duration // when the file was written; 0: not yet
}

// openMemory reads what an earlier daemon kept. A damaged file says nothing.
func openMemory(path string) *memory {
	text, err := os.ReadFile(path)
	if err != nil {
		text = nil
	}
	return &memory{path: path, text: string(text)}
}

// keep notes what was said. The file is behind by saveEvery at most.
func (m *memory) keep(text string, now time.Duration) error {
	if text == "" || text == m.text {
		return nil
	}
	m.text = text
	if m.saved > 0 && now-m.saved < saveEvery {
		return nil
	}
	m.saved = now
	return atomicfile.Write(m.path, []byte(text))
}
