package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/client"
)

// machine is a machine of its own: this one's files with a layer of its own over
// them, in a mount namespace. Its package databases are empty, so that what is
// installed here, such as another Slurm's commands, is in nobody's way.
type machine struct {
	*site
	pid int // of the process that holds the namespace
}

// newMachine needs what is mounted at /proc, /sys and /dev here.
func newMachine(t *testing.T) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gbatch-e2e-site-")
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{site: &site{t: t, dir: dir, bin: bin}}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	script := `set -e
cd "$1"
mkdir upper work root state
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
for d in proc sys dev; do mount --rbind /$d root/$d; done
rm -rf root/var/lib/dpkg root/var/lib/rpm
mkdir -p root/var/lib/rpm root/var/lib/gnoded root/old root/var/lib/dpkg/info root/var/lib/dpkg/updates
touch root/var/lib/dpkg/status
mount --bind state root/var/lib/gnoded
mount -t tmpfs tmpfs root/run
cd root
pivot_root . old
umount -l /old
echo ready
exec sleep infinity
`
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "machine", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := startChild(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line := make([]byte, 6)
	if _, err := out.Read(line); err != nil || string(line) != "ready\n" {
		t.Skipf("SKIPPED: no machine of its own can be made here: %v %s", err, errs.String())
	}
	m.pid = cmd.Process.Pid
	m.api = &client.Client{Address: fmt.Sprintf("unix:///proc/%d/root/run/gbatch/gctld.sock", m.pid), Timeout: patience}
	return m
}

func (m *machine) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"-t", fmt.Sprint(m.pid), "-m", "--", name}, args...)...)
	cmd.Env = append(cleanEnv(), "DEBIAN_FRONTEND=noninteractive", "HOME=/root")
	return cmd
}

func (m *machine) sh(script string) string {
	m.t.Helper()
	r := execute(m.command("sh", "-c", script))
	if r.code != 0 {
		m.t.Fatalf("%s: %v", script, r)
	}
	return r.out
}

// daemon starts a program as its unit would.
func (m *machine) daemon(name string) *daemon {
	m.t.Helper()
	d := &daemon{s: m.site, name: name, program: name, log: filepath.Join(m.dir, name+".log")}
	log, err := os.Create(d.log)
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	d.cmd, d.done = m.command(name, "run"), make(chan struct{})
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := startChild(d.cmd); err != nil {
		m.t.Fatal(err)
	}
	go func() { // ends with the process; stop waits for it
		d.err = d.cmd.Wait()
		close(d.done)
	}()
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.t.Logf("the end of the log of %s:\n%s", name, tail(d.log, 40))
		}
		if err := d.stop(); err != nil {
			m.t.Errorf("%s did not stop well: %v", name, err)
		}
	})
	return d
}

// packager is how packages of one kind come and go. What ours depend on is there,
// and not in the database of packages.
type packager struct {
	kind, install, remove string
	// old makes packages in a folder that are the same but for their version.
	old func(t *testing.T, packages []string, dir, version string)
}

var dpkg = packager{kind: "deb", install: "dpkg --force-depends -i %s/*.deb </dev/null", remove: "dpkg -r", old: renamed}

// rpm is told that it is no mistake to call it on Debian.
var rpm = packager{kind: "rpm", install: "rpm --dbpath /var/lib/rpm --force-debian -U --oldpackage --nodeps %s/*.rpm",
	remove: "rpm --dbpath /var/lib/rpm --force-debian -e", old: packedAgain}

func renamed(t *testing.T, debs []string, dir, version string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, deb := range debs {
		tree := filepath.Join(dir, "tree")
		script := `dpkg-deb -R "$1" "$2" && sed -i "s/^Version: .*/Version: $3/" "$2/DEBIAN/control" && dpkg-deb -Zgzip -z1 -b "$2" "$4" >/dev/null && rm -rf "$2"`
		to := filepath.Join(dir, strings.SplitAfter(filepath.Base(deb), "_")[0]+"old.deb")
		if out, err := exec.Command("sh", "-c", script, "renamed", deb, tree, version, to).CombinedOutput(); err != nil {
			t.Fatalf("make a package of %s: %v\n%s", deb, err, out)
		}
	}
}

