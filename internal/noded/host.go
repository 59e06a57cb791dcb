package noded

import (
	"context"
	"net"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/internal/noded/config"
)

// hostIdentity is what the machine calls itself.
type hostIdentity struct {
	name string // as uname says
	dns  string // fully qualified, if it can be told

	address string // by which other nodes reach it, if it can be told

	cgroups cgroups.Host
	base    string // cgroup that ours are made in
}

func lookupHost(cfg *config.Config) (hostIdentity, error) {
	var u unix.Utsname
	name := "localhost"
	if unix.Uname(&u) == nil {
		name = unix.ByteSliceToString(u.Nodename[:])
	}
	cg, err := cgroups.Detect()
	if err != nil {
		return hostIdentity{}, err
	}
	base, err := cgroups.Base("gnoded")
	return hostIdentity{name: name, dns: fullName(name), address: ownAddress(cfg), cgroups: cg, base: base}, err
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

// ownAddress is the address that other nodes can be expected to reach: the one
// configured, or the one from which this machine reaches the controller, or for
// one on this machine any other place. Empty: there is no way out.
func ownAddress(cfg *config.Config) string {
	if cfg.Address != "" {
		return cfg.Address
	}
	to := "192.0.2.1:9" // an address for documentation; nothing is sent
	if u, err := url.Parse(cfg.Controller); err == nil && u.Scheme != "unix" && u.Host != "" {
		to = net.JoinHostPort(u.Hostname(), "9")
	}
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
