package client

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"gbatch/internal/settings"
)

// configFile is the site's configuration for all clients of a machine.
const configFile = "/etc/gbatch/client.yaml"

// Options are what Find starts from. What is empty is found.
type Options struct {
	Address   string // as given by flag
	TokenFile string // as given by flag
	Config    string // path; empty: the user's file over ConfigFile
}

// config is the content of a configuration file. Tokens do not go there:
// everyone reads it.
type config struct {
	Controller  string `yaml:"controller"`
	TokenFile   string `yaml:"tokenFile"`
	Auth        string `yaml:"auth"`        // token, munge
	MungeSocket string `yaml:"mungeSocket"` // of its daemon; empty: the usual one
}

// Find makes a Client for the controller that this user means. The address is
// the first of: the option, GBATCH_CONTROLLER, `controller` in
// gbatch/client.yaml in the user's configuration directory or in ConfigFile,
// the development controller's socket, and SystemSocket if only that answers.
// Who calls is said by a token: GBATCH_TOKEN, or the content of the option's
// file, GBATCH_TOKEN_FILE, gbatch/token in the user's configuration directory
// or `tokenFile` of the configuration; or, with GBATCH_AUTH or `auth` munge, by
// MUNGE unless the option or the environment has a token. On a local socket the
// kernel says it: the files there are not looked at, in whatever state they are.
// Nothing is connected yet.
func Find(o Options) (*Client, error) {
	cfg, err := readConfigs(o.Config)
	if err != nil {
		return nil, err
	}
	c := &Client{Address: findAddress(o, cfg)}
	if c.peer, err = parseAddress(c.Address); err != nil {
		return nil, err
	}
	switch auth := cmp.Or(os.Getenv("GBATCH_AUTH"), cfg.Auth, "token"); auth {
	case "token":
		c.Token, err = findToken(o, cfg, c.peer.socket != "")
		return c, err
	case "munge":
		c.Munge = &Munge{Socket: cmp.Or(os.Getenv("GBATCH_MUNGE_SOCKET"), cfg.MungeSocket)}
		c.Token, err = givenToken(o)
		return c, err
	default:
		return nil, fmt.Errorf("auth %q (from GBATCH_AUTH or the client configuration): want token or munge", auth)
	}
}

// readConfigs reads the one file that is named, or the user's over the site's.
func readConfigs(path string) (config, error) {
	var cfg config
	if path != "" {
		return cfg, readConfig(path, &cfg)
	}
	paths := []string{configFile}
	if dir, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(dir, "gbatch", "client.yaml"))
	}
	for _, p := range paths {
		if err := readConfig(p, &cfg); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return cfg, err
		}
	}
	return cfg, nil
}

func readConfig(path string, cfg *config) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read client configuration: %w", err)
	}
	if err := settings.Read(data, cfg).Err(); err != nil {
		return fmt.Errorf("client configuration %s: %w", path, err)
	}
	return nil
}

func findAddress(o Options, cfg config) string {
	if a := cmp.Or(o.Address, os.Getenv("GBATCH_CONTROLLER"), cfg.Controller); a != "" {
		return a
	}
	dev := filepath.Join(DevDir(), "gctld.sock")
	if answers(systemSocket) && !answers(dev) {
		return systemSocket
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

// givenToken is the token that was given for this call: by flag or in the
// environment.
func givenToken(o Options) (string, error) {
	if o.TokenFile == "" {
		if t := os.Getenv("GBATCH_TOKEN"); t != "" {
			return checkToken(t, "GBATCH_TOKEN")
		}
	}
	if file := cmp.Or(o.TokenFile, os.Getenv("GBATCH_TOKEN_FILE")); file != "" {
		return readToken(file)
	}
	return "", nil
}

// TokenFile is the file of this user's token.
func TokenFile() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "gbatch", "token"), err
}

func findToken(o Options, cfg config, local bool) (string, error) {
	if token, err := givenToken(o); token != "" || err != nil || local {
		return token, err
	}
	if path, err := TokenFile(); err == nil {
		token, err := readToken(path)
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
		return "", fmt.Errorf("token in %s is empty; `gadm token create --save` on the controller's machine writes one", where)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("token in %s holds a character that no token has", where)
	}
	return token, nil
}
