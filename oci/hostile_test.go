package oci_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/draft"
	"gbatch/oci/failure"
)

// TestBlame: what is wrong with a job or its image is never told as the node's
// fault, and no message names a place of the host.
func TestBlame(t *testing.T) {
	needContainers(t)
	long := strings.Repeat("a", 300)
	deep := "/" + strings.Repeat("a/", 2100) // longer than a path may be
	// image puts one more layer over the image: a link, or a file to execute.
	link := func(name, to string) func(b *box) {
		return func(b *box) { b.addLayer(name, func(at string) error { return os.Symlink(to, at) }) }
	}
	file := func(name, text string) func(b *box) {
		return func(b *box) { b.addLayer(name, func(at string) error { return os.WriteFile(at, []byte(text), 0o755) }) }
	}
	dir := func(name string) func(b *box) {
		return func(b *box) { b.addLayer(name, func(at string) error { return os.Mkdir(at, 0o755) }) }
	}
	both := func(f func(*box), g func(*box)) func(*box) { return func(b *box) { f(b); g(b) } }
	command := func(args ...string) func(*box) { return func(b *box) { b.req.Command = args } }
	workDir := func(d string) func(*box) { return func(b *box) { b.req.WorkDir = d } }
	target := func(at string) func(*box) {
		return func(b *box) { b.req.Mounts = append(b.req.Mounts, draft.Mount{Source: b.TempDir(), Target: at}) }
	}
	makeDirs := func(d string) func(*box) { return func(b *box) { b.cfg.MakeDirs = []string{d} } }
	cases := map[string]struct {
		edit func(*box)
		want failure.Kind // "": the program runs
	}{
		"command long":         {command(long), failure.CommandNotFound},
		"command long path":    {command("/" + long), failure.CommandNotFound},
		"command deep":         {command(deep), failure.CommandNotFound},
		"command quotes":       {command("a\"b\nc"), failure.CommandNotFound},
		"command quoted path":  {command("/a\"b\nc"), failure.CommandNotFound},
		"command below a file": {command("/etc/passwd/x"), failure.CommandNotFound},
		"command loop":         {both(link("loop", "loop"), command("/loop")), failure.CommandNotFound},
		"command broken":       {both(file("x", "\x7fELFxxxx"), command("/x")), ""},
		"command no program":   {both(file("x", "#!/no/such\n"), command("/x")), ""},
		"workdir fd":           {workDir("/proc/self/fd/12"), failure.WorkDirMissing},
		"workdir proc":         {workDir("/proc/self/none"), failure.WorkDirMissing},
		"workdir sys":          {workDir("/sys/none"), failure.WorkDirMissing},
		"workdir long":         {workDir("/" + long), failure.WorkDirMissing},
		"workdir deep":         {workDir(deep), failure.WorkDirMissing},
		"workdir loop":         {both(link("loop", "loop"), workDir("/loop")), failure.WorkDirMissing},
		"workdir link to fd":   {both(link("wd", "/proc/self/fd/12"), workDir("/wd")), failure.WorkDirMissing},
		"etc file":             {file("etc", ""), failure.ImageUnusable},
		"etc file with hosts":  {both(file("etc", ""), target("/etc/hosts")), failure.ImageUnusable},
		"passwd loop":          {link("etc/passwd", "passwd"), failure.ImageUnusable},
		"passwd directory":     {dir("etc/passwd"), failure.ImageUnusable},
		"passwd long line":     {file("etc/passwd", strings.Repeat("a", 200_000)), failure.UserUnknown},
		"groups too many":      {file("etc/group", numbered(100_000, "g:x:%d:root\n")), failure.UserUnknown},
		"groups many":          {file("etc/group", numbered(65_000, "g:x:%d:root\n")), ""},
		"group loop":           {link("etc/group", "group"), failure.ImageUnusable},
		"proc file":            {file("proc", ""), failure.ImageUnusable},
		"proc link":            {link("proc", "/tmp"), failure.ImageUnusable},
		"sys file":             {file("sys", ""), failure.ImageUnusable},
		"dev file":             {file("dev", ""), failure.MountFailed},
		"dev link":             {link("dev", "/tmp"), ""},
		"mkdir below a file":   {makeDirs("/etc/passwd/x"), failure.ImageUnusable},
		"mkdir loop":           {both(link("loop", "loop"), makeDirs("/loop/x")), failure.ImageUnusable},
		"mkdir long":           {makeDirs("/" + long), failure.ImageUnusable},
		"target loop":          {both(link("loop", "loop"), target("/loop/x")), failure.MountFailed},
		"target long":          {target("/" + long), failure.MountFailed},
		"target file":          {target("/etc/passwd"), failure.MountFailed},
		"target device":        {target("/dev/null"), failure.MountFailed},
		"user lines":           {func(b *box) { b.req.User = "a\nb" }, failure.UserUnknown},
		"user below zero":      {func(b *box) { b.req.User = "-1" }, failure.UserUnknown},
		"user of 64 bits":      {func(b *box) { b.req.User = "4294967297" }, failure.UserUnknown},
	}
	hook := func(script string) func(*box) {
		return func(b *box) {
			b.edit = func(spec *specs.Spec) {
				spec.Hooks = &specs.Hooks{CreateContainer: []specs.Hook{{Path: busybox, Args: []string{"sh", "-c", "cat >/dev/null; cd /run/gbatch/stage/rootfs; " + script}}}}
			}
		}
	}
	for name, tc := range map[string]struct {
		edit func(*box)
		want failure.Kind
	}{
		// Whose fault a hook's failure is: the image's and the job's if it ran.
		"hook runs":               {hook("echo x >etc/ld.so.cache"), ""},
		"hook file for directory": {both(file("etc/ld.so.conf.d", ""), hook("echo x >etc/ld.so.conf.d/x")), failure.HookFailed},
		"hook directory for file": {both(dir("etc/ld.so.cache"), hook("echo x >etc/ld.so.cache")), failure.HookFailed},
		"hook loop":               {both(link("usr", "usr"), hook("mkdir -p usr/lib && echo x >usr/lib/x")), failure.HookFailed},
		"hook bad library":        {both(file("lib", "no directory"), hook("cd lib")), failure.HookFailed},
		"hook crashes":            {hook("kill -SEGV $$"), failure.HookFailed},
		"hook eats memory":        {both(hook("tail /dev/zero"), func(b *box) { b.req.Limits.MemoryBytes = 32 << 20 }), failure.MemoryTooSmall},
		"hook says it is not there": {hook("echo 'error running createContainer hook #0: fork/exec /x: no such file or directory' >&2; " +
			"echo 'exec: \"x\": cgroup' >&2; exit 1"), failure.HookFailed},
		"hook not there": {func(b *box) {
			b.edit = func(spec *specs.Spec) {
				spec.Hooks = &specs.Hooks{CreateContainer: []specs.Hook{{Path: "/no/such/hook", Args: []string{"exit status 1"}}}}
			}
		}, failure.HookMissing},
	} {
		cases[name] = struct {
			edit func(*box)
			want failure.Kind
		}{tc.edit, tc.want}
	}
	for i := range 24 { // whatever the set-up has open
		cases[fmt.Sprintf("workdir fd %d", i)] = struct {
			edit func(*box)
			want failure.Kind
		}{workDir(fmt.Sprintf("/proc/self/fd/%d", i)), failure.WorkDirMissing}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newMapped(t, "true")
			b.req.Limits.MemoryBytes = 256 << 20 // with the race detector, for the deepest paths
			tc.edit(b)
			exit, _ := b.run()
			if exit.Failure == nil {
				if tc.want != "" {
					t.Errorf("it ran: %+v", exit)
				}
				return
			}
			if exit.Failure.Kind != tc.want || strings.Contains(exit.Failure.Message, b.dir) || strings.Contains(exit.Failure.Message, os.TempDir()) {
				t.Errorf("kind %s, want %s\nmessage %.300s\ndetail %.500s", exit.Failure.Kind, tc.want, exit.Failure.Message, exit.Failure.Detail)
			}
		})
	}
}

// numbered is n lines, each with its number.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

// addLayer puts a layer with one odd file over the image.
func (b *box) addLayer(name string, make func(at string) error) {
	b.Helper()
	top := filepath.Join(b.TempDir(), "layer")
	at := filepath.Join(top, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := make(at); err != nil {
		b.Fatal(err)
	}
	b.cfg.Layers = append(b.cfg.Layers, top)
}
