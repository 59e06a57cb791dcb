package noded

import (
	"context"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
)

// hostIdentity is what the machine calls itself.
type hostIdentity struct {
	name string // as uname says
	dns  string // fully qualified, if it can be told

	cgroups cgroups.Host
	base    string // cgroup that ours are made in
}

func lookupHost() (hostIdentity, error) {
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
	return hostIdentity{name: name, dns: fullName(name), cgroups: cg, base: base}, err
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
