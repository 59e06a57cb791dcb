package job

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
)

// Capability is a right that root of a container has not by itself, without
// the prefix CAP_.
type Capability string

// askedCapabilities are those that a job may ask for, of a project and on nodes
// that allow it. In a container with ids of its own they count for what belongs
// to it. All others are root's on the node, which only privileged jobs have.
var askedCapabilities = []Capability{"AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP", "SYS_CHROOT"}

// UsualCapabilities are what root of each container has.
var UsualCapabilities = []Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETPCAP", "SETUID"}

// CheckCapability says what is wrong with the name of a capability that is asked
// for or allowed, or "".
func CheckCapability(s string) string {
	switch c := Capability(s); {
	case slices.Contains(askedCapabilities, c):
		return ""
	case slices.Contains(UsualCapabilities, c):
		return document.Quote(s) + " is what every container has: leave it out"
	}
	var names []string
	for _, c := range askedCapabilities {
		names = append(names, string(c))
	}
	return fmt.Sprintf("must be one of %s, is %s: any other is root's on the node, which only privileged jobs have", strings.Join(names, ", "), document.Quote(s))
}

// Capabilities are what the job asks for beside the usual ones, sorted.
func (s *Spec) Capabilities() []Capability { return s.gbatch().Capabilities }

func readCapabilities(d *decoder, n *node, g *Gbatch) {
	var names []string
	d.strs(n, &names, CheckCapability)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		g.Capabilities = append(g.Capabilities, Capability(name))
	}
}
