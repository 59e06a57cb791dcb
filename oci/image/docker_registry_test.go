package image

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

// startDockerRegistry runs the distribution registry with a login, or skips.
func startDockerRegistry(t *testing.T, creds ref.Credentials) (host string) {
	t.Helper()
	for _, tool := range []string{"docker-registry", "htpasswd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed (packages docker-registry and apache2-utils)", tool)
		}
	}
	dir := t.TempDir()
	users, err := exec.Command("htpasswd", "-Bbn", creds.Username, creds.Password).Output()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "htpasswd", string(users))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host = free.Addr().String()
	free.Close()
	write(t, dir, "config.yml", fmt.Sprintf(`version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %q}}
http: {addr: %q}
auth: {htpasswd: {realm: test, path: %q}}
`, filepath.Join(dir, "data"), host, filepath.Join(dir, "htpasswd")))
	server := exec.Command("docker-registry", "serve", filepath.Join(dir, "config.yml"))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	waitFor(t, func() bool {
		answer, err := http.Get("http://" + host + "/v2/")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})
	return host
}

// The whole way with a real registry: a reference as users write it, with a
// deploy token in front.
func TestDockerRegistryWithLogin(t *testing.T) {
	token := ref.Credentials{Username: "gitlab+deploy-token-3", Password: "S:e/cr@t"}
	host := startDockerRegistry(t, token)
	target, creds, err := ref.Parse(token.Username + ":" + token.Password + "@" + host + "/group/sample:nvidia-smi")
	if err != nil || *creds != token {
		t.Fatal(creds, err)
	}
	img := build(t, imagetest.Options{Busybox: true})
	digest, err := imagetest.Push(target, img, creds)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Config{})
	got := pull(t, s, target, creds)
	if got.Digest != digest || got.Config.Cmd[0] != "/bin/sh" {
		t.Errorf("got %s with %+v", got.Digest, got.Config)
	}
	out, err := exec.Command("chroot", mount(t, got), "/bin/sh", "-c", "id -un; stat -c %a /tmp").CombinedOutput()
	if err != nil || string(out) != "root\n1777\n" {
		t.Errorf("in the image: %q, %v", out, err)
	}

	wrong := &ref.Credentials{Username: token.Username, Password: "WRONGSECRET"}
	for _, r := range []ref.Ref{target, target.WithDigest(digest)} {
		_, err = s.Pull(t.Context(), PullRequest{Ref: r, Credentials: wrong})
		e := wantError(t, err, Denied, "login refused by registry "+host+" for user gitlab+deploy-token-3")
		if strings.Contains(fmt.Sprintf("%+v %v", e, e.cause), "SECRET") {
			t.Errorf("shows the password: %+v", e)
		}
		_, err = s.Pull(t.Context(), PullRequest{Ref: r})
		wantError(t, err, Denied, "registry "+host+" wants a login")
	}
	missing := parse(t, host+"/group/sample:none")
	_, err = s.Pull(t.Context(), PullRequest{Ref: missing, Credentials: creds})
	wantError(t, err, NotFound, "no such tag at registry "+host)
}
