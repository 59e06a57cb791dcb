package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Config is what ssh has to be told.
type Config struct {
	Gexec string   // path of the program
	Flags []string // by which it reaches the same controller
	Dir   string   // of the user's key
	Job   string   // a name to write down, for programs that list names; empty: none
}

// The files beside the key.
const (
	knownHosts = "ssh_known_hosts"
	configFile = "ssh_config"
)

// alias is the name of all jobs where keys are looked up.
const alias = "gbatch"

// Text is the configuration, for the ssh of OpenSSH 7.3 and later.
func (c Config) Text() string {
	hosts := "*" + Domain
	if c.Job != "" {
		hosts = c.Job + Domain + " " + hosts
	}
	command := []string{quote(c.Gexec)}
	for _, f := range c.Flags {
		command = append(command, quote(f))
	}
	return fmt.Sprintf(`# Running jobs of gbatch: ssh 12%[1]s, 12-1%[1]s (rank 1 of a job on several nodes),
# 12_3%[1]s (a task of an array), root@12%[1]s (another user of the image).
# Written by gexec --ssh-config.
Host %[2]s
    ProxyCommand %[3]s --ssh-proxy %%h
    User %[4]s
    HostKeyAlias %[5]s
    UserKnownHostsFile "%[6]s"
    StrictHostKeyChecking yes
    UpdateHostKeys no
    PubkeyAuthentication no
    GSSAPIAuthentication no
`, Domain, hosts, strings.Join(command, " "), jobUser, alias, strings.ReplaceAll(filepath.Join(c.Dir, knownHosts), "%", "%%"))
}

// quote writes a word for the shell that ssh gives the command to; ssh itself
// takes % for its own.
func quote(word string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(word, "'", `'\''`), "%", "%%") + "'"
}

// Prepare makes the user's key and the file by which ssh knows it.
func (c Config) Prepare() error {
	if strings.ContainsAny(c.Dir, "\"\n") || strings.ContainsAny(c.Gexec+strings.Join(c.Flags, ""), "\n") {
		return fmt.Errorf("ssh cannot be told of paths with quotes or line breaks: %q, %q", c.Dir, c.Gexec)
	}
	key, err := Key(c.Dir)
	if err != nil {
		return err
	}
	line := append([]byte(alias+" "), ssh.MarshalAuthorizedKey(key.PublicKey())...)
	file := filepath.Join(c.Dir, knownHosts)
	if have, err := os.ReadFile(file); err == nil && bytes.Equal(have, line) {
		return nil
	}
	return replace(file, line, 0o600)
}

// Install writes the configuration and has the user's own include it, at its
// beginning: what stands there first counts. It gives both names.
func (c Config) Install(home string) (own, users string, err error) {
	own, users = filepath.Join(c.Dir, configFile), filepath.Join(home, ".ssh", "config")
	if err := replace(own, []byte(c.Text()), 0o600); err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(filepath.Dir(users), 0o700); err != nil {
		return "", "", err
	}
	file := users
	if to, err := filepath.EvalSymlinks(users); err == nil {
		file = to
	}
	mode := fs.FileMode(0o600)
	have, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	if st, err := os.Stat(file); err == nil {
		mode = st.Mode().Perm()
	}
	include := fmt.Sprintf("Include %q\n", own)
	if bytes.Contains(have, []byte(include)) {
		return own, users, nil
	}
	return own, users, replace(file, append([]byte(include+"\n"), have...), mode)
}
