package noded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"strings"
	"time"

	"gbatch/internal/api"
)

// inventory is what the node has to give, and its hash. It is made anew for
// each sync, because devices come and go; it costs microseconds.
func (a *Agent) inventory() (*api.Inventory, string) {
	d := a.devices.Inventory()
	inv := &api.Inventory{
		Hostname:  a.host.name,
		DNSName:   a.host.dns,
		Cluster:   a.cfg.ClusterID,
		Version:   a.version,
		CPUs:      a.cores.offered,
		MemBytes:  max(0, totalMemory()-int64(a.cfg.Reserve.Memory)),
		GPUs:      d.GPUs,
		CUDA:      d.CUDA,
		Driver:    d.Driver,
		Features:  a.cfg.Features,
		Simulated: d.Simulated,
	}
	b, err := json.Marshal(inv)
	if err != nil {
		panic(err) // plain data
	}
	sum := sha256.Sum256(b)
	return inv, hex.EncodeToString(sum[:])
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
