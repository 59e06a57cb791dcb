package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
)

// ConfigFile is the site's configuration for all clients of a machine.
const ConfigFile = "/etc/gbatch/client.yaml"

// Options are what Find starts from. What is empty is found.
type Options struct {
	Address   string // as given by flag
	TokenFile string // as given by flag
	Config    string // path; empty: ConfigFile
}

// config is the content of the configuration file. Tokens do not go there:
// everyone reads it.
type config struct {
	Controller string `yaml:"controller"`
	TokenFile  string `yaml:"tokenFile"`
	CA         string `yaml:"ca"`
}

// Find makes a Client for the controller that this user means. The address is
// the first of: the option, GBATCH_CONTROLLER, `controller` in the
// configuration file, the development controller's socket, and SystemSocket if
// only that answers. The token is GBATCH_TOKEN, or the content of the option's
// file, GBATCH_TOKEN_FILE, gbatch/token in the user's configuration directory
// or `tokenFile` of the configuration. Nothing is connected yet.
func Find(o Options) (*Client, error) {
	cfg, err := readConfig(o.Config)
	if err != nil {
		return nil, err
	}
	c := &Client{Address: findAddress(o, cfg)}
	if c.peer, err = parseAddress(c.Address); err != nil {
		return nil, err
	}
	if c.Token, err = findToken(o, cfg); err != nil {
		return nil, err
	}
	if ca := first(os.Getenv("GBATCH_CA"), cfg.CA); ca != "" {
		if c.TLS, err = trust(ca); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func readConfig(path string) (config, error) {
	var cfg config
	explicit := path != ""
	if !explicit {
		path = ConfigFile
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		return cfg, nil
	}
	if err != nil {
		return cfg, fmt.Errorf("read client configuration: %w", err)
	}
	if err := yaml.UnmarshalWithOptions(data, &cfg, yaml.Strict()); err != nil {
		text := strings.TrimSpace(yaml.FormatError(err, false, false))
		return cfg, fmt.Errorf("read client configuration %s: %s; its keys are controller, tokenFile and ca", path, text)
	}
	return cfg, nil
}

func findAddress(o Options, cfg config) string {
	if a := first(o.Address, os.Getenv("GBATCH_CONTROLLER"), cfg.Controller); a != "" {
		return a
	}
	dev := DevSocket()
	if answers(SystemSocket) && !answers(dev) {
		return SystemSocket
	}
	return dev
}

// answers says that something listens on a socket. A development controller
// that was killed leaves its socket behind.
func answers(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func findToken(o Options, cfg config) (string, error) {
	if o.TokenFile == "" {
		if t := os.Getenv("GBATCH_TOKEN"); t != "" {
			return checkToken(t, "GBATCH_TOKEN")
		}
	}
	if file := first(o.TokenFile, os.Getenv("GBATCH_TOKEN_FILE")); file != "" {
		return readToken(file)
	}
	if dir, err := os.UserConfigDir(); err == nil {
		token, err := readToken(filepath.Join(dir, "gbatch", "token"))
		if !errors.Is(err, fs.ErrNotExist) {
			return token, err
		}
	}
	if cfg.TokenFile != "" {
		token, err := readToken(cfg.TokenFile)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return "", nil // the site's default, and this user has another way in or none
		}
		return token, err
	}
	return "", nil
}

// readToken reads a token file. One that everyone can read is refused: its
// token must be taken as known.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return "", fmt.Errorf("token file %s is open to everyone on this machine; get a new token, and chmod 600 the file", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	return checkToken(strings.TrimSpace(string(data)), "file "+path)
}

func checkToken(token, where string) (string, error) {
	if token == "" {
		return "", fmt.Errorf("token in %s is empty", where)
	}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return "", fmt.Errorf("token in %s holds a character that no token has", where)
		}
	}
	return token, nil
}

func trust(file string) (*tls.Config, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read certificate authority %s: it holds no PEM certificate", file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
