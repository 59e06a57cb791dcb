package rank

import (
	"os"
	"path"
	"strings"

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
	hostfile string // the text; empty: it has none
	script   string // likewise
}

// files are all that the recipe's program finds in place of its image's.
func (r *recipe) files() ([]oci.File, error) {
	list, err := names{r.net, r.hostname(), r.hostfile(), r.order.Spec.Script(r.order.id.Rank)}.files(r.allMounts())
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
			text = n.net.Hosts(text, n.hostname)
		case name == "hosts":
			text = withHost(text, n.hostname)
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
