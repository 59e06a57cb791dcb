package vmtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// kernelDir has a kernel and its overlay module; scripts/deps fetches both.
const kernelDir = "../../build/vm"

const busybox = "/bin/busybox"

// bootTimeout is for a machine with a lot to do beside the emulation. Alone,
// the guest takes less than a tenth.
const bootTimeout = 6 * time.Minute

// missing names what this machine lacks.
func missing() string {
	for what, err := range map[string]error{
		"qemu-system-x86_64 (package qemu-system-x86)": look("qemu-system-x86_64"),
		"cpio (package cpio)":                          look("cpio"),
		"apparmor_parser (package apparmor)":           look("apparmor_parser"),
		busybox + " (package busybox-static)":          stat(busybox),
		"a kernel; run: make deps":                     errors.Join(stat(kernelDir+"/vmlinuz"), stat(kernelDir+"/overlay.ko")),
	} {
		if err != nil {
			return what
		}
	}
	return ""
}

func look(program string) error { _, err := exec.LookPath(program); return err }

func stat(name string) error { _, err := os.Stat(name); return err }

// TestCgroups boots the guest with each version of control groups alone, and
// has a subtest for each check that is made there. Hosts with both versions are
// what the tests in oci and cgroups commonly run on.
func TestCgroups(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED, the virtual machine is one of amd64")
	}
	if what := missing(); what != "" {
		if os.Getenv("GBATCH_VMTEST_REQUIRED") != "" {
			t.Fatal("no virtual machine without " + what)
		}
		t.Skip("SKIPPED, no virtual machine without " + what)
	}
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	buildGuest(t, filepath.Join(root, "guest"))
	fillRoot(t, root)
	initrd := filepath.Join(dir, "initrd")
	command(t, root, "sh", "-c", "find . | cpio --quiet -o -H newc -R 0:0 >"+initrd)
	for mode, option := range map[string]string{"v1": "", "v2": "cgroup_no_v1=all"} {
		t.Run(mode, func(t *testing.T) { runGuest(t, initrd, "vmtest_cgroups="+mode+" "+option) })
	}
}

func runGuest(t *testing.T, initrd, options string) {
	console := boot(t, initrd, guest{processors: 2, memory: "768", options: options, patience: bootTimeout})
	checks, err := readReport(bytes.NewReader(console))
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			t.Logf("took %.1f s in the guest", c.Took.Seconds())
			if c.Err != "" {
				t.Error(c.Err)
			}
		})
	}
	if err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("console:\n%s", console)
	}
}

// buildGuest links this program statically: the guest has no library. The tags
// are gnoded's, so that what the build has compiled is used again; the linker's
// warnings about looking up names and users are of no concern here.
func buildGuest(t *testing.T, out string) {
	t.Helper()
	cmd := exec.Command("go", "test", "-c", "-buildvcs=false", "-tags", "seccomp",
		"-ldflags", "-s -w -linkmode external -extldflags -static", "-o", out, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the guest's program: %v\n%s", err, text)
	}
}

