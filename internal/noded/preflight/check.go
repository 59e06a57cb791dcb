package preflight

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/runc/libcontainer/seccomp"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/internal/client"
	"gbatch/internal/gpu"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/devices"
	"gbatch/internal/noded/disk"
	"gbatch/internal/noded/identity"
	"gbatch/internal/noded/program"
	"gbatch/oci/apparmor"
	"gbatch/oci/atomicfile"
	"gbatch/oci/hostnet"
	"gbatch/oci/image"
	"gbatch/oci/netns"
	"gbatch/oci/overlay"
	"gbatch/oci/runtimes"
)

// finding is one line of Check. Fix is empty when all is well.
type finding struct {
	what  string // what was looked at, and what was found
	fix   string // what to run or set
	fatal bool   // else a warning
}

func fine(format string, args ...any) []finding {
	return []finding{{what: fmt.Sprintf(format, args...)}}
}

func broken(fix, format string, args ...any) []finding {
	return []finding{{what: fmt.Sprintf(format, args...), fix: fix, fatal: true}}
}

// checks are what a machine needs to be a node, in the order in which one
// would set it up.
var checks = []func(ctx context.Context, c *config.Config) []finding{
	checkRoot, checkCgroups, checkSeccomp, checkGPUs, checkStateDir, checkOverlay, checkUsers, checkRuntimes, checkAppArmor, checkDisk, checkWrites, checkPulls, checkRoots, checkPrograms, checkNetwork, checkRegistries,
}

// Check writes to w what this machine lacks to be a node, one line for each
// thing looked at; a failing line says what to do. It returns how many failed.
// It changes nothing but directories that the daemon would make too.
func Check(ctx context.Context, c config.Config, version string, w io.Writer) int {
	failed := 0
	controller := func(ctx context.Context, c *config.Config) []finding { return checkController(ctx, c, version) }
	for _, check := range append(slices.Clone(checks), controller) {
		for _, f := range check(ctx, &c) {
			word := "ok  "
			switch {
			case f.fatal:
				word = "FAIL"
				failed++
			case f.fix != "":
				word = "warn"
			}
			fmt.Fprintf(w, "%s  %s\n", word, f.what)
			if f.fix != "" {
				fmt.Fprintf(w, "      fix: %s\n", f.fix)
			}
		}
	}
	return failed
}

func checkRoot(context.Context, *config.Config) []finding {
	if os.Geteuid() != 0 {
		return broken("run it as root, as by: sudo gnoded check", "not root: containers cannot be made")
	}
	return fine("runs as root")
}

func checkCgroups(context.Context, *config.Config) []finding {
	h, err := cgroups.Detect()
	if err != nil {
		return broken("mount -t cgroup2 none /sys/fs/cgroup", "%v", err)
	}
	var list []finding
	for _, p := range cgroups.Check("/") {
		list = append(list, finding{what: p.What, fix: p.Fix, fatal: p.Fatal})
	}
	if len(list) == 0 {
		return fine("cgroups (%s) with all controllers", h.Mode)
	}
	return list
}

func checkSeccomp(context.Context, *config.Config) []finding {
	if !seccomp.Enabled {
		return broken("build gnoded with: go build -tags seccomp (needs libseccomp-dev and a C compiler)", "this gnoded was built without seccomp: no container would start")
	}
	b, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err != nil || !strings.Contains(string(b), "errno") {
		return broken("use a kernel with CONFIG_SECCOMP_FILTER=y", "the kernel has no seccomp filters")
	}
	return fine("seccomp filters")
}

func checkStateDir(_ context.Context, c *config.Config) []finding {
	if err := os.MkdirAll(c.StateDir, 0o711); err != nil {
		return broken("mkdir -p "+c.StateDir, "state directory: %v", err)
	}
	probe := filepath.Join(c.StateDir, ".check")
	if err := atomicfile.WriteDurable(probe, []byte("x")); err != nil {
		return broken("see that the file system is mounted read-write and has space: df -h "+c.StateDir, "state directory %s cannot be written: %v", c.StateDir, err)
	}
	_ = os.Remove(probe)
	var st unix.Statfs_t
	if err := unix.Statfs(c.StateDir, &st); err != nil {
		return broken("df "+c.StateDir, "state directory: %v", err)
	}
	if name, bad := unfitFilesystems[st.Type]; bad {
		return broken("put stateDir on a local disk with ext4 or xfs", "state directory %s is on %s, which containers cannot write through", c.StateDir, name)
	}
	return fine("state directory %s", c.StateDir)
}

