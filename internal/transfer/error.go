package transfer

import (
	"cmp"
	"errors"
	"fmt"
)

// Kind is what is behind an error, for those who decide whose fault it is.
type Kind string

// The kinds.
const (
	NotFound    Kind = "NOT_FOUND"   // there is no such object
	Denied      Kind = "DENIED"      // the server does not let us, or the keys are wrong
	Forbidden   Kind = "FORBIDDEN"   // this site does not let us
	Invalid     Kind = "INVALID"     // what is there is not what was asked for
	TooLarge    Kind = "TOO_LARGE"   // more than a site's bound
	Unreachable Kind = "UNREACHABLE" // the server does not answer as it should, tried several times
	Local       Kind = "LOCAL"       // this machine's disk
)

// Error is a transfer that failed, in a sentence for the user that begins with
// the URI.
type Error struct {
	Kind Kind
	URI  string
	Text string
	err  error
}

func (e *Error) Error() string { return e.URI + ": " + e.Text }
func (e *Error) Unwrap() error { return e.err }

func fail(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// At is an error about a URI that is not of this package's making.
func At(kind Kind, uri, text string) *Error { return &Error{Kind: kind, URI: uri, Text: text} }

// Name names the URI that an error is about, unless it names one. What is no
// Error yet came from the network after all tries, or from the disk.
func Name(uri string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		named := *e
		named.URI = cmp.Or(named.URI, uri)
		return &named
	}
	return &Error{Kind: Unreachable, URI: uri, Text: plain(err), err: err}
}

// LocalError is an error of this machine's files, about a URI.
func LocalError(uri string, err error) error { return Name(uri, local(err)) }

// local marks an error of this machine's files.
func local(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: Local, Text: "write on the node: " + err.Error(), err: err}
}
