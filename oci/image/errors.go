package image

import (
	"errors"
	"fmt"

	"gbatch/oci/ref"
)

// Kind of a pull failure.
type Kind string

// The kinds; Fault says whose fault each is.
const (
	NotFound     Kind = "not_found"     // no such registry path, tag, digest or file
	Denied       Kind = "denied"        // the registry refuses, or this site does
	Unreachable  Kind = "unreachable"   // no answer, or a server error
	Corrupt      Kind = "corrupt"       // bytes do not match their digest, or make no sense
	BadReference Kind = "bad_reference" // the reference cannot name an image
	Timeout      Kind = "timeout"       // Config.PullTimeout
	DiskFull     Kind = "disk_full"     // of this node, whatever the image
	Unsupported  Kind = "unsupported"   // an image that cannot run here, or does not fit
	Internal     Kind = "internal"      // the store's own files
)

// Fault is who or what has to change for a pull to work.
type Fault string

// The faults. A node is to be doubted for FaultNode only, which no image and
// no registry can bring about: it is said of what the store has seen of its
// own machine, never of what came over the network.
const (
	FaultUser     Fault = "user"     // the image, its name, or the right to it
	FaultRegistry Fault = "registry" // it does not answer, or sends what it should not
	FaultNode     Fault = "node"
)

// ErrForbidden is wrapped by errors of Config.Dial for addresses that may not
// be connected to.
var ErrForbidden = errors.New("inside this site")

// PullError is every error of Pull and Resolve, except that a caller whose
// context ended gets the context's error. Its text is a sentence for the user
// and holds no password; Unwrap gives the cause for a log.
type PullError struct {
	Kind      Kind
	Ref       ref.Ref
	Detail    string // what is wrong, without the name of the image
	Temporary bool   // trying again later may help; Pull did, Config.Retries times

	cause error
}

func (e *PullError) Error() string {
	return fmt.Sprintf("image %s: %s", e.Ref.Familiar(), e.Detail)
}

// Fault says whose fault the failure is.
func (e *PullError) Fault() Fault {
	switch e.Kind {
	case Unreachable, Timeout, Corrupt:
		return FaultRegistry
	case DiskFull, Internal:
		return FaultNode
	}
	return FaultUser
}

func (e *PullError) Unwrap() error { return e.cause }

// fail makes the errors that are found here, not by a library.
func fail(kind Kind, format string, args ...any) *PullError {
	err := fmt.Errorf(format, args...)
	return &PullError{Kind: kind, Detail: err.Error(), cause: err}
}