// unfitFilesystems cannot hold an overlay's upper directory, or lose it.
var unfitFilesystems = map[int64]string{
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
	unix.NFS_SUPER_MAGIC:       "NFS",
	unix.SMB2_SUPER_MAGIC:      "SMB",
	unix.V9FS_MAGIC:            "9p",
	unix.TMPFS_MAGIC:           "tmpfs, which a reboot empties",
}

// checkOverlay mounts a small overlay where containers will have theirs.
func checkOverlay(_ context.Context, c *config.Config) []finding {
	dir, err := os.MkdirTemp(c.StateDir, ".check-")
	if err != nil {
		return broken("see the state directory above", "overlay: %v", err)
	}
	defer os.RemoveAll(dir)
	for _, d := range []string{"lower", "upper", "work", "at"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			return broken("see the state directory above", "overlay: %v", err)
		}
	}
	at := filepath.Join(dir, "at")
	opts := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", dir, dir, dir)
	if err := unix.Mount("overlay", at, "overlay", unix.MS_NODEV, opts); err != nil {
		return broken("modprobe overlay; the state directory must be on a file system that overlayfs can use, as ext4 or xfs with ftype=1", "overlay cannot be mounted in %s: %v", c.StateDir, err)
	}
	if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
		return broken("umount "+at, "overlay: %v", err)
	}
	return fine("overlay file systems")
}

// checkUsers tries whether root of a container can be its user.
func checkUsers(_ context.Context, c *config.Config) []finding {
	if err := os.MkdirAll(c.Images.Dir, 0o700); err != nil {
		return broken("mkdir -p "+c.Images.Dir, "%v", err)
	}
	if err := overlay.ProbeUsers(c.Images.Dir, c.StateDir); err != nil {
		return []finding{{
			what: fmt.Sprintf("containers cannot have ids of their own, so that jobs run without root, as their users: %v", err),
			fix:  "use Linux 5.19 or later, images.dir on ext4, xfs or btrfs, and: sysctl -w user.max_user_namespaces=100000",
		}}
	}
	return fine("root of a container is its user, other ids from %d on", c.IDsFrom)
}

func checkRuntimes(_ context.Context, c *config.Config) (list []finding) {
	for _, name := range slices.Sorted(maps.Keys(c.Runtimes)) {
		r, err := runtimes.Find(c.Runtimes[name].Path, c.Runtimes[name].Args)
		if err != nil {
			list = append(list, broken("install it, or take it out of runtimes", "jobs cannot have the runtime %s: %v", name, err)...)
			continue
		}
		list = append(list, fine("jobs can have the runtime %s, which is %s", name, r.Kind)...)
	}
	return list
}

func checkAppArmor(_ context.Context, c *config.Config) []finding {
	if c.AppArmor == "" {
		if has, _ := apparmor.Ready(""); has {
			return []finding{{what: "jobs have no AppArmor profile, and the kernel could confine them", fix: "load one, as gbatch-job of the package, and set appArmor to its name"}}
		}
		return nil
	}
	has, err := apparmor.Ready(c.AppArmor)
	switch {
	case !has:
		return []finding{{what: "jobs have no AppArmor profile: the kernel has no AppArmor", fix: "boot with: apparmor=1 security=apparmor; or leave appArmor out"}}
	case err != nil:
		return broken("do so, or leave appArmor out", "%v", err)
	}
	return fine("jobs have the AppArmor profile %s", c.AppArmor)
}

func checkDisk(_ context.Context, c *config.Config) []finding {
	for _, dir := range []string{c.StateDir, c.Images.Dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return broken("mkdir -p "+dir, "%v", err)
		}
		if reason := DiskReason(dir, int64(c.MinFree)); reason != "" {
			return broken("make room, or lower minFree: du -xh --max-depth=2 "+dir, "%s", reason)
		}
	}
	return fine("free disk space")
}

