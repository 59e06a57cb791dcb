package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestLogin logs a user in at real identity providers, by their pages: the commands
// then speak for them from another machine, have the token made anew before it runs
// out, go on while the provider is away, and are nobody when they logged out.
func TestLogin(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, p := range realProviders {
		t.Run(name, func(t *testing.T) {
			idp, issuer := p.start(t, "https://127.0.0.1/web/")
			logsIn(t, idp, fmt.Sprintf("login: {issuer: %s, clientId: gbatch, tokenLife: 5 minutes, %s}\n", issuer, p.rules), p.user)
		})
	}
}

// realProviders are identity providers as sites have them.
var realProviders = map[string]struct {
	start func(t *testing.T, page string) (*exec.Cmd, string) // page: the address that browsers are sent back to
	rules string                                              // beside the issuer
	user  string                                              // as whom the test's user comes in
}{
	"oidc-provider": {startNodeProvider, "groups: [hpc]", "ann"},
	"dex":           {startDex, "userClaim: email, domain: kilgore.trout, groups: [authors]", "kilgore"},
}

func logsIn(t *testing.T, idp *exec.Cmd, config, user string) {
	t.Helper()
	s := newSite(t, siteOptions{ctldConfig: config})
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
	logIn(t, env, user)
	token, session := filepath.Join(home, "gbatch", "token"), filepath.Join(home, "gbatch", "login")
	for _, file := range []string{token, session} {
		if st, err := os.Stat(file); err != nil || st.Mode() != 0o600 {
			t.Errorf("%s is not its owner's alone: %v, %v", file, st, err)
		}
	}
	if r := as("gadm", "token", "list", "--json"); r.code != 0 || !strings.Contains(r.out, `"user": "`+user+`"`) {
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
