package site

import (
	"fmt"
	"net"
	"path/filepath"
)

// Replica says that this controller is one of several, which have all records in common.
type Replica struct {
	Name      string `yaml:"name" own:"true"`      // of this one among them
	Listen    string `yaml:"listen" own:"true"`    // HOST:PORT for the others
	Advertise string `yaml:"advertise" own:"true"` // HOST:PORT by which they reach it; empty: listen

	Patience Seconds `yaml:"patience"` // how long the one that leads may be silent before another one does; 0: 0.4 seconds
}

// ReplicaPath is the directory of the log that several controllers have in common.
func (c Config) ReplicaPath() string { return filepath.Join(c.Dir, ReplicaDir) }

// Alone says why the store may not be opened by this controller alone; nil: it may.
func (c Config) Alone() error {
	if c.Replica == nil {
		return nil
	}
	return fmt.Errorf("this controller is one of several (replica in its configuration), from which it gets all again: `gadm controllers remove %s`, empty %s, and add it again", c.Replica.Name, c.Dir)
}

// Address is where the others reach this controller.
func (r *Replica) Address() string {
	if r.Advertise != "" {
		return r.Advertise
	}
	return r.Listen
}

func (r *Replica) check(bad func(path, format string, a ...any)) {
	if r == nil {
		return
	}
	if !NameRule.MatchString(r.Name) {
		bad("replica.name", "%q: want a name of letters, digits, '.', '_' and '-', another one for each controller", r.Name)
	}
	for key, addr := range map[string]string{"replica.listen": r.Listen, "replica.advertise": r.Advertise} {
		if _, _, err := net.SplitHostPort(addr); err != nil && (addr != "" || key == "replica.listen") {
			bad(key, "%q: want HOST:PORT, as 192.0.2.1:7078", addr)
		}
	}
	if r.Patience < 0 || r.Patience > 60 {
		bad("replica.patience", "%d seconds: want 1 to 60", r.Patience)
	}
	host, _, err := net.SplitHostPort(r.Address())
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		bad("replica.advertise", "the other controllers cannot reach %q: give the address by which they do", r.Address())
	}
}
