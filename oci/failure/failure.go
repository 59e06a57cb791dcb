// Package failure says why a container could not be started: by a kind, which
// callers act on, and a sentence for the user. It knows what libcontainer, hooks
// and the kernel report, and starts nothing itself.
package failure

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Kind classifies why a container could not start.
type Kind string

// The kinds that callers act on. HookMissing and those after it may be worth a
// try on another machine; the others are mistakes in the job or the image.
const (
	CommandNotFound   Kind = "COMMAND_NOT_FOUND"
	CommandNotRunable Kind = "COMMAND_NOT_EXECUTABLE"
	WorkDirMissing    Kind = "WORKDIR_MISSING"
	UserUnknown       Kind = "USER_UNKNOWN"
	ImageUnusable     Kind = "IMAGE_UNUSABLE" // a file of the image lies where it cannot
	MountFailed       Kind = "MOUNT_FAILED"
	MemoryTooSmall    Kind = "MEMORY_TOO_SMALL"
	HookFailed        Kind = "HOOK_FAILED"  // it ran, and could not do with the container's files what it does with others'
	HookMissing       Kind = "HOOK_MISSING" // it could not be begun
	RootfsFailed      Kind = "ROOTFS_FAILED"
	CgroupFailed      Kind = "CGROUP_FAILED"
	RuntimeFailed     Kind = "RUNTIME_FAILED"
)

// Failure is why a container could not start: a sentence for the user, and
// what the runtime said.
type Failure struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Detail  string `json:"detail,omitempty"`
}

// Error makes a Failure an error.
func (f *Failure) Error() string { return f.Message }

// Code is the exit code that stands for the failure, as shells and docker do.
func (f *Failure) Code() int {
	switch f.Kind {
	case CommandNotFound:
		return 127
	case CommandNotRunable:
		return 126
	default:
		return 125
	}
}

// IsImages says that an error is due to how files of the image lie, and not to
// the node.
func IsImages(err error) bool {
	for _, e := range []error{unix.ELOOP, unix.ENOTDIR, unix.EEXIST, unix.EISDIR, unix.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// OfRootfs is an error of mounting the image. Where its layers lie is for
// the node's administrator only.
func OfRootfs(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	text := "the image cannot be mounted on this node"
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		text += ": " + errno.Error()
	}
	return &Failure{Kind: RootfsFailed, Message: text, Detail: err.Error()}
}
