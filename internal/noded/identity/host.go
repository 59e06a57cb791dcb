package identity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

// Host is what the machine calls itself, and where the node has its cgroups.
type Host struct {
	Name    string // as uname says
	DNS     string // fully qualified, if it can be told
	Address string // by which other nodes reach it, if it can be told

	Cgroups cgroups.Host
	prefix  string // cgroup that holds every cgroup of this node
}

// LookupHost asks the machine.
func LookupHost(cfg *config.Config) (Host, error) {
	var u unix.Utsname
	name := "localhost"
	if unix.Uname(&u) == nil {
		name = unix.ByteSliceToString(u.Nodename[:])
	}
	cg, err := cgroups.Detect()
	if err != nil {
		return Host{}, err
	}
	base, err := cgroups.Base("gnoded")
	return Host{Name: name, DNS: fullName(name), Address: OwnAddress(cfg), Cgroups: cg, prefix: path.Join(base, "gbatch", cfg.Name)}, err
}

// CgroupPrefix holds every cgroup of this node; its name keeps several daemons
// of one machine apart.
func (h *Host) CgroupPrefix() string { return h.prefix }

// GuardPath is the cgroup of the process that ends ranks when nobody else does.
func (h *Host) GuardPath() string { return path.Join(h.Base(), "gbatch-guard", path.Base(h.prefix)) }

// Base is the cgroup that the daemon may make groups in.
func (h *Host) Base() string { return path.Dir(path.Dir(h.prefix)) }

// CgroupPath is the cgroup of a rank.
func (h *Host) CgroupPath(id job.RankID) string { return h.prefix + "/" + id.String() }

// MakeGroups makes the cgroups that ranks' groups are made in, so that they stay while the daemon runs: another one of this
// machine that stops would remove the one that both share, just when a rank's is made in it.
func (h *Host) MakeGroups() error {
	for _, point := range h.Cgroups.Mounts {
		dir := filepath.Join(point, h.prefix)
		err := os.MkdirAll(dir, 0o755)
		for tries := 0; errors.Is(err, os.ErrNotExist) && tries < 100; tries++ { // it was removed in between
			err = os.MkdirAll(dir, 0o755)
		}
		if err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
	}
	return nil
}

// RemoveGroups removes the cgroups that ranks' groups are made in, so that a
// node that is idle leaves nothing when it stops. One that is not empty stays:
// a container lives in it, or another daemon of this machine uses it.
func (h *Host) RemoveGroups() {
	for _, point := range h.Cgroups.Mounts {
		dir := filepath.Join(point, h.prefix)
		if unix.Rmdir(dir) == nil {
			_ = unix.Rmdir(filepath.Dir(dir))
		}
	}
}

// lookupTimeout bounds the question for the machine's full name at start.
const lookupTimeout = 2 * time.Second

// fullName is the machine's name with its domain, or the bare name where no
// name service knows one.
func fullName(name string) string {
	if strings.Contains(name, ".") {
		return name
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	cname, err := net.DefaultResolver.LookupCNAME(ctx, name)
	if cname = strings.TrimSuffix(cname, "."); err == nil && strings.HasPrefix(cname, name+".") {
		return cname
	}
	return name
}

// OwnAddress is the address that other nodes can be expected to reach: the one
// configured, or the one from which this machine reaches the controller, or for
// one on this machine any other place. Empty: there is no way out.
func OwnAddress(cfg *config.Config) string {
	if cfg.Address != "" {
		return cfg.Address
	}
	if u, err := url.Parse(cfg.Controller); err == nil && u.Scheme != "unix" && u.Host != "" {
		if a := addressTo(net.JoinHostPort(u.Hostname(), "9")); a != "" {
			return a
		}
	}
	return addressTo("192.0.2.1:9") // an address for documentation; nothing is sent
}

// addressTo is the address from which the machine reaches another one; empty: it
// does not, or that is itself.
func addressTo(to string) string {
	conn, err := net.DialTimeout("udp", to, lookupTimeout)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if a, ok := conn.LocalAddr().(*net.UDPAddr); ok && !a.IP.IsLoopback() {
		return a.IP.String()
	}
	return ""
}
