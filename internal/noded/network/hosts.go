package network

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"gbatch/internal/api"
)

// NodeHosts is /etc/hosts of a rank in its node's network: the node's own with its name, and
// before that the ranks that the job names. The address is the node's.
func NodeHosts(text []byte, name string, o *api.RunOrder, address string) []byte {
	var b bytes.Buffer
	for i := range max(1, len(o.Peers)) {
		names := o.Spec.Hosts(i)
		if len(names) == 0 {
			continue
		}
		if len(o.Peers) > 0 {
			address = o.Peers[i].Address
		}
		fmt.Fprintf(&b, "%s\t%s\n", cmp.Or(address, "127.0.1.1"), strings.Join(names, " "))
	}
	return append(b.Bytes(), withHost(text, name)...)
}

// withHost makes sure that the host's own name can be resolved: launchers of
// parallel programs look it up.
func withHost(hosts []byte, name string) []byte {
	for line := range strings.Lines(string(hosts)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		for _, f := range fields[min(1, len(fields)):] {
			if strings.EqualFold(f, name) {
				return hosts
			}
		}
	}
	text := strings.TrimRight(string(hosts), "\n")
	if !strings.Contains(text, "localhost") {
		text += "\n127.0.0.1\tlocalhost"
	}
	return []byte(strings.TrimLeft(text+"\n127.0.1.1\t"+name+"\n", "\n"))
}
