package oci

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// failureOf says in a sentence why libcontainer could not start a container.
// libcontainer reports most causes as text from another process, so the texts
// are matched; a test with real containers holds each of them.
func failureOf(err error, p *specs.Process, mounts []specs.Mount) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	text := err.Error()
	for _, rule := range failureRules() {
		if m := rule.pattern.FindStringSubmatch(text); m != nil {
			return &Failure{Kind: rule.kind, Message: rule.say(failureContext{match: m, process: p, mounts: mounts}), Detail: text}
		}
	}
	return &Failure{Kind: RuntimeFailed, Message: "container could not be started: " + innermost(strings.ReplaceAll(text, stageRootfs, "")), Detail: text}
}

type failureContext struct {
	match   []string
	process *specs.Process
	mounts  []specs.Mount
}

type failureRule struct {
	pattern *regexp.Regexp
	kind    FailureKind
	say     func(failureContext) string
}

func command(c failureContext) string { return c.process.Args[0] }

// target is where in the container a place of the host was to be mounted. The
// place itself is not the user's business.
func target(c failureContext, source string) string {
	for _, m := range c.mounts {
		if m.Source == source {
			return m.Destination
		}
	}
	return "a place"
}

// quoted is a Go string as errors have it.
const quoted = `"(?:[^"\\]|\\.)*"`

// failureRules are compiled at the first failure: each container's start runs
// this package's initialization twice. Their order matters, as an OOM kill
// shows as many other errors too.
var failureRules = sync.OnceValue(func() []failureRule {
	return []failureRule{
		{regexp.MustCompile(`OOM-killed|unable to set memory limit`), MemoryTooSmall, func(failureContext) string {
			return "memory limit is too small to start a container; ask for more memory"
		}},
		{regexp.MustCompile(`chdir to cwd.*permission denied`), WorkDirMissing, func(c failureContext) string {
			return fmt.Sprintf("working directory %q may not be entered by the container's user", c.process.Cwd)
		}},
		{regexp.MustCompile(`chdir to cwd|container init: mkdir |outside of container mount namespace`), WorkDirMissing, func(c failureContext) string {
			return fmt.Sprintf("working directory %q cannot be used in the image", c.process.Cwd)
		}},
		{regexp.MustCompile(`failed to create process working directory`), WorkDirMissing, func(c failureContext) string {
			return fmt.Sprintf("working directory %q cannot be used in the image", c.process.Cwd)
		}},
		{regexp.MustCompile(`error finding executable|failed to load (?s:.*): (no such file|not a directory|file name too long|too many levels)`), CommandNotFound, func(c failureContext) string {
			return fmt.Sprintf("command %q is not in the image", command(c))
		}},
		{regexp.MustCompile(`failed to load (?s:.*): (permission denied|exec format error|.*ELF)`), CommandNotRunable, func(c failureContext) string {
			return fmt.Sprintf("command %q is not executable by the container's user", command(c))
		}},
		{regexp.MustCompile(`^runsc: exit status|waiting for sandbox to start`), MountFailed, func(failureContext) string {
			return "the sandbox could not set up the container's files: something of the image or of another mount lies where a mount belongs"
		}},
		{regexp.MustCompile(`exec: ` + quoted + `: (executable file not found in \$PATH|stat (?s:.*): (no such file|not a directory|file name too long|too many levels))`), CommandNotFound, func(c failureContext) string {
			return fmt.Sprintf("command %q is not in the image", command(c))
		}},
		{regexp.MustCompile(`exec: (?s:.*): permission denied`), CommandNotRunable, func(c failureContext) string {
			return fmt.Sprintf("command %q is not executable by the container's user", command(c))
		}},
		{regexp.MustCompile(`exec: ` + quoted + `: is a directory`), CommandNotRunable, func(c failureContext) string {
			return fmt.Sprintf("command %q is a directory", command(c))
		}},
		// What a hook that ran says comes after how it ended: nothing in an image
		// can look as if the hook had not been begun.
		{regexp.MustCompile(`(?s)error running (\w+) hook #\d+: (exit status|signal: )(.*)`), HookFailed, func(c failureContext) string {
			return fmt.Sprintf("a %s hook could not prepare the image's files: %s", c.match[1], hookSaid(c.match[2]+c.match[3]))
		}},
		{regexp.MustCompile(`(?s)error running (\w+) hook #\d+: (.*)`), HookMissing, func(c failureContext) string {
			return fmt.Sprintf("a %s hook could not be run on this node", c.match[1])
		}},
		{regexp.MustCompile(`error mounting "(?:proc|sysfs|cgroup|mqueue|devpts)" to rootfs at "([^"]*)": (?:.*: )?(.*)`), ImageUnusable, func(c failureContext) string {
			return fmt.Sprintf("the image has something at %s that is no plain directory: %s", c.match[1], c.match[2])
		}},
		{regexp.MustCompile(`error mounting "[^"]*" to rootfs at "([^"]*)": (?:.*: )?(.*)`), MountFailed, func(c failureContext) string {
			return fmt.Sprintf("cannot mount on %s: %s", c.match[1], c.match[2])
		}},
		{regexp.MustCompile(`fulfil mount request: open ([^:]*): (.*)`), MountFailed, func(c failureContext) string {
			return fmt.Sprintf("cannot mount on %s: %s", target(c, c.match[1]), c.match[2])
		}},
		{regexp.MustCompile(`create device inode ([^:]*): openat [^:]*: (.*)`), MountFailed, func(c failureContext) string {
			return fmt.Sprintf("something is mounted where the device %s belongs: %s", c.match[1], c.match[2])
		}},
		{regexp.MustCompile(`error (?:mounting|preparing rootfs|setting up mounts)(.*)`), MountFailed, func(c failureContext) string {
			return "cannot set up the container's mounts: " + innermost(c.match[1])
		}},
		{regexp.MustCompile(`cgroup|cpuset|memory\.limit|pids\.max`), CgroupFailed, func(c failureContext) string {
			return "cannot set the container's limits"
		}},
	}
})

// hookSaid is the end of what a hook wrote, on one line and without places of
// the host.
func hookSaid(text string) string {
	_, said, found := strings.Cut(text, "stderr: ")
	if said = strings.TrimSpace(said); !found || said == "" {
		said, _, _ = strings.Cut(text, ", stdout: ")
	}
	said = strings.ReplaceAll(said[strings.LastIndexByte(said, '\n')+1:], stageRootfs, "")
	return strings.ToValidUTF8(said[max(0, len(said)-300):], "")
}

// innermost returns the last part of a chain of wrapped errors.
func innermost(text string) string {
	parts := strings.Split(text, ": ")
	if len(parts) > 2 {
		parts = parts[len(parts)-2:]
	}
	return strings.Join(parts, ": ")
}

// isImages says that an error is due to how files of the image lie, and not to
// the node.
func isImages(err error) bool {
	for _, e := range []error{unix.ELOOP, unix.ENOTDIR, unix.EEXIST, unix.EISDIR, unix.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// rootfsFailure is an error of mounting the image. Where its layers lie is for
// the node's administrator only.
func rootfsFailure(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	text := "the image cannot be mounted on this node"
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		text += ": " + errno.Error()
	}
	return &Failure{Kind: RootfsFailed, Message: text, Detail: err.Error()}
}
