package site

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"gbatch/internal/control"
	"gbatch/internal/control/ask"
	"gbatch/internal/control/fit"
	"gbatch/internal/node"
	"gbatch/internal/settings"
	"gbatch/internal/units"
	"gbatch/oci/atomicfile"
	"gbatch/sched"
)

// Config is gctld.yaml. Durations are written as "5 minutes" or "5m". What is marked own may differ
// between several controllers (Agreed).
type Config struct {
	Dir       string `yaml:"dir" own:"true"`    // state: store, keys and certificates
	Socket    string `yaml:"socket" own:"true"` // unix socket for local users; "": gctld.sock in Dir
	Listen    string `yaml:"listen" own:"true"` // TCP address for nodes and other machines, with TLS; empty: none
	Advertise string `yaml:"advertise"`         // HOST:PORT by which they reach it; empty: by Listen and the host's name

	Replica *Replica `yaml:"replica"` // this controller is one of several; absent: the only one

	Munge *Munge `yaml:"munge"` // take MUNGE credentials; absent: take none
	Login *Login `yaml:"login"` // who logs in there gets a token; absent: nobody

	Web Web `yaml:"web"` // the web page

	Admins         Members   `yaml:"admins"`    // may do everything, as root on this machine may
	Operators      Members   `yaml:"operators"` // may act on everyone's jobs and all nodes
	Projects       []Project `yaml:"projects"`
	DefaultProject string    `yaml:"defaultProject"`

	Partitions []Partition `yaml:"partitions,omitempty"` // names for nodes

	Licenses map[string]int64 `yaml:"licenses,omitempty"` // how many of each running jobs may have together

	GangSubnet netip.Prefix `yaml:"gangSubnet"` // of the addresses that ranks of a gang have among themselves, the same in each gang

	Limits Limits `yaml:"limits"`

	Connections Connections `yaml:"connections"`

	Nodes Timing `yaml:"nodes"`

	IDsFrom uint32 `yaml:"idsFrom"` // from here on, each user is given node.IDRange numbers for containers, on all nodes

	ReserveMiB uint64 `yaml:"reserveMiB" own:"true"` // free disk below which no jobs are taken
	Keep       Keep   `yaml:"keep"`
	Logs       Logs   `yaml:"logs"`
	CurvesMiB  int64  `yaml:"curvesMiB" own:"true"` // of what jobs used over their time; 0: that is not kept

	Metrics Metrics `yaml:"metrics"`

	Policy Policy `yaml:"policy"`

	InstanceTypes map[string]InstanceType `yaml:"instanceTypes"` // for gbatch.instanceType
	ImageAliases  map[string]string       `yaml:"imageAliases"`  // for gbatch.imageAlias
	Batch         Batch                   `yaml:"batch"`         // what batch scripts get that do not say it themselves
	Results       string                  `yaml:"results"`       // s3://BUCKET/PREFIX or file:///PATH: where outputs named results:///... go; empty: they are refused

	Mail *Mail `yaml:"mail"` // nil: none is sent

	Webhooks []Webhook `yaml:"webhooks"` // services that are told of jobs

	Notify Notify `yaml:"notify"` // where messages may go whose addresses users name
}

// Munge is how to reach MUNGE.
type Munge struct {
	Socket string `yaml:"socket" own:"true"` // of its daemon; empty: the usual one
}

// Metrics is who may read /metrics, and which names it has beside its own.
type Metrics struct {
	Scrapers Members  `yaml:"scrapers"` // beside operators and admins
	Aliases  []string `yaml:"aliases"`  // slurm: as Slurm's own exporter names them
}