func packedAgain(t *testing.T, _ []string, dir, version string) {
	t.Helper()
	cmd := exec.Command("../../scripts/packages", "rpm")
	cmd.Env = append(os.Environ(), "VERSION="+version, "OUT="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make packages: %v\n%s", err, out)
	}
}

// otherVersion takes the machine from the packages in the folder old to others,
// back, and to the others again. Its configuration and state stay, and the daemons of
// each go on with them. A service manager that is not there is not called, and
// one that is takes over only what runs.
func (m *machine) otherVersion(by packager, packages []string, old string) {
	m.t.Helper()
	fresh := filepath.Join(m.dir, "new")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		m.t.Fatal(err)
	}
	for _, d := range packages {
		b, err := os.ReadFile(d)
		if err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(fresh, filepath.Base(d)), b, 0o644); err != nil {
			m.t.Fatal(err)
		}
	}
	m.sh(`echo "# ours" >>/etc/apparmor.d/gbatch-job; echo "# ours" >>/etc/gbatch/gctld.yaml; echo "# ours" >>/etc/gbatch/gnoded.yaml; echo "controller: unix:///run/gbatch/gctld.sock" >/etc/gbatch/client.yaml
printf '#!/bin/sh\necho "$@" >>/systemctl\n' >/usr/bin/systemctl.new; chmod 755 /usr/bin/systemctl.new; mv /usr/bin/systemctl.new /usr/bin/systemctl`)
	const files = "cd /etc && sha256sum apparmor.d/gbatch-job gbatch/*"
	before := m.sh(files)
	last := 2 // the number of the last job
	for i, dir := range []string{fresh, old, fresh} {
		if i == 2 {
			m.sh("mkdir -p /run/systemd/system")
		}
		r := execute(m.command("sh", "-c", fmt.Sprintf(by.install, dir)))
		if down := strings.Contains(r.out+r.err, "downgrading"); r.code != 0 || by.kind == "deb" && down != (dir == old) {
			m.t.Fatalf("install %s: %v", dir, r)
		}
		if after := m.sh(files); after != before {
			m.t.Errorf("the configuration is\n%s\nand was\n%s", after, before)
		}
		ctld, node := m.daemon("gctld"), m.daemon("gnoded")
		m.waitNodes("up", 1)
		last++
		if out := m.sh("gqueue --json show 1 && gsubmit --wait --image " + image + " -- true 2>&1"); !strings.Contains(out, "FINISHED") || !strings.Contains(out, fmt.Sprint(last)) {
			m.t.Errorf("after %s: want job 1 as it was, and job %d:\n%s", dir, last, out)
		}
		for _, d := range []*daemon{node, ctld} {
			if err := d.stop(); err != nil {
				m.t.Error(err)
			}
		}
		m.api.Close()
	}
	calls := m.sh("cat /systemctl; rm -r /usr/bin/systemctl /run/systemd/system")
	for _, line := range strings.Split(strings.TrimSpace(calls), "\n") {
		switch line {
		case "daemon-reload", "try-restart gctld.service", "try-restart gnoded.service":
		default:
			m.t.Errorf("an upgrade called systemctl %s", line)
		}
	}
	if n := strings.Count(calls, "try-restart"); n != 2 {
		m.t.Errorf("three installations, of them one under systemd, restarted daemons %d times:\n%s", n, calls)
	}
}

