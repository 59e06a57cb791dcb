package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	tests := map[string]struct {
		want string // endpoint.String and base
		err  string
	}{
		"unix:///run/g.sock":           {want: "unix:///run/g.sock http://gctld"},
		"unix:/run/g.sock":             {want: "unix:///run/g.sock http://gctld"},
		"/run/g.sock":                  {want: "unix:///run/g.sock http://gctld"},
		"http://head:8080":             {want: "http://head:8080 http://head:8080"},
		"https://head/gbatch/":         {want: "https://head/gbatch https://head/gbatch"},
		"https://[::1]:80":             {want: "https://[::1]:80 https://[::1]:80"},
		"unix://g.sock":                {err: "needs an absolute path"},
		"head:8080":                    {err: "want unix:///path"},
		"":                             {err: "want unix:///path"},
		"ftp://x":                      {err: "want unix:///path"},
		"http://":                      {err: "want unix:///path"},
		"http://me:secret@head":        {err: "must hold no user or password"},
		"http://head?a=b":              {err: "nothing may follow the path"},
		"/" + strings.Repeat("x", 107): {err: "has at most 107 bytes, this one has 108"},
	}
	for in, tc := range tests {
		e, err := parseAddress(in)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: error %v, want %q", in, err, tc.err)
			}
			continue
		}
		if got := e.String() + " " + e.base; err != nil || got != tc.want {
			t.Errorf("%q: got %q, %v; want %q", in, got, err, tc.want)
		}
	}
}

// clearEnv takes away what the machine's own setup would add.
func clearEnv(t *testing.T) (dir string) {
	dir = t.TempDir()
	for _, k := range []string{"GBATCH_CONTROLLER", "GBATCH_TOKEN", "GBATCH_TOKEN_FILE", "GBATCH_CA"} {
		t.Setenv(k, "")
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	return dir
}

func write(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindPrefers(t *testing.T) {
	dir := clearEnv(t)
	cfg := write(t, filepath.Join(dir, "client.yaml"), "controller: http://site:1\ntokenFile: "+filepath.Join(dir, "site")+"\n", 0o644)
	write(t, filepath.Join(dir, "site"), "site\n", 0o640)
	check := func(step string, o Options, address, token string) {
		t.Helper()
		c, err := Find(o)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if c.Address != address || c.Token != token {
			t.Errorf("%s: got %s %q, want %s %q", step, c.Address, c.Token, address, token)
		}
	}
	if _, err := os.Stat(SystemSocket); err != nil {
		check("nothing", Options{Config: write(t, filepath.Join(dir, "empty.yaml"), "{}", 0o644)}, filepath.Join(dir, "state/gbatch/dev/gctld.sock"), "")
	}
	check("config", Options{Config: cfg}, "http://site:1", "site")
	write(t, filepath.Join(dir, "config/gbatch/token"), "mine", 0o600)
	check("user-file", Options{Config: cfg}, "http://site:1", "mine")
	t.Setenv("GBATCH_TOKEN_FILE", write(t, filepath.Join(dir, "env"), "env", 0o600))
	t.Setenv("GBATCH_CONTROLLER", "http://env:1")
	check("environment", Options{Config: cfg}, "http://env:1", "env")
	t.Setenv("GBATCH_TOKEN", "direct")
	check("token-variable", Options{Config: cfg}, "http://env:1", "direct")
	flag := write(t, filepath.Join(dir, "flag"), "flag", 0o600)
	check("flags", Options{Config: cfg, Address: "/s", TokenFile: flag}, "/s", "flag")
}

func TestFindRefuses(t *testing.T) {
	dir := clearEnv(t)
	cfg := func(name, text string) Options {
		return Options{Config: write(t, filepath.Join(dir, name), text, 0o644)}
	}
	open := write(t, filepath.Join(dir, "open"), "tok", 0o644)
	tests := map[string]struct {
		o    Options
		want []string
	}{
		"unknown-key": {cfg("a", "controler: /x\n"), []string{"a: [1:1] unknown field \"controler\"", "its keys are controller, tokenFile and ca"}},
		"bad-address": {cfg("b", "controller: x\n"), []string{"want unix:///path"}},
		"bad-ca":      {cfg("c", "ca: "+open+"\n"), []string{"holds no PEM certificate"}},
		"no-config":   {Options{Config: filepath.Join(dir, "none")}, []string{"read client configuration", "no such file"}},
		"open-token":  {Options{Config: cfg("d", "{}").Config, TokenFile: open}, []string{"is open to everyone"}},
		"no-token":    {Options{Config: cfg("e", "{}").Config, TokenFile: filepath.Join(dir, "none")}, []string{"read token", "no such file"}},
		"two-lines":   {Options{Config: cfg("f", "{}").Config, TokenFile: write(t, filepath.Join(dir, "two"), "a\nb", 0o600)}, []string{"a character that no token has"}},
	}
	for name, tc := range tests {
		_, err := Find(tc.o)
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", name, err, want)
			}
		}
	}
}
