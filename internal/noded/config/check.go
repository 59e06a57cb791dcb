package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/client"
	"gbatch/internal/gpu/setup"
	"gbatch/internal/job"
	"gbatch/internal/reach"
	"gbatch/internal/settings"
)

var (
	nodeName    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$`)
	hostAddress = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.:-]{0,252}[A-Za-z0-9])?$`)
	featureName = regexp.MustCompile(`^[A-Za-z0-9_./:=+ -]{2,128}$`)
	profileName = regexp.MustCompile(`^[A-Za-z0-9_./:-]{1,128}$`)
	placeholder = regexp.MustCompile(`\{[^}]*\}`)
)

const (
	maxListed   = 64 // features and storage roots
	maxRuntimes = 8
)

// Validate reports all problems at once, as settings.Faults.
func (c *Config) Validate() error {
	var faults settings.Faults
	for _, check := range []func(*Config, func(string, string, ...any)){
		checkIdentity, checkCapacity, checkGPU, checkStorage, checkImages, checkImagePeers, checkNetworkConfig, checkMetrics, checkData, checkDisk, checkPrograms, checkHealth, checkBounds,
	} {
		check(c, faults.Add)
	}
	return faults.Err()
}

func checkIdentity(c *Config, bad func(string, string, ...any)) {
	if !nodeName.MatchString(c.Name) {
		bad("name", "%q: use letters, digits, dots and dashes, at most 63", c.Name)
	}
	if c.Controller == "" {
		bad("controller", "missing: give gctld's address, as `gadm join-string` prints it")
	} else if err := client.CheckAddress(c.Controller); err != nil {
		bad("controller", "%v", err)
	}
	if !filepath.IsAbs(c.StateDir) {
		bad("stateDir", "%q: must be an absolute path", c.StateDir)
	}
	if c.ClusterID < 1 {
		bad("clusterId", "%d: must be 1 or more", c.ClusterID)
	}
}

func checkCapacity(c *Config, bad func(string, string, ...any)) {
	if n := runtime.NumCPU(); c.Reserve.Cores < 0 || c.Reserve.Cores >= n {
		bad("reserve.cores", "%d: must be 0 to %d on this machine", c.Reserve.Cores, n-1)
	}
	if total := TotalMemory(); c.Reserve.Memory < 0 || total > 0 && int64(c.Reserve.Memory) >= total {
		bad("reserve.memory", "%s: must be less than this machine's %s", c.Reserve.Memory, FormatBytes(total))
	}
	if c.Cores < 0 || c.Cores > 4096 {
		bad("cores", "%d: must be 1 to 4096", c.Cores)
	}
	if c.PidsMax < 64 {
		bad("pidsMax", "%d: must be 64 or more", c.PidsMax)
	}
	if c.IDsFrom < 1<<16 || c.IDsFrom%(1<<16) != 0 || c.IDsFrom > 0x7f000000 {
		bad("idsFrom", "%d: must be a multiple of 65536, from 65536 to %d", c.IDsFrom, 0x7f000000)
	}
	if c.Launches < 1 || c.Launches > 256 {
		bad("launches", "%d: must be 1 to 256", c.Launches)
	}
	for _, name := range c.AllowCapabilities {
		if wrong := job.CheckCapability(string(name)); wrong != "" {
			bad("allowCapabilities", "%s", wrong)
		}
	}
	if len(c.Runtimes) > maxRuntimes {
		bad("runtimes", "%d of them: at most %d", len(c.Runtimes), maxRuntimes)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Runtimes)) {
		if wrong := job.CheckRuntime(name); wrong != "" {
			bad("runtimes."+name, "the name %s", wrong)
		}
		if r := c.Runtimes[name]; !filepath.IsAbs(r.Path) {
			bad("runtimes."+name+".path", "%q: must be an absolute path", r.Path)
		}
	}
	if c.AppArmor != "" && !profileName.MatchString(c.AppArmor) {
		bad("appArmor", "%q: use letters, digits and _ - . / : as in the profile's name, at most 128", c.AppArmor)
	}
	if c.Address != "" && !hostAddress.MatchString(c.Address) {
		bad("address", "%q: want an IP address or a host name", c.Address)
	}
	if len(c.Features) > maxListed {
		bad("features", "%d of them: at most %d", len(c.Features), maxListed)
	}
	for _, f := range c.Features {
		if !featureName.MatchString(f) {
			bad("features", "%q: use 2 to 128 letters, digits, blanks and _ - . / : = +", f)
		}
	}
}

func checkGPU(c *Config, bad func(string, string, ...any)) {
	if _, err := c.GPUs(); err != nil {
		for line := range strings.Lines(err.Error()) {
			key, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
			bad("gpu."+key, "%s", text)
		}
	}
}

// GPUs reads the gpu part of the configuration; each line of the
// error begins with the key that is wrong.
func (c *Config) GPUs() (setup.GPUs, error) {
	sim, err := setup.ParseSimulation(c.GPU.Simulate)
	if err != nil {
		err = fmt.Errorf("simulate: %w", err)
	}
	s := setup.GPUs{
		Simulate: sim,
		Limits: setup.Limits{
			NVLinks: c.Health.NVLinks, Throttled: time.Duration(c.Health.Throttled), SkipNVLink: !c.Health.Makes(CheckNVLink), SkipPCIe: !c.Health.Makes(CheckPCIe),
			SkipThrottle: !c.Health.Makes(CheckThrottle), SkipPages: !c.Health.Makes(CheckPages),
		},
		Injection: setup.Injection{Mode: setup.Mode(c.GPU.Mode), Hook: c.GPU.Hook, Devices: c.GPU.Devices},
	}
	return s, errors.Join(err, s.Injection.Validate())
}

