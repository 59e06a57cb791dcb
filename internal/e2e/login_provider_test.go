package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gbatch/internal/hosttest"
)

// providers is where scripts/providers puts the identity providers.
const providers = "../../build/providers"

// startNodeProvider starts node's oidc-provider, where anybody is whom they say.
func startNodeProvider(t *testing.T, page string) (*exec.Cmd, string) {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join(providers, "node_modules"))
	if err == nil {
		_, err = os.Stat(modules)
	}
	if err != nil {
		t.Skipf("SKIPPED: no identity provider to log in at, run scripts/providers: %v", err)
	}
	cmd := exec.Command("node", "testdata/login/provider.mjs", modules, page)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	startProvider(t, cmd)
	for scan := bufio.NewScanner(out); scan.Scan(); {
		if strings.HasPrefix(scan.Text(), "http://127.0.0.1:") {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return cmd, scan.Text()
		}
	}
	t.Fatal("the identity provider does not say where it listens")
	return nil, ""
}

const dexConfig = `issuer: http://%[1]s/dex
storage: {type: memory}
web: {http: %[1]q}
staticClients:
- {id: gbatch, name: gbatch, public: true, redirectURIs: [%[2]q, /dex/device/callback, /device/callback]}
connectors:
- {type: mockCallback, id: mock, name: Mock}
`

// startDex starts Dex, to which everybody is Kilgore Trout.
func startDex(t *testing.T, page string) (*exec.Cmd, string) {
	t.Helper()
	dex := filepath.Join(providers, "dex")
	if _, err := os.Stat(dex); err != nil {
		t.Skipf("SKIPPED: no Dex to log in at, run scripts/providers: %v", err)
	}
	at, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dex.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, dexConfig, at, page), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dex, "serve", file)
	startProvider(t, cmd)
	issuer := "http://" + at + "/dex"
	eventually(t, "Dex answers", func() bool {
		resp, err := http.Get(issuer + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
	return cmd, issuer
}

// startProvider starts an identity provider, which the test's end ends.
func startProvider(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := startChild(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

var (
	pageForm  = regexp.MustCompile(`(?s)<form([^>]*)>(.*?)</form>`)
	formAttr  = regexp.MustCompile(`\baction="([^"]*)"`)
	formInput = regexp.MustCompile(`<input[^>]*\bname="([^"]*)"[^>]*\bvalue="([^"]*)"`)
)

// browse fills in the first form of each page, and all that it leads to.
func browse(t *testing.T, page, user string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar, Timeout: patience}
	resp, err := c.Get(page)
	for range 8 {
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		form := pageForm.FindSubmatch(body)
		if form == nil {
			return
		}
		to := resp.Request.URL
		if action := formAttr.FindSubmatch(form[1]); action != nil {
			if to, err = to.Parse(string(action[1])); err != nil {
				t.Fatal(err)
			}
		}
		fields := url.Values{"login": {user}, "password": {"x"}}
		for _, in := range formInput.FindAllSubmatch(form[2], -1) {
			fields.Set(string(in[1]), string(in[2]))
		}
		resp, err = c.PostForm(to.String(), fields)
	}
	t.Fatal("the identity provider asks again and again")
}
