package image

import (
	"fmt"

	"gbatch/oci/ref"
)

// Kind of a pull failure.
type Kind string

// The kinds. All but Internal are about the image, the registry or the user's
// rights; Internal is about this node.
const (
	NotFound     Kind = "not_found"     // no such registry path, tag, digest or file
	Denied       Kind = "denied"        // the registry or this node refuses
	Unreachable  Kind = "unreachable"   // no answer, or a server error
	Corrupt      Kind = "corrupt"       // bytes do not match their digest, or make no sense
	BadReference Kind = "bad_reference" // the reference cannot name an image
	Timeout      Kind = "timeout"       // Config.PullTimeout
	DiskFull     Kind = "disk_full"     // of this node
	Unsupported  Kind = "unsupported"   // a good image that cannot run here
	Internal     Kind = "internal"      // the store's own files
)

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

func (e *PullError) Unwrap() error { return e.cause }

// fail makes the errors that are found here, not by a library.
func fail(kind Kind, format string, args ...any) *PullError {
	err := fmt.Errorf(format, args...)
	return &PullError{Kind: kind, Detail: err.Error(), cause: err}
}