func checkStorage(c *Config, bad func(string, string, ...any)) {
	if len(c.Storage) > maxListed {
		bad("storage", "%d roots: at most %d", len(c.Storage), maxListed)
	}
	seen := map[string]bool{}
	for i, r := range c.Storage {
		key := fmt.Sprintf("storage[%d]", i)
		switch {
		case r.Name == "":
			bad(key+".name", "missing: say how jobs name it, as /project")
		case !strings.HasPrefix(r.Name, "/") || filepath.Clean(r.Name) != r.Name || r.Name == "/":
			bad(key+".name", "%q: must be an absolute path without .. or a slash at its end, as /project", r.Name)
		case seen[r.Name]:
			bad(key+".name", "%q is given twice", r.Name)
		}
		seen[r.Name] = true
		checkTemplate(key+".path", r.Path, bad)
	}
	if c.SSHDir != "" {
		checkTemplate("sshDir", c.SSHDir, bad)
	}
}

func checkTemplate(key, path string, bad func(string, string, ...any)) {
	if !filepath.IsAbs(path) || path == "/" {
		bad(key, "%q: must be an absolute path below /", path)
	}
	for _, p := range placeholder.FindAllString(path, -1) {
		if p != "{project}" && p != "{user}" {
			bad(key, "%s: only {project} and {user} are known", p)
		}
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			bad(key, "%q: must not contain ..", path)
		}
	}
}

func checkImages(c *Config, bad func(string, string, ...any)) {
	if !filepath.IsAbs(c.Images.Dir) {
		bad("images.dir", "%q: must be an absolute path", c.Images.Dir)
	}
	if d := c.Images.DockerConfig; d != "" && !filepath.IsAbs(d) {
		bad("images.dockerConfig", "%q: must be an absolute path", d)
	}
	if d := c.Images.CertsDir; d != "" && !filepath.IsAbs(d) {
		bad("images.certsDir", "%q: must be an absolute path", d)
	}
	for _, d := range c.Images.LocalRoots {
		if !filepath.IsAbs(d) {
			bad("images.localRoots", "%q: must be an absolute path", d)
		}
	}
	for _, h := range c.Images.Hosts {
		if wrong := reach.CheckHost(h); wrong != "" {
			bad("images.hosts", "%q: %s", h, wrong)
		}
	}
	for _, h := range c.Images.Insecure {
		if h == "" || strings.Contains(h, "/") {
			bad("images.insecure", "%q: write HOST or HOST:PORT", h)
		}
	}
	for host, list := range c.Images.Mirrors {
		for _, m := range list {
			if m == "" || strings.Contains(m, "//") {
				bad("images.mirrors."+host, "%q: write HOST or HOST:PORT", m)
			}
		}
	}
}

func checkBounds(c *Config, bad func(string, string, ...any)) {
	bounds[Size]{1 << 20, 1 << 40}.check(bad, "shmSize", c.ShmSize)
	bounds[Size]{100 << 20, 1 << 60}.check(bad, "images.maxSize", c.Images.MaxSize)
	bounds[Size]{64 << 10, 1 << 40}.check(bad, "logs.quota", c.Logs.Quota)
	bounds[Duration]{Duration(time.Second), Duration(24 * time.Hour)}.check(bad, "images.pullTimeout", c.Images.PullTimeout)
	bounds[Duration]{Duration(10 * time.Second), Duration(24 * time.Hour)}.check(bad, "lease", c.Lease)
	bounds[Duration]{0, Duration(365 * 24 * time.Hour)}.check(bad, "logs.keep", c.Logs.Keep)
}

// bounds are the least and the most that a key may say.
type bounds[T interface {
	cmp.Ordered
	String() string
}] struct{ lo, hi T }

func (b bounds[T]) check(bad func(string, string, ...any), key string, v T) {
	if v < b.lo || v > b.hi {
		bad(key, "%s: must be %s to %s", v, b.lo, b.hi)
	}
}

// defaultLaunches is more than there are cores, as a start waits for the kernel now and then.
func defaultLaunches() int { return runtime.NumCPU() + min(runtime.NumCPU(), 8) }

// defaultReservedMemory leaves the system something without making small
// machines useless.
func defaultReservedMemory() Size {
	return Size(min(1<<30, max(TotalMemory()/10, 1)))
}

// MaxProcesses is how many processes and threads the machine can have.
func MaxProcesses() int {
	most := 1 << 22
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		text, err := os.ReadFile(file)
		if n, perr := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && perr == nil {
			most = min(most, n)
		}
	}
	return most
}

// TotalMemory of the machine in bytes; 0 if it cannot be told.
func TotalMemory() int64 {
	var si unix.Sysinfo_t
	if err := unix.Sysinfo(&si); err != nil {
		return 0
	}
	return int64(si.Totalram) * int64(si.Unit)
}