// setUp installs packages of an older version than those of `make packages`,
// sets a site up as they say, runs a job, and goes to these packages and back.
func (m *machine) setUp(by packager, packages []string) {
	t := m.t
	old := filepath.Join(m.dir, "old")
	by.old(t, packages, old, "0.0.0+git202001010000.1.abcdef0")
	m.sh(fmt.Sprintf(by.install, old))
	if out := m.sh("systemd-analyze verify /usr/lib/systemd/system/gctld.service /usr/lib/systemd/system/gnoded.service 2>&1 || true"); strings.Contains(out, "gctld.service:") || strings.Contains(out, "gnoded.service:") {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	m.sh("systemd-analyze security --offline=true --threshold=30 /usr/lib/systemd/system/gctld.service") // of 100; gnoded's cannot be low
	m.sh("cd /usr/share/man && test -e man8/gctld.8.gz && test -e man8/gnoded.8.gz && test -e man5/gctld.yaml.5.gz && test -e man5/gnoded.yaml.5.gz && test -e man5/gbatch-job.5.gz && test -e man1/gsubmit.1.gz")
	m.sh("gadm help changelog >/dev/null && test -e /usr/share/doc/gbatch-node/docs/administration.md")
	if r := execute(m.command("gctld", "run")); r.code == 0 || !strings.Contains(r.err, "gctld init") {
		t.Errorf("gctld without a configuration: %v", r)
	}
	if out := m.sh("gctld init --listen 127.0.0.1:7179"); !strings.Contains(out, "gnoded join unix:///run/gbatch/gctld.sock") {
		t.Errorf("gctld init says %q", out)
	}
	ctld := m.daemon("gctld")
	eventually(t, "the controller answers", func() bool { _, err := m.api.Status(t.Context()); return err == nil })
	m.sh("gnoded --name " + m.nodeName(0) + " join unix:///run/gbatch/gctld.sock")
	allowRegistry(t, fmt.Sprintf("/proc/%d/root/etc/gbatch/gnoded.yaml", m.pid))
	node := m.daemon("gnoded")
	m.waitNodes("up", 1)
	m.sh("gsubmit --wait --image " + image + " -- true")
	if out := m.sh("GBATCH_SLURM_IMAGE=" + image + " sbatch --wait --wrap 'echo hello'"); out != "Submitted batch job 2\n" && !strings.HasPrefix(out, "Submitted batch job 2\n") {
		t.Errorf("sbatch: %q", out)
	}
	if err := node.stop(); err != nil {
		t.Error(err)
	}
	if err := ctld.stop(); err != nil {
		t.Error(err)
	}
	m.api.Close()

	m.otherVersion(by, packages, old)
	m.sh(by.remove + " " + ours + " && test -e /var/lib/gbatch/ctld/ca.key && test -e /var/lib/gnoded/instance && test -e /etc/gbatch/gctld.yaml && ! test -e /usr/bin/gctld")
}

// ours are the packages, in an order in which they can be removed.
const ours = "gbatch-slurm-shims gbatch-client gbatch-node gbatch-controller"

// packagesOf are those that `make packages` has made.
func packagesOf(t *testing.T, kind string) []string {
	t.Helper()
	needs(t)
	packages, err := filepath.Glob("../../build/packages/*." + kind)
	if err != nil || len(packages) != 4 {
		t.Skipf("SKIPPED: build/packages has %d packages of .%s, not 4: run make packages", len(packages), kind)
	}
	if _, err := os.Stat("/usr/bin/gctld"); err == nil {
		t.Skip("SKIPPED: gbatch is installed on this machine")
	}
	return packages
}

func TestPackages(t *testing.T) {
	packages := packagesOf(t, "deb")
	m := newMachine(t)
	m.setUp(dpkg, packages)
	m.sh("dpkg -P " + ours + " && ! test -e /var/lib/gbatch && ! test -e /etc/gbatch/gctld.yaml && ! test -e /var/lib/gnoded/instance")
}

// TestRPMs is the same by rpm, which has no word for purging.
func TestRPMs(t *testing.T) {
	packages := packagesOf(t, "rpm")
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("SKIPPED: no rpm here")
	}
	m := newMachine(t)
	m.setUp(rpm, packages)
	if out := m.sh("rpm --dbpath /var/lib/rpm -qa"); out != "" {
		t.Errorf("packages are left: %s", out)
	}
}
