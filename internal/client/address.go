package client

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gbatch/internal/pki"
)

// systemSocket is where the controller of a machine listens for local users.
const systemSocket = "/run/gbatch/gctld.sock"

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

// endpoint is an address that was understood.
type endpoint struct {
	base   string   // URL that paths are appended to
	socket string   // path of the unix socket; empty: TLS
	pin    string   // of the controller's authority; see package pki
	hosts  []string // HOST:PORT of each of several controllers; nil: there is one
}

// String is the address as a user may write it.
func (e endpoint) String() string {
	if e.socket != "" {
		return "unix://" + e.socket
	}
	if len(e.hosts) > 0 {
		return "https://" + strings.Join(e.hosts, ",")
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
	if first, others, several := strings.Cut(s, ","); several {
		return parseSeveral(s, first, others)
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return endpoint{}, fmt.Errorf("controller address %q: want unix:///path, /path, or https://host:port#sha256=… as `gadm join-string` prints it", s)
	}
	if u.User != nil {
		return endpoint{}, fmt.Errorf("controller address of host %s: it must hold no user or password; put the token into GBATCH_TOKEN or a token file", u.Host)
	}
	if u.Scheme == "http" {
		return endpoint{}, fmt.Errorf("controller address %q: the controller speaks TLS: use the address that `gadm join-string` prints there", s)
	}
	if u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
		return endpoint{}, fmt.Errorf("controller address %q: only the pin may follow the host and port", s)
	}
	if u.Fragment == "" {
		return endpoint{}, fmt.Errorf("controller address %q: it does not say which controller that is: use the address that `gadm join-string` prints there", s)
	}
	if err := pki.CheckPin(u.Fragment); err != nil {
		return endpoint{}, fmt.Errorf("controller address %q: %w", s, err)
	}
	return endpoint{base: u.Scheme + "://" + u.Host, pin: u.Fragment}, nil
}

// parseSeveral reads an address with a comma between the hosts of several controllers, and one
// pin behind the last.
func parseSeveral(s, first, others string) (endpoint, error) {
	others, pin, _ := strings.Cut(others, "#")
	e, err := parseAddress(first + "#" + pin)
	if err != nil {
		return e, err
	}
	e.hosts = []string{strings.TrimPrefix(e.base, "https://")}
	for host := range strings.SplitSeq(others, ",") {
		one, err := parseAddress("https://" + host + "#" + pin)
		if err != nil {
			return e, fmt.Errorf("controller address %q: %w", s, err)
		}
		e.hosts = append(e.hosts, strings.TrimPrefix(one.base, "https://"))
	}
	return e, nil
}

// Pin is the pin in an address; empty: it has none, as that of a socket.
func Pin(s string) string {
	e, err := parseAddress(s)
	if err != nil {
		return ""
	}
	return e.pin
}

// CheckAddress says what is wrong with an address, as parseAddress does.
func CheckAddress(s string) error {
	_, err := parseAddress(s)
	return err
}

func socketPath(s string) (string, bool) {
	if strings.HasPrefix(s, "/") {
		return s, true
	}
	rest, ok := strings.CutPrefix(s, "unix:")
	return strings.TrimPrefix(rest, "//"), ok
}
