package ctld

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/sched"
)

// Config is gctld.yaml. Durations are written as in job files: "5 minutes".
type Config struct {
	Dir    string `yaml:"dir"`    // state: store, keys and tokens
	Socket string `yaml:"socket"` // unix socket for local users; "": gctld.sock in Dir
	Listen string `yaml:"listen"` // TCP address for nodes and other machines; empty: none

	// AllowPlainRemote permits Listen on an address that other machines reach.
	// Tokens and jobs then cross the network readable: only on a network that
	// is trusted.
	AllowPlainRemote bool `yaml:"allowPlainRemote"`

	Operators      []string  `yaml:"operators"` // unix users with the admin role, besides root
	Projects       []Project `yaml:"projects"`
	DefaultProject string    `yaml:"defaultProject"`

	Limits Limits `yaml:"limits"`
	Nodes  Timing `yaml:"nodes"`

	ReserveMiB uint64 `yaml:"reserveMiB"` // free disk below which no jobs are taken
	Keep       Keep   `yaml:"keep"`

	Policy PolicyConfig `yaml:"policy"`
}

// Project is one project: who is billed.
type Project struct {
	Name    string   `yaml:"name"`
	GID     int      `yaml:"gid"`     // group of its storage
	Members []string `yaml:"members"` // unix users; empty: everyone
	Shares  int64    `yaml:"shares"`  // of the cluster, relative to the other projects of the same parent; 0: 1

	Parent     string           `yaml:"parent"`     // another project: its share is divided among those below it and its own users
	UserShares map[string]int64 `yaml:"userShares"` // of the project, by user; 1 for those that are not named
	Budget     int64            `yaml:"budget"`     // GPU-minutes, as billed, that it and those below it may use in all; 0: no bound
}

// Limits are what a job gets when it does not say, and may ask at most.
type Limits struct {
	DefaultDuration Seconds `yaml:"defaultDuration"`
	MaxDuration     Seconds `yaml:"maxDuration"`
	DefaultMin      Seconds `yaml:"defaultMinDuration"`
	Grace           Seconds `yaml:"grace"` // between TERM and KILL
	MaxQueued       int     `yaml:"maxQueuedJobs"`
}

// Timing is how long silence of a node is borne.
type Timing struct {
	Suspect Seconds `yaml:"suspectAfter"`
	Timeout Seconds `yaml:"timeout"`
}

// Keep is how long ended jobs stay in memory, quick to list. They stay in the
// store for ever.
type Keep struct {
	For   Seconds `yaml:"endedFor"`
	Count int     `yaml:"endedCount"`
}

// Seconds is a duration in the grammar of job files.
type Seconds int64

// UnmarshalYAML reads "90 minutes", or 0 for what can be switched off.
func (s *Seconds) UnmarshalYAML(b []byte) error {
	var text string
	if err := yaml.Unmarshal(b, &text); err != nil {
		return err
	}
	if text == "0" {
		*s = 0
		return nil
	}
	d, err := job.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("duration %q: %w", text, err)
	}
	*s = Seconds(d)
	return nil
}

func (s Seconds) millis() sched.Time { return sched.Time(s) * 1000 }

// DefaultConfig is the configuration of an empty file.
func DefaultConfig() Config {
	return Config{
		Dir:            "/var/lib/gbatch/ctld",
		Socket:         "/run/gbatch/gctld.sock", // where commands look for it
		Listen:         "127.0.0.1:7077",
		Projects:       []Project{{Name: "default"}},
		DefaultProject: "default",
		Limits:         Limits{DefaultDuration: 14 * 86400, MaxDuration: 28 * 86400, DefaultMin: 7 * 86400, Grace: 30, MaxQueued: 2_000_000},
		Nodes:          Timing{Suspect: 75, Timeout: 300},
		ReserveMiB:     256,
		Keep:           Keep{For: 86400, Count: 100_000},
		Policy:         defaultPolicy(),
	}
}

