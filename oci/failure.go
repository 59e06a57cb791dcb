package oci

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// failureOf says in a sentence why libcontainer could not start a container.
// libcontainer reports most causes as text from another process, so the texts
// are matched; a test with real containers holds each of them.
func failureOf(err error, args []string, cwd string) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	text := err.Error()
	for _, rule := range failureRules() {
		if m := rule.pattern.FindStringSubmatch(text); m != nil {
			return &Failure{Kind: rule.kind, Message: rule.say(failureContext{match: m, args: args, cwd: cwd}), Detail: text}
		}
	}
	return &Failure{Kind: RuntimeFailed, Message: "container could not be started: " + innermost(text), Detail: text}
}

type failureContext struct {
	match []string
	args  []string
	cwd   string
}

type failureRule struct {
	pattern *regexp.Regexp
	kind    FailureKind
	say     func(failureContext) string
}

func command(c failureContext) string { return c.args[0] }

// failureRules are compiled at the first failure: each container's start runs
// this package's initialization twice. Their order matters, as an OOM kill
// shows as many other errors too.
var failureRules = sync.OnceValue(func() []failureRule {
	return []failureRule{
		{regexp.MustCompile(`OOM-killed|unable to set memory limit`), MemoryTooSmall, func(failureContext) string {
			return "memory limit is too small to start a container; ask for more memory"
		}},
		{regexp.MustCompile(`chdir to cwd.*permission denied`), WorkDirMissing, func(c failureContext) string {
			return fmt.Sprintf("working directory %q may not be entered by the container's user", c.cwd)
		}},
		{regexp.MustCompile(`chdir to cwd|container init: mkdir `), WorkDirMissing, func(c failureContext) string {
			return fmt.Sprintf("working directory %q cannot be used in the image", c.cwd)
		}},
		{regexp.MustCompile(`exec: "[^"]*": (executable file not found in \$PATH|stat .*no such file)`), CommandNotFound, func(c failureContext) string {
			return fmt.Sprintf("command %q is not in the image", command(c))
		}},
		{regexp.MustCompile(`exec: "?[^"]*"?: permission denied`), CommandNotRunable, func(c failureContext) string {
			return fmt.Sprintf("command %q is not executable by the container's user", command(c))
		}},
		{regexp.MustCompile(`exec: "[^"]*": is a directory`), CommandNotRunable, func(c failureContext) string {
			return fmt.Sprintf("command %q is a directory", command(c))
		}},
		{regexp.MustCompile(`error running (\w+) hook #\d+: (.*)`), HookFailed, func(c failureContext) string {
			return fmt.Sprintf("%s hook failed: %s", c.match[1], c.match[2])
		}},
		{regexp.MustCompile(`error mounting "([^"]*)" to rootfs at "([^"]*)": (?:.*: )?(.*)`), MountFailed, func(c failureContext) string {
			return fmt.Sprintf("cannot mount %s on %s: %s", c.match[1], c.match[2], c.match[3])
		}},
		{regexp.MustCompile(`fulfil mount request: open ([^:]*): (.*)`), MountFailed, func(c failureContext) string {
			return fmt.Sprintf("cannot mount %s: %s", c.match[1], c.match[2])
		}},
		{regexp.MustCompile(`error (?:mounting|preparing rootfs|setting up mounts)(.*)`), MountFailed, func(c failureContext) string {
			return "cannot set up the container's mounts: " + innermost(c.match[1])
		}},
		{regexp.MustCompile(`cgroup|cpuset|memory\.limit|pids\.max`), CgroupFailed, func(c failureContext) string {
			return "cannot set the container's limits"
		}},
	}
})

// innermost returns the last part of a chain of wrapped errors.
func innermost(text string) string {
	parts := strings.Split(text, ": ")
	if len(parts) > 2 {
		parts = parts[len(parts)-2:]
	}
	return strings.Join(parts, ": ")
}
