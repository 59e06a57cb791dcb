package transfer

import (
	"context"
	"io"
	"path/filepath"
	"strings"
)

// Source is where data comes from: one object, or a directory of them.
type Source interface {
	// List returns what is there. Names are relative, with slashes; of a single
	// object it is "".
	List(ctx context.Context) ([]Object, error)
	// Open returns the bytes of o from one offset to another. An error that is
	// no *Error is worth another try.
	Open(ctx context.Context, o Object, from, to int64) (io.ReadCloser, error)
	Close()
}

// Object is one file of a source.
type Object struct {
	Name      string `json:"name"`
	Size      int64  `json:"size"`              // -1: not known
	Version   string `json:"version,omitempty"` // changes with the content; "": not known
	FromStart bool   `json:"whole,omitempty"`   // it can only be read from its beginning
}

// maxObjects bounds the files of one source.
const maxObjects = 100_000

const maxName = 1024

// checkName refuses names that cannot be files below a directory.
func checkName(name string) error {
	switch {
	case name == "" || name == "." || len(name) > maxName || strings.ContainsRune(name, 0):
	case !filepath.IsLocal(name) || filepath.Clean(name) != name || strings.ContainsRune(name, '\\'):
	default:
		for part := range strings.SplitSeq(name, "/") {
			if len(part) > 255 {
				return fail(Invalid, "object %.100q has a name that no file can have", name)
			}
		}
		return nil
	}
	return fail(Invalid, "object %.100q has a name that no file can have", name)
}

// part reads no more than the bytes of an interval.
func part(body io.ReadCloser, n int64) io.ReadCloser {
	if n < 0 {
		return body
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, n), body}
}
