package failure

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Start is what was to be started.
type Start struct {
	Process *specs.Process
	Mounts  []specs.Mount
	Rootfs  string // where the image is mounted, which no user is told
}

// Of says in a sentence why libcontainer could not start a container, or another
// program in one. libcontainer reports most causes as text from another process,
// so the texts are matched; a test with real containers holds each of them.
func Of(err error, start Start) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	text := err.Error()
	for _, rule := range rules() {
		if m := rule.pattern.FindStringSubmatch(text); m != nil {
			return &Failure{Kind: rule.kind, Message: rule.say(match{Start: start, groups: m}), Detail: text}
		}
	}
	return &Failure{Kind: RuntimeFailed, Message: "container could not be started: " + innermost(strings.ReplaceAll(text, start.Rootfs, "")), Detail: text}
}

// match is a text that a rule's pattern matched.
type match struct {
	Start
	groups []string // the whole, and what each group of the pattern matched
}

type rule struct {
	pattern *regexp.Regexp
	kind    Kind
	say     func(match) string
}

func (m match) command() string { return m.Process.Args[0] }

// target is where in the container a place of the host was to be mounted. The
// place itself is not the user's business.
func (m match) target(source string) string {
	for _, mount := range m.Mounts {
		if mount.Source == source {
			return mount.Destination
		}
	}
	return "a place"
}

// quoted is a Go string as errors have it.
const quoted = `"(?:[^"\\]|\\.)*"`

// rules are compiled at the first failure: each container's start runs
// this package's initialization twice. Their order matters, as an OOM kill
// shows as many other errors too.
var rules = sync.OnceValue(func() []rule {
	return []rule{
		{regexp.MustCompile(`OOM-killed|unable to set memory limit`), MemoryTooSmall, func(match) string {
			return "memory limit is too small to start a container; ask for more memory"
		}},
		{regexp.MustCompile(`chdir to cwd.*permission denied`), WorkDirMissing, func(m match) string {
			return fmt.Sprintf("working directory %q may not be entered by the container's user", m.Process.Cwd)
		}},
		{regexp.MustCompile(`chdir to cwd|container init: mkdir |outside of container mount namespace`), WorkDirMissing, func(m match) string {
			return fmt.Sprintf("working directory %q cannot be used in the image", m.Process.Cwd)
		}},
		{regexp.MustCompile(`failed to create process working directory`), WorkDirMissing, func(m match) string {
			return fmt.Sprintf("working directory %q cannot be used in the image", m.Process.Cwd)
		}},
		{regexp.MustCompile(`error finding executable|failed to load (?s:.*): (no such file|not a directory|file name too long|too many levels)`), CommandNotFound, func(m match) string {
			return fmt.Sprintf("command %q is not in the image", m.command())
		}},
		{regexp.MustCompile(`failed to load (?s:.*): (permission denied|exec format error|.*ELF)`), CommandNotRunable, func(m match) string {
			return fmt.Sprintf("command %q is not executable by the container's user", m.command())
		}},
		{regexp.MustCompile(`^runsc: exit status|waiting for sandbox to start`), MountFailed, func(match) string {
			return "the sandbox could not set up the container's files: something of the image or of another mount lies where a mount belongs"
		}},
		{regexp.MustCompile(`exec: ` + quoted + `: (executable file not found in \$PATH|stat (?s:.*): (no such file|not a directory|file name too long|too many levels))`), CommandNotFound, func(m match) string {
			return fmt.Sprintf("command %q is not in the image", m.command())
		}},
		{regexp.MustCompile(`exec: (?s:.*): permission denied`), CommandNotRunable, func(m match) string {
			return fmt.Sprintf("command %q is not executable by the container's user", m.command())
		}},
		{regexp.MustCompile(`exec: ` + quoted + `: is a directory`), CommandNotRunable, func(m match) string {
			return fmt.Sprintf("command %q is a directory", m.command())
		}},
		// What a hook that ran says comes after how it ended: nothing in an image
		// can look as if the hook had not been begun.
		{regexp.MustCompile(`(?s)error running (\w+) hook #\d+: (exit status|signal: )(.*)`), HookFailed, func(m match) string {
			return fmt.Sprintf("a %s hook could not prepare the image's files: %s", m.groups[1], m.hookSaid(m.groups[2]+m.groups[3]))
		}},
		{regexp.MustCompile(`(?s)error running (\w+) hook #\d+: (.*)`), HookMissing, func(m match) string {
			return fmt.Sprintf("a %s hook could not be run on this node", m.groups[1])
		}},
		{regexp.MustCompile(`error mounting "(?:proc|sysfs|cgroup|mqueue|devpts)" to rootfs at "([^"]*)": (?:.*: )?(.*)`), ImageUnusable, func(m match) string {
			return fmt.Sprintf("the image has something at %s that is no plain directory: %s", m.groups[1], m.groups[2])
		}},
		{regexp.MustCompile(`error mounting "[^"]*" to rootfs at "([^"]*)": (?:.*: )?(.*)`), MountFailed, func(m match) string {
			return fmt.Sprintf("cannot mount on %s: %s", m.groups[1], m.groups[2])
		}},
		{regexp.MustCompile(`fulfil mount request: open ([^:]*): (.*)`), MountFailed, func(m match) string {
			return fmt.Sprintf("cannot mount on %s: %s", m.target(m.groups[1]), m.groups[2])
		}},
		{regexp.MustCompile(`create device inode ([^:]*): openat [^:]*: (.*)`), MountFailed, func(m match) string {
			return fmt.Sprintf("something is mounted where the device %s belongs: %s", m.groups[1], m.groups[2])
		}},
		{regexp.MustCompile(`error (?:mounting|preparing rootfs|setting up mounts)(.*)`), MountFailed, func(m match) string {
			return "cannot set up the container's mounts: " + innermost(m.groups[1])
		}},
		{regexp.MustCompile(`cgroup|cpuset|memory\.limit|pids\.max`), CgroupFailed, func(m match) string {
			return "cannot set the container's limits"
		}},
	}
})

// hookSaid is the end of what a hook wrote, on one line and without places of
// the host.
func (m match) hookSaid(text string) string {
	_, said, found := strings.Cut(text, "stderr: ")
	if said = strings.TrimSpace(said); !found || said == "" {
		said, _, _ = strings.Cut(text, ", stdout: ")
	}
	said = strings.ReplaceAll(said[strings.LastIndexByte(said, '\n')+1:], m.Rootfs, "")
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
