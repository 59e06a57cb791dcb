package oci_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci"
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
		return func(b *box) { b.req.Mounts = append(b.req.Mounts, oci.Mount{Source: b.TempDir(), Target: at}) }
	}
	makeDirs := func(d string) func(*box) { return func(b *box) { b.cfg.MakeDirs = []string{d} } }
	cases := map[string]struct {
		edit func(*box)
		want oci.FailureKind // "": the program runs
	}{
		"command long":         {command(long), oci.CommandNotFound},
		"command long path":    {command("/" + long), oci.CommandNotFound},
		"command deep":         {command(deep), oci.CommandNotFound},
		"command quotes":       {command("a\"b\nc"), oci.CommandNotFound},
		"command quoted path":  {command("/a\"b\nc"), oci.CommandNotFound},
		"command below a file": {command("/etc/passwd/x"), oci.CommandNotFound},
		"command loop":         {both(link("loop", "loop"), command("/loop")), oci.CommandNotFound},
		"command broken":       {both(file("x", "\x7fELFxxxx"), command("/x")), ""},
		"command no program":   {both(file("x", "#!/no/such\n"), command("/x")), ""},
		"workdir fd":           {workDir("/proc/self/fd/12"), oci.WorkDirMissing},
		"workdir proc":         {workDir("/proc/self/none"), oci.WorkDirMissing},
		"workdir sys":          {workDir("/sys/none"), oci.WorkDirMissing},
		"workdir long":         {workDir("/" + long), oci.WorkDirMissing},
		"workdir deep":         {workDir(deep), oci.WorkDirMissing},
		"workdir loop":         {both(link("loop", "loop"), workDir("/loop")), oci.WorkDirMissing},
		"workdir link to fd":   {both(link("wd", "/proc/self/fd/12"), workDir("/wd")), oci.WorkDirMissing},
		"etc file":             {file("etc", ""), oci.ImageUnusable},
		"etc file with hosts":  {both(file("etc", ""), target("/etc/hosts")), oci.ImageUnusable},
		"passwd loop":          {link("etc/passwd", "passwd"), oci.ImageUnusable},
		"passwd directory":     {dir("etc/passwd"), oci.ImageUnusable},
		"passwd long line":     {file("etc/passwd", strings.Repeat("a", 200_000)), oci.UserUnknown},
		"groups too many":      {file("etc/group", numbered(100_000, "g:x:%d:root\n")), oci.UserUnknown},
		"groups many":          {file("etc/group", numbered(65_000, "g:x:%d:root\n")), ""},
		"group loop":           {link("etc/group", "group"), oci.ImageUnusable},
		"proc file":            {file("proc", ""), oci.ImageUnusable},
		"proc link":            {link("proc", "/tmp"), oci.ImageUnusable},
		"sys file":             {file("sys", ""), oci.ImageUnusable},
		"dev file":             {file("dev", ""), oci.MountFailed},
		"dev link":             {link("dev", "/tmp"), ""},
		"mkdir below a file":   {makeDirs("/etc/passwd/x"), oci.ImageUnusable},
		"mkdir loop":           {both(link("loop", "loop"), makeDirs("/loop/x")), oci.ImageUnusable},
		"mkdir long":           {makeDirs("/" + long), oci.ImageUnusable},
		"target loop":          {both(link("loop", "loop"), target("/loop/x")), oci.MountFailed},
		"target long":          {target("/" + long), oci.MountFailed},
		"target file":          {target("/etc/passwd"), oci.MountFailed},
		"target device":        {target("/dev/null"), oci.MountFailed},
		"user lines":           {func(b *box) { b.req.User = "a\nb" }, oci.UserUnknown},
		"user below zero":      {func(b *box) { b.req.User = "-1" }, oci.UserUnknown},
		"user of 64 bits":      {func(b *box) { b.req.User = "4294967297" }, oci.UserUnknown},
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
		want oci.FailureKind
	}{
		// Whose fault a hook's failure is: the image's and the job's if it ran.
		"hook runs":               {hook("echo x >etc/ld.so.cache"), ""},
		"hook file for directory": {both(file("etc/ld.so.conf.d", ""), hook("echo x >etc/ld.so.conf.d/x")), oci.HookFailed},
		"hook directory for file": {both(dir("etc/ld.so.cache"), hook("echo x >etc/ld.so.cache")), oci.HookFailed},
		"hook loop":               {both(link("usr", "usr"), hook("mkdir -p usr/lib && echo x >usr/lib/x")), oci.HookFailed},
		"hook bad library":        {both(file("lib", "no directory"), hook("cd lib")), oci.HookFailed},
		"hook crashes":            {hook("kill -SEGV $$"), oci.HookFailed},
		"hook eats memory":        {both(hook("tail /dev/zero"), func(b *box) { b.req.Limits.MemoryBytes = 32 << 20 }), oci.MemoryTooSmall},
		"hook says it is not there": {hook("echo 'error running createContainer hook #0: fork/exec /x: no such file or directory' >&2; " +
			"echo 'exec: \"x\": cgroup' >&2; exit 1"), oci.HookFailed},
		"hook not there": {func(b *box) {
			b.edit = func(spec *specs.Spec) {
				spec.Hooks = &specs.Hooks{CreateContainer: []specs.Hook{{Path: "/no/such/hook", Args: []string{"exit status 1"}}}}
			}
		}, oci.HookMissing},
	} {
		cases[name] = struct {
			edit func(*box)
			want oci.FailureKind
		}{tc.edit, tc.want}
	}
	for i := range 24 { // whatever the set-up has open
		cases[fmt.Sprintf("workdir fd %d", i)] = struct {
			edit func(*box)
			want oci.FailureKind
		}{workDir(fmt.Sprintf("/proc/self/fd/%d", i)), oci.WorkDirMissing}
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