// Limits are what a job gets when it does not say, and may ask at most.
type Limits struct {
	DefaultDuration Seconds `yaml:"defaultDuration"`
	MaxDuration     Seconds `yaml:"maxDuration"`
	DefaultMin      Seconds `yaml:"defaultMinDuration"`
	Grace           Seconds `yaml:"grace"`    // between TERM and KILL
	MaxGrace        Seconds `yaml:"maxGrace"` // the longest that a job may ask instead
	MaxQueued       int     `yaml:"maxQueuedJobs"`

	PerUser PerUser            `yaml:"perUser"`         // of each user but operators and admins
	Users   map[string]PerUser `yaml:"users,omitempty"` // instead of it, by name
}

// Connections bounds those that are open.
type Connections struct {
	Total      int `yaml:"total" own:"true"` // 0: as many as the limit of open files allows
	PerAddress int `yaml:"perAddress"`       // over the network, of those who have not said who they are
}

// maxIDsFrom leaves numbers for 255 users before node.IDsEnd.
const maxIDsFrom = 0x7f000000

// minConnections is how many connections a controller has at least.
const minConnections = 64

// Timing is how long silence of a node is borne.
type Timing struct {
	Suspect Seconds `yaml:"suspectAfter"`
	Timeout Seconds `yaml:"timeout"`
	// Reboot is how long a node may take that was told to reboot.
	Reboot Seconds `yaml:"rebootTimeout"`
}

// Keep is how long ended jobs stay in memory, quick to list. They stay in the
// store for ever.
type Keep struct {
	For   Seconds `yaml:"endedFor"`
	Count int     `yaml:"endedCount"`

	Uploads Seconds `yaml:"uploadsFor"` // how long a directory stays on the controller's disk that no job needs any more
}

// Seconds is a length of time in whole seconds.
type Seconds int64

// UnmarshalText reads what units.ParseDuration does. Parts of a second are
// rounded up.
func (s *Seconds) UnmarshalText(text []byte) error {
	d, err := units.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration: %w", text, err)
	}
	*s = Seconds((d + time.Second - 1) / time.Second)
	return nil
}

// MarshalYAML writes it so that it can be read.
func (s Seconds) MarshalYAML() (any, error) { return fmt.Sprintf("%d seconds", s), nil }

// Millis is a length of time as the controller counts it.
func (s Seconds) Millis() sched.Time { return sched.Time(s) * 1000 }

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		Dir:            "/var/lib/gbatch/ctld",
		Socket:         "/run/gbatch/gctld.sock", // where commands look for it
		Listen:         "127.0.0.1:7077",
		Projects:       []Project{{Name: "default"}},
		DefaultProject: "default",
		GangSubnet:     netip.MustParsePrefix("10.214.0.0/16"),
		Limits:         Limits{DefaultDuration: 14 * 86400, MaxDuration: 28 * 86400, DefaultMin: 7 * 86400, Grace: 30, MaxGrace: 3600, MaxQueued: 2_000_000, PerUser: defaultPerUser()},
		Connections:    Connections{PerAddress: 256},
		Batch:          Batch{Commands: true},
		Nodes:          Timing{Suspect: 75, Timeout: 300, Reboot: 1800},
		IDsFrom:        0x20000000,
		ReserveMiB:     256,
		Keep:           Keep{For: 86400, Count: 100_000, Uploads: 14 * 86400},
		Logs:           defaultLogs(),
		CurvesMiB:      1024,
		Policy:         defaultPolicy(),
	}
}

// Read reads a file over the defaults. The error has all that is wrong with it.
func Read(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Default(), fmt.Errorf("read configuration: %w", err)
	}
	return parse(path, data)
}