// checkWrites tries how what containers write can be bounded.
func checkWrites(_ context.Context, c *config.Config) []finding {
	mode, limit, err := disk.Probe(c)
	how := map[string]string{
		config.DiskQuota: "project quotas", config.DiskImage: "a file system of its own in a file", config.DiskWatch: "a look now and then, and its end",
	}[mode]
	f := finding{what: fmt.Sprintf("what a container writes is bounded to %s by %s", config.FormatBytes(limit), how)}
	switch {
	case mode == "":
		return broken("see the state directory above", "what containers write: %v", err)
	case err != nil && mode == config.DiskImage:
		f.what += fmt.Sprintf("; the file system of the state directory has no project quotas (%v)", err)
	case err != nil:
		f.what += fmt.Sprintf(": %v", err)
		f.fix = "mount the file system of the state directory with project quotas (ext4: tune2fs -O project,quota while it is not mounted; then the option prjquota), or install e2fsprogs and run: modprobe loop"
	}
	list := []finding{f}
	var run, state unix.Stat_t
	if unix.Stat("/run", &run) == nil && unix.Stat(c.StateDir, &state) == nil && run.Dev == state.Dev {
		list = append(list, finding{what: "/run is on the state directory's file system: when that is full, contact with the controller is not noted, and jobs end", fix: "mount -t tmpfs tmpfs /run at boot, as systemd does"})
	}
	return list
}

func checkPulls(_ context.Context, c *config.Config) []finding {
	if err := image.Check(c.Images.Dir); err != nil {
		return broken("put images.dir on ext4, xfs or btrfs, and allow user namespaces: sysctl user.max_user_namespaces", "images cannot be pulled: %v", err)
	}
	return fine("processes that pull images")
}

func checkRoots(_ context.Context, c *config.Config) []finding {
	var list []finding
	for _, r := range c.Storage {
		base, _, templated := strings.Cut(r.Path, "{")
		if templated {
			base = filepath.Dir(base + "x")
		} else if r.Create {
			base = filepath.Dir(r.Path)
		}
		if st, err := os.Stat(base); err != nil || !st.IsDir() {
			list = append(list, broken("mkdir -p "+base+", or mount it", "storage %s: directory %s is not there", r.Name, base)...)
			continue
		}
		list = append(list, fine("storage %s at %s", r.Name, r.Path)...)
	}
	if len(list) == 0 {
		list = []finding{{what: "no storage is configured: jobs can only have tmpfs", fix: "list the directories that jobs may mount under storage: in the configuration"}}
	}
	return list
}

// checkPrograms looks whether the site's own programs may be run as root.
func checkPrograms(_ context.Context, c *config.Config) []finding {
	var list []finding
	for _, p := range c.Programs() {
		if err := program.Check(p.Path); err != nil {
			list = append(list, broken("do so, or take it out of the configuration: no jobs come here until then", "a program of the site's may not run: %v", err)...)
			continue
		}
		list = append(list, fine("program %s of the site's, for at most %s", p.Path, p.Timeout)...)
	}
	return list
}

// checkNetwork tries what jobs' own networks need, beside the machine's.
func checkNetwork(_ context.Context, c *config.Config) []finding {
	list := checkHostNetwork(c)
	if c.Network.Mode == config.NetworkHost {
		return append(list, finding{what: "only jobs that may use the node's network run here", fix: "set network.mode to auto to give all others networks of their own"})
	}
	if err := netns.Probe(); err != nil {
		return append(list, finding{what: err.Error(), fix: "see the error; until then, only jobs that may use the node's network run here, where network.allowHost is set", fatal: c.Network.Mode == config.NetworkBridge})
	}
	list = append(list, fine("jobs can have networks of their own")...)
	list = append(list, checkGangs(c)...)
	if chains, err := netns.Conflicts(c.Name); err == nil && len(chains) > 0 {
		list = append(list, finding{
			what: fmt.Sprintf("another firewall drops what is forwarded, in %s", strings.Join(chains, ", ")),
			fix: fmt.Sprintf("accept there what comes from and goes to interfaces named %s*, as with docker: iptables -I DOCKER-USER -i %s+ -j ACCEPT; iptables -I DOCKER-USER -o %s+ -j ACCEPT; then set network.mode to bridge",
				netns.Interfaces(c.Name), netns.Interfaces(c.Name), netns.Interfaces(c.Name)),
		})
	}
	return list
}

// checkHostNetwork tries what jobs in the node's network are filtered by.
func checkHostNetwork(c *config.Config) []finding {
	if !c.Network.AllowHost {
		return nil
	}
	if err := hostnet.Probe(); err != nil {
		return []finding{{what: fmt.Sprintf("jobs may not use the node's network, though network.allowHost is set: %v", err), fix: "see the error, or set network.allowHost to false"}}
	}
	return fine("jobs of projects with hostNetwork may use the node's network, without its loopback addresses")
}

