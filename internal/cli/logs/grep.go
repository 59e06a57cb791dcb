package logs

import (
	"bytes"
	"io"
	"regexp"
)

// filter lets lines through that match; without a pattern it lets everything
// through as it comes.
type filter struct {
	out     io.Writer
	pattern *regexp.Regexp // nil: everything
	line    []byte         // has no end yet
}

// Write keeps a line together up to maxPrefixed bytes; the parts of a longer one are
// looked at one by one.
func (f *filter) Write(p []byte) (int, error) {
	if f.pattern == nil {
		return f.out.Write(p)
	}
	for rest := p; len(rest) > 0; {
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			n = len(rest)
		}
		n = min(n, maxPrefixed)
		f.line = append(f.line, rest[:n]...)
		rest = rest[n:]
		if f.line[len(f.line)-1] == '\n' || len(f.line) >= maxPrefixed {
			if err := f.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

func (f *filter) flush() (err error) {
	if f.pattern.Match(bytes.TrimRight(f.line, "\r\n")) {
		_, err = f.out.Write(f.line)
	}
	f.line = f.line[:0]
	return err
}

// end looks at a last line that has no end.
func (f *filter) end() error {
	if len(f.line) == 0 {
		return nil
	}
	return f.flush()
}
