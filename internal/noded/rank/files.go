package rank

import (
	"os"
	"path/filepath"
	"strings"

	"gbatch/internal/noded/network"
	"gbatch/oci/userns"
)

// hostFiles are the files by which programs find names and hosts. Each rank
// gets its own copies, so that a job may change its own.
var hostFiles = []string{"hosts", "resolv.conf"}

// hostfile and script lie beside them, for ranks that have one.
const (
	hostfile = "hostfile"
	script   = "slurm_script"
)

// names are what a rank's programs find of hosts.
type names struct {
	net      *network.Attachment // nil: the host's network
	hostname string
	hostfile string // the text; empty: it has none
	script   string // likewise
}

// writeFiles copies them to where the container may write, with the rank's own
// name in them. They belong to root of the container.
func writeFiles(top string, n names, ids userns.Map) error {
	dir := filepath.Join(top, "etc")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, name := range hostFiles {
		text, err := os.ReadFile("/etc/" + name)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		switch {
		case name == "hosts" && n.net != nil:
			text = n.net.Hosts(text, n.hostname)
		case name == "hosts":
			text = withHost(text, n.hostname)
		case n.net != nil:
			text = n.net.ResolvConf()
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	if n.hostfile != "" {
		if err := os.WriteFile(filepath.Join(dir, hostfile), []byte(n.hostfile), 0o644); err != nil {
			return err
		}
	}
	if n.script != "" {
		if err := os.WriteFile(filepath.Join(dir, script), []byte(n.script), 0o755); err != nil {
			return err
		}
	}
	return giveToRoot(dir, ids)
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
