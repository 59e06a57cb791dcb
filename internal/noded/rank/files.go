package rank

import (
	"os"
	"path"

	"gbatch/internal/job"
	"gbatch/internal/noded/network"
	"gbatch/oci"
	"gbatch/oci/draft"
)

// hostFiles are the files of /etc by which programs find names and hosts. Each
// rank gets its own copies, so that a job may change its own.
var hostFiles = []string{"hosts", "resolv.conf"}

// names are what a rank's programs find of hosts.
type names struct {
	net      *network.Attachment // nil: the host's network
	hostname string
	order    *order
	host     string // the node's address
	hostfile string // the text; empty: it has none
	script   string // likewise
}

// files are all that the recipe's program finds in place of its image's.
func (r *recipe) files() ([]oci.File, error) {
	n := names{r.net, r.hostname(), &r.order, r.node.Host.Address, r.hostfile(), r.order.Spec.Script(r.order.id.Rank)}
	list, err := n.files(r.allMounts())
	return append(ownFiles(r.binds.files), list...), err
}

// files are what a rank finds in place of its image's, but where its job mounts
// something.
func (n names) files(mounts []draft.Mount) ([]oci.File, error) {
	taken := map[string]bool{}
	for _, m := range mounts {
		taken[path.Clean(m.Target)] = true
	}
	var list []oci.File
	for _, name := range hostFiles {
		at := "/etc/" + name
		if taken[at] {
			continue
		}
		text, err := os.ReadFile(at)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		switch {
		case name == "hosts" && n.net != nil:
			own := n.order.Spec.Hosts(int(n.order.id.Rank))
			if len(own) == 0 {
				own = []string{n.hostname}
			}
			text = n.net.Hosts(text, own)
		case name == "hosts":
			text = network.NodeHosts(text, n.hostname, &n.order.RunOrder, n.host)
		case n.net != nil:
			text = n.net.ResolvConf()
		}
		list = append(list, oci.File{Path: at, Text: string(text)})
	}
	if n.hostfile != "" {
		list = append(list, oci.File{Path: job.HostfilePath, Text: n.hostfile})
	}
	if n.script != "" {
		list = append(list, oci.File{Path: job.ScriptPath, Text: n.script, Program: true})
	}
	return list, nil
}
