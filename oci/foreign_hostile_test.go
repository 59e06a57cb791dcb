package oci_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/oci/draft"
	"gbatch/oci/runtimes"
)

// TestForeignHostile: what a hostile job tries in the container of another runtime
// gets it nothing, as it does in libcontainer's: neither more rights nor devices,
// nor what is the node's, nor what others have on storage; and what it leaves there
// belongs to its user and is worth nothing.
func TestForeignHostile(t *testing.T) {
	eachRuntime(t, func(t *testing.T, r *runtimes.Runtime) {
		dir := share(t, 0o777, 0, 0)
		private := filepath.Join(dir, "private")
		if err := os.WriteFile(private, []byte("of another user"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/shadow", filepath.Join(dir, "shadow")); err != nil {
			t.Fatal(err)
		}
		service, err := net.Listen("unix", "@gbatch-test-"+filepath.Base(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { service.Close() })
		b := newForeign(t, r, `try() { what=$1; shift; if "$@" >/dev/null 2>&1; then echo "$what: done"; else echo "$what: no"; fi; }
			try private cat /s/private; try chown chown 0:0 /s/private; 
			try link cat /s/shadow
			try mount mount -t tmpfs x /mnt; try bind mount --bind /s /mnt; try remount mount -o remount,suid,dev /s; try proc mount -t proc proc /mnt
			try device sh -c 'mknod /tmp/d b 8 0 && head -c1 /tmp/d'; try loop sh -c 'mknod /s/loop c 10 237 && head -c1 /s/loop'
			try chroot chroot / /bin/true
			try trigger sh -c 'echo c >/proc/sysrq-trigger'; try pattern sh -c 'echo "|/s/x" >/proc/sys/kernel/core_pattern'; try helper sh -c 'echo /s/x >/sys/kernel/uevent_helper'
			try forward sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'; try hostname hostname evil; try module insmod /s/x.ko; try clock sh -c 'date -s 2000-01-01; date +%Y | grep 2000'
			try priority renice -n -20 $$; try memory head -c1 /dev/mem; try kmsg test -e /dev/kmsg; try group sh -c 'mkdir /sys/fs/cgroup/x/y || mkdir /sys/fs/cgroup/*/x';
			try init sh -c 'ls /proc/1/root/ | grep -q boot'; try processes sh -c 'grep -l gbatch-[s]him /proc/[0-9]*/cmdline | grep -q .'
			cp /bin/busybox /s/suid; chmod 6755 /s/suid; echo left >/s/left; exit 0`)
		b.req.Mounts = []draft.Mount{{Source: dir, Target: "/s"}}
		exit, log := b.run()
		if exit.Code != 0 {
			t.Fatalf("%+v\n%s\n%s", exit, log, b.shimLog())
		}
		for line := range strings.Lines(log) {
			what, came, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if came != "no" && (r.Kind != runtimes.Runsc || !withinSandbox[what]) {
				t.Errorf("%s: %s", what, came)
			}
		}
		if n := strings.Count(log, "\n"); n != 23 {
			t.Errorf("%d of 23 attempts were made:\n%s", n, log)
		}
		if got := owned(t, private); got != "0:0 -rw-------" {
			t.Errorf("another's file is %s now", got)
		}
		for _, name := range []string{"suid", "left"} {
			if who, _, _ := strings.Cut(owned(t, filepath.Join(dir, name)), " "); who != "1003:1003" {
				t.Errorf("%s belongs to %s of the host", name, who)
			}
		}
	})
}

// withinSandbox is what gVisor's kernel says was done, and which changes nothing but its
// own: its processes' priorities, and names of owners that it keeps to itself.
var withinSandbox = map[string]bool{"priority": true, "chown": true}
