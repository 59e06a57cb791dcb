package unpack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Kind says what an Error is about.
type Kind int

// The kinds.
const (
	Corrupt     Kind = iota // the layer's bytes, which make no sense or do not match
	Unsupported             // a layer that is more than its target allows
	Local                   // perhaps the disk, of which the caller shall see for itself
)

// Error is what keeps a layer from being unpacked.
type Error struct {
	Kind   Kind
	Detail string // for the user: without paths of this node
	Cause  error  // for a log
}

func (e *Error) Error() string { return e.Detail }

func (e *Error) Unwrap() error { return e.Cause }

func fail(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Detail: err.Error(), Cause: err}
}

func wrap(kind Kind, cause error, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...), Cause: cause}
}

// TooBig is the error of an image with files of more bytes than the limit.
func TooBig(limit int64) *Error {
	return fail(Unsupported, "it unpacks to more than the %d MiB that this node allows for an image", limit>>20)
}

// local are what the system says of a disk or a process, not of a layer.
var local = map[unix.Errno]bool{
	unix.ENOSPC: true, unix.EDQUOT: true, unix.EIO: true, unix.EROFS: true, unix.EPERM: true,
	unix.EMFILE: true, unix.ENFILE: true, unix.ENOMEM: true,
}

// explain tells errors of the layer from those that may be the disk's.
func explain(err error) error {
	var known *Error
	var errno unix.Errno
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &errno) && local[errno]:
		return wrap(Local, err, "it cannot be unpacked on this node: %s", plainReason(err))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return wrap(Corrupt, err, "it ends too early")
	}
	return wrap(Corrupt, err, "%s", plainReason(err))
}

// plainReason leaves paths of the store out of a message.
func plainReason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Sprintf("an entry %q cannot be made: %v", filepath.Base(p.Path), p.Err)
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return fmt.Sprintf("a link %q cannot be made: %v", filepath.Base(l.New), l.Err)
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}