// parse reads the text of a file.
func parse(path string, data []byte) (Config, error) {
	c := Default()
	c.Projects = nil // a file that names projects replaces the default one
	file := settings.Read(data, &c)
	if c.Projects == nil {
		c.Projects = Default().Projects
	}
	file.Faults(c.Validate())
	if err := file.Err(); err != nil {
		return c, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// SlurmNames is the set of names that dashboards made for Slurm's own
// exporter ask for, with its labels. What Slurm has and gbatch has not, such as
// jobs that boot a node, is left out: a series that is missing says more than a
// 0 that can never change.
const SlurmNames = "slurm"

// What projects, users with tokens, partitions and nodes may be called.
var (
	NameRule      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	partitionRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:+-]{0,63}$`)
	NodeNameRule  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
)

func (c Config) checkAddresses(bad func(path, format string, a ...any)) {
	if _, _, err := net.SplitHostPort(c.Listen); c.Listen != "" && err != nil {
		bad("listen", "%q: want HOST:PORT, as 192.0.2.1:7077", c.Listen)
	}
	for addr := range strings.SplitSeq(c.Advertise, ",") {
		if _, _, err := net.SplitHostPort(addr); c.Advertise != "" && err != nil {
			bad("advertise", "%q: want HOST:PORT, as 192.0.2.1:7077; of several controllers all, with commas between", addr)
		}
	}
}

// Validate reports every problem, as settings.Faults.
func (c Config) Validate() error {
	var faults settings.Faults
	bad := faults.Add
	if !filepath.IsAbs(c.Dir) {
		bad("dir", "%q must be an absolute path", c.Dir)
	}
	if c.Socket != "" && !filepath.IsAbs(c.Socket) {
		bad("socket", "%q must be an absolute path", c.Socket)
	}
	c.checkAddresses(bad)
	c.Replica.check(bad)
	if c.Munge != nil && c.Munge.Socket != "" && !filepath.IsAbs(c.Munge.Socket) {
		bad("munge.socket", "%q must be an absolute path", c.Munge.Socket)
	}
	c.Admins.check("admins", bad)
	c.Operators.check("operators", bad)
	c.Metrics.Scrapers.check("metrics.scrapers", bad)
	for i, a := range c.Metrics.Aliases {
		if a != SlurmNames {
			bad(fmt.Sprintf("metrics.aliases[%d]", i), "%q: there is %s", a, SlurmNames)
		}
	}
	c.checkProjects(bad)
	c.checkPartitions(bad)
	c.checkLicenses(bad)
	c.checkTables(bad)
	c.checkMessages(bad)
	c.Login.check(bad)
	c.checkWeb(bad)
	if c.Limits.DefaultDuration <= 0 || c.Limits.MaxDuration < c.Limits.DefaultDuration {
		bad("limits", "defaultDuration must be above 0 and not above maxDuration")
	}
	if c.Limits.Grace < 0 || c.Limits.MaxGrace < c.Limits.Grace {
		bad("limits", "grace must not be below 0 or above maxGrace")
	}
	if c.Nodes.Suspect <= 0 || c.Nodes.Timeout <= c.Nodes.Suspect {
		bad("nodes", "suspectAfter must be above 0 and below timeout")
	}
	if c.Nodes.Reboot < 60 || c.Nodes.Reboot > 24*3600 {
		bad("nodes.rebootTimeout", "%v: must be 1 minute to 1 day", c.Nodes.Reboot)
	}
	if c.IDsFrom < node.IDRange || c.IDsFrom%node.IDRange != 0 || c.IDsFrom > maxIDsFrom {
		bad("idsFrom", "%d: must be a multiple of %d, from that to %d", c.IDsFrom, node.IDRange, maxIDsFrom)
	}
	if c.Keep.Count < 1 {
		bad("keep.endedCount", "must be at least 1")
	}
	if c.Keep.Uploads < 3600 {
		bad("keep.uploadsFor", "must be at least 1 hour")
	}
	c.Logs.check(bad)
	if c.CurvesMiB < 0 || c.CurvesMiB > MaxMiB {
		bad("curvesMiB", "%d: want a number of MiB from 0 on", c.CurvesMiB)
	}
	if c.Limits.MaxQueued < 1 {
		bad("limits.maxQueuedJobs", "must be at least 1")
	}
	c.Limits.checkUsers(bad)
	if n := c.Connections.Total; n != 0 && n < minConnections {
		bad("connections.total", "%d: use at least %d, or 0 for as many as the limit of open files allows", n, minConnections)
	}
	if c.Connections.PerAddress < 1 {
		bad("connections.perAddress", "must be at least 1")
	}
	if p := c.GangSubnet; !p.Addr().Is4() || p.Bits() < 8 || p.Bits() > 18 || p != p.Masked() {
		bad("gangSubnet", "%s: want an IPv4 network of /8 to /18 with no bits beyond that, as 10.214.0.0/16", p)
	}
	c.Policy.check(c.Projects, bad)
	return faults.Err()
}

func (c Config) checkMessages(bad func(path, format string, a ...any)) {
	c.Mail.check(bad)
	checkWebhooks(c.Webhooks, bad)
	c.Notify.check(bad)
}

// SocketPath is where local users find the controller.
func (c Config) SocketPath() string {
	if c.Socket != "" {
		return c.Socket
	}
	return filepath.Join(c.Dir, "gctld.sock")
}

// RecentPath is where the controller notes how far its store has come, apart from the store: beside the socket,
// which usually lies in memory.
func (c Config) RecentPath() string { return c.SocketPath() + ".mark" }

// CheckFiles says what in Dir, or in the store, is in the place of a file and none: to open it would wait for ever.
func (c Config) CheckFiles() error {
	for _, dir := range []string{c.Dir, filepath.Join(c.Dir, StoreDir)} {
		pipes, err := atomicfile.Pipes(dir)
		if err != nil {
			return fmt.Errorf("look through the state directory: %w", err)
		}
		if len(pipes) > 0 {
			return fmt.Errorf("%s is a named pipe or a device, where a file was: remove it and put the file back, or restore a backup by `gctld restore`", pipes[0])
		}
	}
	return nil
}

// Rules is what the controller goes by.
func (c Config) Rules() (control.Config, error) {
	policy, acct, err := c.Policy.build(c.Projects)
	if err != nil {
		return control.Config{}, err
	}
	out := control.Config{
		Policy: policy, Accounting: acct, Projects: map[string]ask.Project{},
		DefaultRun: c.Limits.DefaultDuration.Millis(), MaxRun: c.Limits.MaxDuration.Millis(), DefaultMin: c.Limits.DefaultMin.Millis(),
		Grace: c.Limits.Grace.Millis(), MaxGrace: c.Limits.MaxGrace.Millis(), SuspectTime: c.Nodes.Suspect.Millis(), NodeTimeout: c.Nodes.Timeout.Millis(), RebootTime: c.Nodes.Reboot.Millis(),
		KeepEnded: c.Keep.For.Millis(), KeepCount: c.Keep.Count, MaxQueued: c.Limits.MaxQueued,
	}
	out.Partitions = c.partitions()
	out.Policy.Partitions = out.Partitions.Policy()
	out.Policy.Licenses = maps.Clone(c.Licenses)
	out.PerUser, out.Users = c.Limits.quotas()
	for name, q := range c.Policy.QOS {
		if q.RunsAlone {
			out.RunsAlone = append(out.RunsAlone, name)
		}
	}
	slices.Sort(out.RunsAlone)
	for _, p := range c.Projects {
		out.Projects[p.Name] = ask.Project{GID: p.GID, Clusters: p.Clusters, Privileged: p.Privileged, Capabilities: p.Capabilities, HostNetwork: p.HostNetwork, Runtime: p.Runtime}
	}
	return out, nil
}

// Lease is how long a node may go on without contact.
func (c Config) Lease() time.Duration {
	return time.Duration(c.Patience().Lease()) * time.Millisecond
}

// Patience is for how long a node may be silent.
func (c Config) Patience() fit.Patience {
	return fit.Patience{Suspect: c.Nodes.Suspect.Millis(), Lost: c.Nodes.Timeout.Millis()}
}
