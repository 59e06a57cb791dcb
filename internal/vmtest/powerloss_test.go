package vmtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var (
	powerCuts        = flag.Int("power.cuts", 2, "disks that TestPowerLoss looks at")
	powerSeed        = flag.Uint64("power.seed", 1, "draws after which writes the power is lost")
	powerControllers = flag.Int("power.controllers", 1, "controllers of the site: 1 or 3")
	powerJobs        = flag.Int("power.jobs", 12, "jobs that are submitted")
)

// siteDir has the programs that users get; make build makes them.
const siteDir = "../../bin"

// disksAtOnce is how many disks one guest looks at.
const disksAtOnce = 20

// TestPowerLoss boots a guest that runs a site on a disk that forgets what was not flushed, as disks may: the emulator notes each
// write, and others look at what is left when the power is lost after any of them. What users were told by then is so: what was
// submitted is there, what was cancelled or has ended is so, and nothing that a program was seen to begin is begun by the same try again.
func TestPowerLoss(t *testing.T) {
	lacksPowerLoss(t)
	dir := t.TempDir()
	initrd := filepath.Join(dir, "initrd")
	fillSite(t, filepath.Join(dir, "root"))
	command(t, filepath.Join(dir, "root"), "sh", "-c", "find . | cpio --quiet -o -H newc -R 0:0 >"+initrd)
	r := &recorded{t: t, controllers: *powerControllers, blank: filepath.Join(dir, "blank"), notes: filepath.Join(dir, "notes")}
	command(t, dir, "truncate", "-s", "4G", r.blank)
	command(t, dir, "mkfs.ext4", "-q", r.blank)
	r.record(initrd, *powerJobs)
	t.Logf("%d writes; told: %d things", len(r.writes), len(r.told))
	fate := rand.New(rand.NewPCG(*powerSeed, 0))
	first := r.upTo(r.told[0].at) // nothing but this has been waited for by a new site
	after := []int{first}
	for len(after) < *powerCuts {
		after = append(after, r.cutAfter(fate, first, len(after)%2 == 0))
	}
	for some := range slices.Chunk(after, disksAtOnce) {
		r.look(initrd, some, fate)
	}
}

// lacksPowerLoss skips, or fails where that is asked for, without what is needed.
func lacksPowerLoss(t *testing.T) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED, the virtual machine is one of amd64")
	}
	what := missing()
	if found, _ := filepath.Glob(kernelDir + "/lib/modules/*/kernel/drivers/virtio/virtio_pci.ko"); len(found) == 0 {
		what = "a kernel's modules for disks; run: make deps"
	}
	if stat(siteDir+"/gnoded") != nil {
		what = "the programs; run: make build"
	}
	if what == "" {
		return
	}
	if os.Getenv("GBATCH_VMTEST_REQUIRED") != "" {
		t.Fatal("no power loss without " + what)
	}
	t.Skip("SKIPPED, no power loss without " + what)
}

// fillSite makes the file system of guests that run a site.
func fillSite(t *testing.T, root string) {
	t.Helper()
	copyFile(t, "testdata/powerloss", root+"/init")
	copyFile(t, busybox, root+"/bin/busybox")
	command(t, ".", "cp", "-r", kernelDir+"/lib", root+"/lib")
	for _, name := range strings.Fields("gctld gnoded gsubmit gqueue gcancel ginfo gadm") {
		to := filepath.Join(root, "gbatch", name)
		copyFile(t, filepath.Join(siteDir, name), to)
		copyLibraries(t, root, to)
	}
	command(t, "../..", "env", "CGO_ENABLED=0", "go", "build", "-ldflags", "-s -w", "-o", filepath.Join(root, "gbatch/registry"), "./scripts/demo")
	write(t, root+"/etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\n"))
	write(t, root+"/etc/group", []byte("root:x:0:\n"))
	write(t, root+"/etc/hosts", []byte("127.0.0.1 localhost guest\n"))
}

// told is what a guest said on its console, and how long the notes of its writes were when that was heard: all that it had waited
// for by then is in them.
type told struct {
	what string // submitted, cancelled, finished, or ran
	of   string // the job, and of what ran also the try
	at   int64
}

// recorded is what a guest did and said.
type recorded struct {
	t            *testing.T
	controllers  int    // one or three
	blank, notes string // files
	told         []told
	writes       []diskWrite
}

// options are the guests' kernel's.
func (r *recorded) options() string {
	return fmt.Sprintf("cgroup_no_v1=all power_controllers=%d", r.controllers)
}