// checkGangs tries what a network between nodes needs.
func checkGangs(c *config.Config) []finding {
	_, err := netns.GangAddress(identity.OwnAddress(c))
	if err == nil {
		err = netns.ProbeGang()
	}
	if err != nil {
		return []finding{{what: err.Error(), fix: "see the error; until then, jobs on several nodes run here only if they may use the node's network"}}
	}
	if err := netns.ProbeTogether(); err != nil {
		return []finding{{what: fmt.Sprintf("ranks of one job cannot be here together, so that each has another node: %v", err), fix: "use Linux 6.5 or later where jobs of Kubernetes shall share a node"}}
	}
	return fine("jobs on several nodes can have a network between them; other firewalls must let UDP port %d pass between the nodes", netns.TunnelPort)
}

// checkTimeout bounds the question to the controller.
const checkTimeout = 10 * time.Second

// maxSkew is how far the clocks may differ: times of jobs come from both. The
// date is told in whole seconds.
const maxSkew = 3 * time.Second

func checkController(ctx context.Context, c *config.Config, version string) []finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	own, err := identity.OpenCredential(c)
	if err != nil {
		return broken("see the state directory above", "%v", err)
	}
	ctl := identity.Dial(c, own, version)
	defer ctl.Close()
	if own.Lacking() {
		list := checkSkew(ctx, ctl)
		if _, err := own.Token(); err != nil {
			return append(list, broken("make a token on the controller's machine by `gadm node-token create`, put it into a file here, and name that as joinTokenFile", "%v", err)...)
		}
		return append(list, finding{what: "this machine has a token to join the controller, which it does when gnoded starts"})
	}
	// A status is the cheapest question that needs a login.
	st, err := ctl.Status(ctx)
	if err != nil {
		return broken("see that gctld runs there, that its address and port are right, and that no firewall is between", "controller: %v", err)
	}
	list := fine("controller at %s (version %s)", c.Controller, st.Version)
	if st.Role != "node" && st.Role != "admin" {
		list = append(list, broken("use the https address of `gadm join-string`, or run as root", "the controller takes this caller for %s (%s), not for a node", st.You, st.Role)...)
	}
	return append(list, checkSkew(ctx, ctl)...)
}

// checkSkew compares the clocks by the date of any answer. On a local socket
// there is only one clock.
func checkSkew(ctx context.Context, ctl *client.Client) []finding {
	if !strings.HasPrefix(ctl.Address, "https:") {
		return nil
	}
	date, err := ctl.Date(ctx)
	if err != nil {
		return broken("see that gctld runs there, that its address and port are right, and that no firewall is between", "controller: %v", err)
	}
	if skew := time.Since(date).Round(time.Second); skew.Abs() > maxSkew {
		return broken("run an NTP client on both machines, as: systemctl enable --now chrony", "this clock and the controller's differ by %s", skew)
	}
	return fine("clock within %s of the controller's", maxSkew)
}

// checkGPUs is the preflight's view.
func checkGPUs(_ context.Context, c *config.Config) []finding {
	cfg, err := devices.Setup(c)
	if err != nil {
		return broken("correct the configuration", "gpu.%v", err)
	}
	// A daemon that runs has the link for hooks in its state directory.
	if cfg.Injector.HookDir, err = os.MkdirTemp("", "gnoded-check-"); err != nil {
		return broken("make room in the directory for temporary files", "GPUs: %v", err)
	}
	defer os.RemoveAll(cfg.Injector.HookDir)
	node, err := gpu.Open(cfg)
	if err != nil {
		return broken("see the text; nvidia-smi must work on this machine", "GPUs: %v", err)
	}
	defer node.Close()
	inv := node.Inventory()
	if len(inv.GPUs) == 0 {
		return fine("no GPUs: there is no NVIDIA driver, the node takes CPU jobs only")
	}
	kind := ""
	if inv.Simulated {
		kind = ", simulated"
	}
	list := fine("%d GPUs (%s), driver %s, CUDA %d.%d%s", len(inv.GPUs), inv.GPUs[0].Model, inv.Driver, inv.CUDA/100, inv.CUDA%100, kind)
	for _, g := range inv.GPUs {
		if g.Unhealthy != "" {
			list = append(list, finding{what: fmt.Sprintf("GPU %d (%s) takes no jobs", g.Index, g.UUID), fix: g.Unhealthy})
		}
	}
	return list
}
