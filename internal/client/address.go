package client

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// SystemSocket is where the controller of a machine listens for local users.
const SystemSocket = "/run/gbatch/gctld.sock"

// maxSocketPath is the longest path that the kernel takes for a unix socket.
const maxSocketPath = 107

// DevDir is the directory of the development controller (`gctld dev`) of this
// user: gbatch/dev below XDG_STATE_HOME, below /var/lib for root, and else
// below ~/.local/state. Its socket there is gctld.sock.
func DevDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "gbatch", "dev")
	}
	home, err := os.UserHomeDir()
	if os.Geteuid() == 0 || err != nil {
		return "/var/lib/gbatch/dev"
	}
	return filepath.Join(home, ".local", "state", "gbatch", "dev")
}

// DevSocket is the socket of the development controller.
func DevSocket() string { return filepath.Join(DevDir(), "gctld.sock") }

// endpoint is an address that was understood.
type endpoint struct {
	base   string // URL that paths are appended to
	socket string // path of the unix socket; empty: TCP
}

// String is the address as a user may write it.
func (e endpoint) String() string {
	if e.socket != "" {
		return "unix://" + e.socket
	}
	return e.base
}

func parseAddress(s string) (endpoint, error) {
	if path, ok := socketPath(s); ok {
		if !filepath.IsAbs(path) {
			return endpoint{}, fmt.Errorf("controller address %q: the socket needs an absolute path, as unix:///run/gbatch/gctld.sock", s)
		}
		if len(path) > maxSocketPath {
			return endpoint{}, fmt.Errorf("controller address %q: a socket's path has at most %d bytes, this one has %d", s, maxSocketPath, len(path))
		}
		return endpoint{base: "http://gctld", socket: path}, nil
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return endpoint{}, fmt.Errorf("controller address %q: want unix:///path, /path, http://host:port or https://host:port", s)
	}
	if u.User != nil {
		return endpoint{}, fmt.Errorf("controller address of host %s: it must hold no user or password; put the token into GBATCH_TOKEN or a token file", u.Host)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return endpoint{}, fmt.Errorf("controller address %q: nothing may follow the path", s)
	}
	return endpoint{base: u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/")}, nil
}

func socketPath(s string) (string, bool) {
	if strings.HasPrefix(s, "/") {
		return s, true
	}
	rest, ok := strings.CutPrefix(s, "unix:")
	return strings.TrimPrefix(rest, "//"), ok
}