// record has a guest do its work.
func (r *recorded) record(initrd string, jobs int) {
	disk := filepath.Join(filepath.Dir(r.notes), "disk")
	g := guest{processors: 1, memory: "3072", options: fmt.Sprintf("%s power=record power_jobs=%d", r.options(), jobs), patience: 3 * bootTimeout}
	g.devices = []string{"-blockdev", "driver=file,node-name=below,filename=" + disk, "-blockdev", "driver=file,node-name=notes,filename=" + r.notes,
		"-blockdev", "driver=blklogwrites,node-name=disk,file=below,log=notes,log-super-update-interval=1", "-device", "virtio-blk-pci,drive=disk"}
	g.begin = func() {
		command(r.t, ".", "cp", "--sparse=always", r.blank, disk)
		write(r.t, r.notes, nil)
		r.told = nil
	}
	g.heard = func(line string) {
		what, of, ok := strings.Cut(strings.TrimPrefix(line, "power-"), " ")
		if !ok || !slices.Contains([]string{"submitted", "cancelled", "finished", "ran"}, what) {
			return
		}
		st, err := os.Stat(r.notes)
		if err != nil {
			r.t.Error(err)
			return
		}
		r.told = append(r.told, told{what, of, st.Size()})
	}
	console := boot(r.t, initrd, g)
	f, err := os.Open(r.notes)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if r.writes, err = readWrites(f); err != nil {
		r.t.Fatalf("%v; console:\n%s", err, console)
	}
	for _, what := range []string{"submitted", "cancelled", "finished", "ran"} {
		if !slices.ContainsFunc(r.told, func(x told) bool { return x.what == what }) {
			r.t.Fatalf("nothing was %s:\n%s", what, console)
		}
	}
}

// cutAfter is after which write, from the first one on, the power is lost: just after something was told, when it has just what it
// needs, or after any.
func (r *recorded) cutAfter(fate *rand.Rand, first int, exact bool) int {
	if exact {
		return r.upTo(r.told[fate.IntN(len(r.told))].at)
	}
	return first + fate.IntN(len(r.writes)-first+1)
}

// upTo is how many writes are noted in so many bytes.
func (r *recorded) upTo(at int64) (n int) {
	for n < len(r.writes) && r.writes[n].end <= at {
		n++
	}
	return n
}

// look has a guest look at the disks that are left after so many writes each.
func (r *recorded) look(initrd string, after []int, fate *rand.Rand) {
	g := guest{processors: 1, memory: "3072", options: r.options() + " power=look", patience: 3 * bootTimeout}
	for i := range after {
		g.devices = append(g.devices, "-drive", fmt.Sprintf("if=none,format=raw,id=d%d,file=%s", i, r.disk(i)), "-device", fmt.Sprintf("virtio-blk-pci,drive=d%d", i))
	}
	var lost []int
	draw := fate.Uint64()
	g.begin = func() {
		again := rand.New(rand.NewPCG(draw, 0))
		lost = nil
		for i, k := range after {
			lost = append(lost, r.leave(r.disk(i), k, again))
		}
	}
	console := strings.ReplaceAll(string(boot(r.t, initrd, g)), "\r", "")
	parts := strings.Split(console, "power-disk ")[1:]
	if len(parts) != len(after) {
		r.t.Fatalf("the guest looked at %d disks of %d:\n%s", len(parts), len(after), console)
	}
	for i, part := range parts {
		r.t.Run(fmt.Sprintf("after %d of %d writes, %d lost", after[i], len(r.writes), lost[i]), func(t *testing.T) { r.compare(t, after[i], part) })
	}
}

func (r *recorded) disk(i int) string {
	return filepath.Join(filepath.Dir(r.notes), fmt.Sprintf("disk%d", i))
}

// leave makes the disk that is left after so many writes.
func (r *recorded) leave(disk string, after int, fate *rand.Rand) int {
	command(r.t, ".", "cp", "--sparse=always", r.blank, disk)
	f, err := os.OpenFile(disk, os.O_WRONLY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	lost, err := cut(f, r.writes[:after], fate)
	if err != nil {
		r.t.Fatal(err)
	}
	return lost
}

// compare compares what a guest found on a disk with what had been told by then.
func (r *recorded) compare(t *testing.T, after int, found string) {
	knows, ended, ran := map[string]string{}, map[string]string{}, map[string]bool{}
	for line := range strings.Lines(found) {
		words := strings.Fields(line)
		switch {
		case len(words) < 3:
		case words[0] == "power-knows":
			knows[words[1]] = words[2]
		case words[0] == "power-ended": // how, and why
			ended[words[1]] = strings.TrimSuffix(strings.Join(words[2:], " "), " -")
		case words[0] == "power-ran":
			ran[words[1]+" "+words[2]] = true
		}
	}
	size := r.writes[after-1].end
	for _, x := range r.told {
		if x.at > size {
			continue
		}
		switch {
		case x.what == "submitted" && knows[x.of] == "", x.what == "cancelled" && knows[x.of] != "CANCELLED", x.what == "finished" && knows[x.of] != "FINISHED":
			t.Errorf("job %s was %s, and is %q", x.of, x.what, knows[x.of])
		case x.what == "ran" && ran[x.of]:
			t.Errorf("job and try %s ran again", x.of)
		}
	}
	for id := range knows {
		if s := ended[id]; !slices.Contains([]string{"FINISHED", "CANCELLED USER", "FAILED NODE_FAIL"}, s) { // as what ran then has
			t.Errorf("job %s has come to %q", id, s)
		}
	}
	if t.Failed() || !strings.Contains(found, "power-looked") {
		t.Errorf("the guest says:\n%s", found)
	}
}
