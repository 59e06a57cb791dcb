// Package stdio is where a container's input comes from and its output goes:
// pipes, or a terminal, to its log and to files of its user's. It knows no
// container but the one process that it serves; whoever starts that owns the pump.
package stdio

import "os"

// Files are files of the user's for a program's standard input, output and
// errors; nil: it has none. They are open for what they are, and were opened
// with the user's rights: the shim only reads and writes.
type Files struct {
	Input *os.File // instead of nothing to read
	// What the log gets is copied to these. Without Error, errors go where the output goes.
	Output, Error *os.File
}

// All are those that there are.
func (s Files) All() (files []*os.File) {
	for _, f := range []*os.File{s.Input, s.Output, s.Error} {
		if f != nil {
			files = append(files, f)
		}
	}
	return files
}

// Names says which of the files there are.
func (s Files) Names() *Names {
	if len(s.All()) == 0 {
		return nil
	}
	return &Names{Input: s.Input != nil, Output: s.Output != nil, Error: s.Error != nil}
}

// Names are the files of [Files] that are handed over.
type Names struct {
	Input  bool `json:"input,omitempty"`
	Output bool `json:"output,omitempty"`
	Error  bool `json:"error,omitempty"`
}

// Count is how many there are.
func (n *Names) Count() (count int) {
	if n == nil {
		return 0
	}
	for _, is := range []bool{n.Input, n.Output, n.Error} {
		if is {
			count++
		}
	}
	return count
}

// Of gives files their names again, which are in the order of All.
func (n *Names) Of(files []*os.File) (s Files) {
	if n == nil {
		return s
	}
	for _, place := range []struct {
		is bool
		to **os.File
	}{{n.Input, &s.Input}, {n.Output, &s.Output}, {n.Error, &s.Error}} {
		if place.is {
			*place.to, files = files[0], files[1:]
		}
	}
	return s
}