// ReadConfig reads a file over the defaults. Unknown keys and values of the
// wrong type are errors that name the line.
func ReadConfig(path string) (Config, error) {
	c := DefaultConfig()
	data, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read configuration: %w", err)
	}
	c.Projects = nil // a file that names projects replaces the default one
	if err := yaml.UnmarshalWithOptions(data, &c, yaml.Strict()); err != nil {
		return c, fmt.Errorf("configuration %s: %s", path, strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	if c.Projects == nil {
		c.Projects = DefaultConfig().Projects
	}
	if err := c.Validate(); err != nil {
		return c, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Validate reports every problem.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if !filepath.IsAbs(c.Dir) {
		bad("dir: %q must be an absolute path", c.Dir)
	}
	if c.Socket != "" && !filepath.IsAbs(c.Socket) {
		bad("socket: %q must be an absolute path", c.Socket)
	}
	c.checkListen(bad)
	seen := map[string]bool{}
	for i, p := range c.Projects {
		switch {
		case !nameRule.MatchString(p.Name):
			bad("projects[%d].name: %q: use letters, digits, '.', '_' and '-', at most 64", i, p.Name)
		case seen[p.Name]:
			bad("projects[%d].name: %q is there twice", i, p.Name)
		}
		seen[p.Name] = true
		if p.GID < 0 {
			bad("projects[%d].gid: %d: must not be negative", i, p.GID)
		}
		if p.Shares < 0 {
			bad("projects[%d].shares: %d: must not be negative", i, p.Shares)
		}
	}
	if c.DefaultProject != "" && !seen[c.DefaultProject] {
		bad("defaultProject: %q is not among the projects", c.DefaultProject)
	}
	if c.Limits.DefaultDuration <= 0 || c.Limits.MaxDuration < c.Limits.DefaultDuration {
		bad("limits: defaultDuration must be above 0 and not above maxDuration")
	}
	if c.Nodes.Suspect <= 0 || c.Nodes.Timeout <= c.Nodes.Suspect {
		bad("nodes: suspectAfter must be above 0 and below timeout")
	}
	if c.Keep.Count < 1 || c.Limits.MaxQueued < 1 {
		bad("keep.endedCount and limits.maxQueuedJobs must be at least 1")
	}
	if _, _, err := c.Policy.build(c.Projects); err != nil {
		bad("policy: %w", err)
	}
	return errors.Join(errs...)
}

func (c Config) checkListen(bad func(string, ...any)) {
	if c.Listen == "" {
		return
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		bad("listen: %q: want HOST:PORT, as 127.0.0.1:7077", c.Listen)
		return
	}
	if ip := net.ParseIP(host); (ip == nil || !ip.IsLoopback()) && host != "localhost" && !c.AllowPlainRemote {
		bad("listen: %s can be reached from other machines and the connection is not encrypted: use a loopback address with a tunnel, or set allowPlainRemote: true on a trusted network", c.Listen)
	}
}

func (c Config) project(name string) (Project, bool) {
	i := slices.IndexFunc(c.Projects, func(p Project) bool { return p.Name == name })
	if i < 0 {
		return Project{}, false
	}
	return c.Projects[i], true
}

func (c Config) socket() string {
	if c.Socket != "" {
		return c.Socket
	}
	return filepath.Join(c.Dir, "gctld.sock")
}

func (c Config) control() (control.Config, error) {
	policy, acct, err := c.Policy.build(c.Projects)
	if err != nil {
		return control.Config{}, err
	}
	out := control.Config{
		Policy: policy, Accounting: acct, Projects: map[string]control.Project{},
		DefaultRun: c.Limits.DefaultDuration.millis(), MaxRun: c.Limits.MaxDuration.millis(), DefaultMin: c.Limits.DefaultMin.millis(),
		Grace: c.Limits.Grace.millis(), SuspectTime: c.Nodes.Suspect.millis(), NodeTimeout: c.Nodes.Timeout.millis(),
		KeepEnded: c.Keep.For.millis(), KeepCount: c.Keep.Count, MaxQueued: c.Limits.MaxQueued,
	}
	for _, p := range c.Projects {
		out.Projects[p.Name] = control.Project{GID: p.GID, Members: p.Members}
	}
	return out, nil
}

// lease is how long a node may go on without contact: shorter than the
// controller's own patience, so that a rank has ended on a node that is cut
// off before it can be started anywhere else.
func (c Config) lease() time.Duration {
	return time.Duration(c.Nodes.Timeout) * time.Second * 8 / 10
}
