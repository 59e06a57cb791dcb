package e2e

import (
	"bufio"
	"encoding/json"
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
	"time"
)

// TestLogin logs a user in at a real identity provider, by its pages: the commands then
// speak for them from another machine, have the token made anew before it runs out, go
// on while the provider is away, and are nobody when they logged out.
func TestLogin(t *testing.T) {
	modules := os.Getenv("GBATCH_OIDC_PROVIDER")
	if _, err := exec.LookPath("node"); err != nil || modules == "" {
		t.Skip("SKIPPED: needs node, and in GBATCH_OIDC_PROVIDER a directory where `npm install oidc-provider` was run")
	}
	idp, issuer := startProvider(t, modules)
	s := newSite(t, siteOptions{ctldConfig: fmt.Sprintf("login: {issuer: %s, clientId: gbatch, groups: [hpc], tokenLife: 5 minutes}\n", issuer)})
	home := filepath.Join(s.dir, "home")
	env := append(cleanEnv(), "GBATCH_CONTROLLER="+strings.TrimSpace(s.must("gadm", "join-string")), "XDG_CONFIG_HOME="+home)
	as := func(name string, args ...string) result {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Env = env
		return execute(cmd)
	}
	if r := as("gqueue"); r.code == 0 || !strings.Contains(r.err, "needs a token") {
		t.Errorf("nobody is logged in: %v", r)
	}
	logIn(t, env, "ann")
	token, session := filepath.Join(home, "gbatch", "token"), filepath.Join(home, "gbatch", "login")
	for _, file := range []string{token, session} {
		if st, err := os.Stat(file); err != nil || st.Mode() != 0o600 {
			t.Errorf("%s is not its owner's alone: %v, %v", file, st, err)
		}
	}
	if r := as("gadm", "token", "list", "--json"); r.code != 0 || !strings.Contains(r.out, `"user": "ann"`) && !strings.Contains(r.out, `"user":"ann"`) {
		t.Errorf("who is logged in: %v", r)
	}
	first := lines(t, token)[0]
	age(t, session, 4*time.Minute)
	if r := as("gqueue"); r.code != 0 || lines(t, token)[0] == first {
		t.Errorf("a token that runs out soon is not made anew: %v", r)
	}
	_ = idp.Process.Kill()
	second := lines(t, token)[0]
	age(t, session, 4*time.Minute)
	if r := as("gqueue"); r.code != 0 || lines(t, token)[0] != second {
		t.Errorf("while the provider is away: %v", r)
	}
	if r := as("gadm", "logout"); r.code != 0 {
		t.Errorf("gadm logout: %v", r)
	}
	env = append(env, "GBATCH_TOKEN="+second)
	if r := as("gqueue"); r.code == 0 || !strings.Contains(r.err, "was revoked") {
		t.Errorf("the token of who logged out: %v", r)
	}
}

// startProvider starts an identity provider, which the test's end ends.
func startProvider(t *testing.T, modules string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command("node", "testdata/provider.mjs", modules)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := startChild(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for scan := bufio.NewScanner(out); scan.Scan(); {
		if strings.HasPrefix(scan.Text(), "http://127.0.0.1:") {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return cmd, scan.Text()
		}
	}
	t.Fatal("the identity provider does not say where it listens")
	return nil, ""
}

var loginURL = regexp.MustCompile(`or open (\S+)`)

// logIn runs gadm login, and does in a browser what it says.
func logIn(t *testing.T, env []string, user string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "gadm"), "login")
	cmd.Env = env
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for scan := bufio.NewScanner(said); scan.Scan(); {
		fmt.Fprintln(&all, scan.Text())
		if at := loginURL.FindStringSubmatch(scan.Text()); at != nil {
			browse(t, at[1], user)
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(all.String(), "you are "+user+" here") {
		t.Fatalf("gadm login: %v\n%s", err, &all)
	}
}

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]*)"`)
	formInput  = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
)

// browse fills in all forms that a page leads to.
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
		action := formAction.FindSubmatch(body)
		if action == nil {
			return
		}
		form := url.Values{"login": {user}, "password": {"x"}}
		for _, in := range formInput.FindAllSubmatch(body, -1) {
			form.Set(string(in[1]), string(in[2]))
		}
		resp, err = c.PostForm(string(action[1]), form)
	}
	t.Fatal("the identity provider asks again and again")
}

// age has a session be older by d.
func age(t *testing.T, file string, d time.Duration) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"created", "expires"} {
		at, err := time.Parse(time.RFC3339, s[key].(string))
		if err != nil {
			t.Fatal(err)
		}
		s[key] = at.Add(-d).Format(time.RFC3339)
	}
	if b, err = json.Marshal(s); err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
