package contact

import "time"

// memory is what the controller said last of how far its records have come. The
// node says it again at each sync, so that a controller whose records went back
// to an older state learns of that.
type memory struct {
	path  string
	files Files
	text  string
	saved time.Duration // when the file was written; 0: not yet
}

// openMemory reads what an earlier daemon kept. A damaged file says nothing.
func openMemory(path string, files Files) *memory {
	text, err := files.Read(path)
	if err != nil {
		text = nil
	}
	return &memory{path: path, files: files, text: string(text)}
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
	return m.files.Write(m.path, []byte(text))
}
