package transfer

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"sync"
)

// journal remembers what was sent, one line for each step, so that who comes
// after a crash does not begin again. A last line that was cut off is nothing.
type journal struct {
	mu    sync.Mutex // guards what follows
	file  *os.File
	known map[string]entry
}

type entry struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Upload  string `json:"upload,omitempty"` // of a large file: the server's name for what has come of it
	Done    bool   `json:"done,omitempty"`
}

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{file: f, known: map[string]entry{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			j.known[e.Name] = e
		}
	}
	if err := lines.Err(); err != nil {
		f.Close()
		return nil, err
	}
	_, err = f.WriteString("\n") // ends a line that was cut off
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

func (j *journal) close() { j.file.Close() }

func (j *journal) sent(o Object) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.known[o.Name]
	return e.Done && e.Version == o.Version
}

// upload is the server's name for what was begun of a file, or "".
func (j *journal) upload(o Object) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.known[o.Name]; e.Version == o.Version {
		return e.Upload
	}
	return ""
}

func (j *journal) add(e entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.known[e.Name] = e
	_, err = j.file.Write(append(b, '\n'))
	return err
}
