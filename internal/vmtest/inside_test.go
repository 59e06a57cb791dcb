package vmtest

import (
	"fmt"
	"strings"

	"gbatch/cgroups"
	"gbatch/oci/result"
)

// grantedMajor is a device number without a driver: who may open it gets ENXIO,
// who may not gets EPERM. It is the number of NVIDIA's GPUs.
const grantedMajor = 195

// inside looks at the container from within. What it starts and leaves behind
// has to end with it.
const inside = `
grep Cpus_allowed_list /proc/self/status
echo "layers $(cat /which) $(ls /only | tr '\n' ' ')"
echo mine >/which && echo "own $(cat /which)"
tell() { echo "$1: $(cat $2 2>&1 | head -c 100)"; }
tell granted /dev/granted
mknod /dev/again c 195 0 && tell again /dev/again
mknod /dev/other c 195 1 && tell other /dev/other
mknod /dev/disk b 259 0 && tell disk /dev/disk
echo "zero: $(head -c 2 /dev/zero | wc -c)"
( for i in $(seq 100); do sleep 1000 & done; echo no limit )
exit 7
`

// checkInside asks one container all that can be asked of one that ends by
// itself, as each takes its time here.
func checkInside(r *report) {
	b := newBox("inside", inside)
	var exit result.Exit
	var log string
	r.check("exit_code", func() (err error) {
		exit, log, err = b.run()
		if err != nil || exit.Code != 7 || exit.Signal != 0 || exit.OOMKilled || exit.Failure != nil {
			return fmt.Errorf("%v; exit %+v; log: %s", err, exit, log)
		}
		return nil
	})
	r.check("usage", func() error {
		if exit.CPUNanos == 0 || exit.PeakBytes == 0 || exit.PeakBytes > uint64(b.req.Limits.MemoryBytes) {
			return fmt.Errorf("exit %+v", exit)
		}
		return nil
	})
	for _, c := range []struct{ name, line string }{
		{"cpuset", "Cpus_allowed_list:\t1"},
		{"overlay_layers", "layers top base middle top "},
		{"overlay_write", "own mine"},
		{"device_granted", "granted: cat: can't open '/dev/granted': No such device or address"},
		{"device_granted_by_number", "again: cat: can't open '/dev/again': No such device or address"},
		{"device_not_granted", "other: cat: can't open '/dev/other': Operation not permitted"},
		{"device_disk", "disk: cat: can't open '/dev/disk': Operation not permitted"},
		{"device_harmless", "zero: 2"},
		{"pids_limit", "/bin/sh: can't fork: Resource temporarily unavailable"},
	} {
		r.check(c.name, func() error {
			if !strings.Contains(log, c.line+"\n") {
				return fmt.Errorf("output has no line %q:\n%s", c.line, log)
			}
			return nil
		})
	}
	r.check("nothing_left_by_exit", func() error { return gone(b) })
}

// checkOOM has the memory limit kill a child of the first process: the whole
// container has to end, and the kernel's own counter to say why.
func checkOOM(r *report) {
	r.check("oom", func() error {
		before := eventsBelow(prefix())
		b := newBox("oom", "tail /dev/zero & sleep 1000; exit 0")
		exit, log, err := b.run()
		if err != nil || !exit.OOMKilled || exit.Code == 0 || exit.OOMKills == 0 {
			return fmt.Errorf("%v; exit %+v; log: %s", err, exit, log)
		}
		// The group is gone; what its parent counted for it stays.
		if counted := eventsBelow(prefix()) - before; mode == cgroups.V2 && counted != exit.OOMKills {
			return fmt.Errorf("memory.events counted %d kills, the result says %d", counted, exit.OOMKills)
		}
		if exit.PeakBytes < 60<<20 || exit.PeakBytes > 64<<20 {
			return fmt.Errorf("peak %d bytes at a limit of %d", exit.PeakBytes, b.req.Limits.MemoryBytes)
		}
		return gone(b)
	})
	r.check("oom_of_one", func() error {
		b := newBox("oom-one", "tail /dev/zero; echo code $?; exit 3")
		b.oomOne = true
		exit, log, err := b.run()
		if err != nil || exit.Code != 3 || exit.OOMKills != 1 || !strings.Contains(log, "code 137\n") {
			return fmt.Errorf("%v; exit %+v; log: %s", err, exit, log)
		}
		return gone(b)
	})
	r.check("exit_137_is_no_oom", func() error {
		exit, log, err := newBox("plain", "exit 137").run()
		if err != nil || exit.OOMKilled || exit.Code != 137 {
			return fmt.Errorf("%v; exit %+v; log: %s", err, exit, log)
		}
		return nil
	})
}
