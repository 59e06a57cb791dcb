package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gbatch/internal/hosttest"
	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

// login is what the private registry asks for. The password is a word that
// occurs nowhere else, so that it can be searched for.
var login = ref.Credentials{Username: "puller", Password: "Xk7-rabbit-horse-9042"}

// registry is a docker-registry process with its files in dir.
type registry struct {
	host  string // 127.0.0.1:port
	dir   string
	creds *ref.Credentials
	cmd   *exec.Cmd
}

func startRegistry(dir string, creds *ref.Credentials) (*registry, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	host, err := hosttest.FreeAddress()
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/data}}\nhttp: {addr: %q}\n", dir, host)
	if creds != nil {
		out, err := exec.Command("htpasswd", "-Bbn", creds.Username, creds.Password).Output()
		if err != nil {
			return nil, fmt.Errorf("make password file: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "htpasswd"), out, 0o600); err != nil {
			return nil, err
		}
		config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %s/htpasswd}}\n", dir)
	}
	file := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	r := &registry{host: host, dir: dir, creds: creds, cmd: exec.Command("docker-registry", "serve", file)}
	if err := startChild(r.cmd); err != nil {
		return nil, fmt.Errorf("start registry: %w", err)
	}
	answers := func() bool {
		resp, err := http.Get("http://" + host + "/v2/")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	}
	if !poll(20*time.Second, answers) {
		r.stop()
		return nil, fmt.Errorf("registry at %s does not answer", host)
	}
	return r, nil
}

func (r *registry) stop() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// push makes an image, puts it there, and returns its reference.
func (r *registry) push(name string, o imagetest.Options) (string, error) {
	img, err := imagetest.Build(o)
	if err != nil {
		return "", err
	}
	to, _, err := ref.Parse(r.host + "/" + name)
	if err != nil {
		return "", err
	}
	_, err = imagetest.Push(to, img, r.creds)
	return r.host + "/" + name, err
}

// poll asks again until ok or the time is over.
func poll(within time.Duration, ok func() bool) bool {
	for end := time.Now().Add(within); ; {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
}