// fillRoot makes the guest's file system, and an image of three layers in it:
// each has a file in /only, and hides what lower ones say of /which.
func fillRoot(t *testing.T, root string) {
	t.Helper()
	copyFile(t, "testdata/init", root+"/init")
	copyFile(t, kernelDir+"/overlay.ko", root+"/overlay.ko")
	copyFile(t, busybox, root+"/bin/busybox")
	for _, layer := range []string{"base", "middle", "top"} {
		dir := filepath.Join(root, "image", layer)
		write(t, dir+"/which", []byte(layer+"\n"))
		write(t, dir+"/only/"+layer, nil)
	}
	bin := root + "/image/base/bin"
	copyFile(t, busybox, bin+"/busybox")
	for name := range strings.FieldsSeq("sh cat grep head ls mknod seq setsid sleep tail tr wc") {
		if err := os.Symlink("busybox", filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	policy(t, root)
	write(t, root+"/image/base/etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\n"))
	write(t, root+"/image/base/etc/group", []byte("root:x:0:\n"))
}

// policy compiles the profile that the package has, and one by which the guest
// sees that a profile is enforced.
func policy(t *testing.T, root string) {
	t.Helper()
	dir := filepath.Join(root, "apparmor")
	write(t, dir+"/vmtest", []byte("profile vmtest flags=(attach_disconnected) { file, capability, signal, deny /which r, }\n"))
	for _, p := range []string{"../../deploy/apparmor/gbatch-job", dir + "/vmtest"} {
		command(t, ".", "apparmor_parser", "--skip-kernel-load", "--skip-cache", "--ofile", filepath.Join(dir, filepath.Base(p)+".policy"), p)
	}
}

// guest is how a virtual machine differs from the others.
type guest struct {
	processors int
	memory     string // MiB
	options    string // of its kernel
	patience   time.Duration
	devices    []string     // arguments of the emulator's for more of them
	begin      func()       // what is done before it is booted, and booted again; nil: nothing
	heard      func(string) // has each line of the console when it comes; nil: nobody
}

// hung is what the guest's kernel says before it gives up: for a minute one of its
// processors did nothing but one thing.
const hung = "Kernel panic - not syncing: softlockup"

// boot runs the guest to its end and returns its console. It is emulated on
// purpose: machines that are guests themselves often have a /dev/kvm that does
// not work. One thread emulates all processors: with a thread for each, on a busy
// host, one spins while the other is off and holds what it waits for, and both have
// once waited for each other for good. A guest that hangs says nothing of what is
// tested, and is booted again.
func boot(t *testing.T, initrd string, g guest) []byte {
	t.Helper()
	for left := boots - 1; ; left-- {
		console, took, err := emulate(t.Context(), initrd, g)
		t.Logf("the guest took %.0f s of processor time", took.Seconds())
		switch {
		case left > 0 && bytes.Contains(console, []byte(hung)):
			t.Logf("the guest's processors hung; booting it again. Console:\n%s", console)
		case err != nil:
			t.Fatalf("run the guest: %v; console:\n%s", err, console)
		default:
			return console
		}
	}
}

// boots is how often a guest is booted at most, if each hangs.
const boots = 3

// cpu is all that the emulator knows, but for what costs it a quarter of its time and no test asks for: strings that a
// kernel copies and clears by the byte, as real processors do that fast; page tables of five levels; and walls
// between the kernel and programs that end a translated block at each crossing.
const cpu = "max,-erms,-fsrm,-la57,-smap,-smep,-pku"

// emulate runs the guest once, and says what processor time it took. It has its processor
// before others: it needs one for longer than any other test, so all are over the sooner.
func emulate(ctx context.Context, initrd string, g guest) ([]byte, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	args := append([]string{"-n", "-10", "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=single",
		"-cpu", cpu, "-smp", strconv.Itoa(g.processors), "-m", g.memory, "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", kernelDir + "/vmlinuz", "-initrd", initrd,
		"-append", "console=ttyS0 loglevel=1 panic=-1 softlockup_panic=1 watchdog_thresh=30 softlockup_all_cpu_backtrace=1 mitigations=off " + g.options}, g.devices...)
	cmd := exec.CommandContext(ctx, "nice", args...)
	if g.begin != nil {
		g.begin()
	}
	console := lines{heard: g.heard}
	cmd.Stdout, cmd.Stderr = &console, &console
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return nil, 0, err
	}
	took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err != nil {
		err = errors.Join(err, ctx.Err())
	}
	return console.text, took, err
}

// lines is a console's text, of which each line is told when it is whole.
type lines struct {
	heard func(string)
	text  []byte
	told  int
}

func (l *lines) Write(b []byte) (int, error) {
	l.text = append(l.text, b...)
	for l.heard != nil {
		n := bytes.IndexByte(l.text[l.told:], '\n')
		if n < 0 {
			break
		}
		l.heard(strings.TrimRight(string(l.text[l.told:l.told+n]), "\r"))
		l.told += n + 1
	}
	return len(b), nil
}

func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, data)
}

// write makes a file that may be executed.
func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o755); err != nil {
		t.Fatal(err)
	}
}
