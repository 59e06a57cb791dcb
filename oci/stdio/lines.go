package stdio

import (
	"bytes"
	"io"
	"sync"
)

// Lines passes on what several programs write to one log by whole lines, so that one's
// are not in the middle of another's. A carriage return ends a line too.
type Lines struct {
	to    io.Writer
	label []byte // before each line

	mu   sync.Mutex // guards rest
	rest []byte     // of a line that is not complete
}

// maxLine is how long a line may be until it is passed on in pieces.
const maxLine = 16 << 10

// NewLines is a writer of lines that begin with a label.
func NewLines(to io.Writer, label string) *Lines { return &Lines{to: to, label: []byte(label)} }

func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	var out []byte
	for len(l.rest) > 0 {
		end := lineEnd(l.rest)
		if end == 0 {
			break
		}
		out = append(append(out, l.label...), l.rest[:end]...)
		l.rest = l.rest[end:]
	}
	if len(l.rest) == 0 {
		l.rest = nil // a long one is not kept
	}
	if len(out) == 0 {
		return len(p), nil
	}
	if _, err := l.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// lineEnd is behind the first line of b; 0: it is not complete.
func lineEnd(b []byte) int {
	end := bytes.IndexAny(b, "\n\r") + 1
	switch {
	case end == 0 && len(b) >= maxLine:
		return maxLine
	case end == 0 || b[end-1] == '\n':
		return end
	case end == len(b): // a line feed may follow
		return 0
	case b[end] == '\n':
		return end + 1
	}
	return end
}

// End passes on what there is of a last line.
func (l *Lines) End() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) == 0 {
		return nil
	}
	out := append(append(bytes.Clone(l.label), l.rest...), '\n')
	l.rest = nil
	_, err := l.to.Write(out)
	return err
}
