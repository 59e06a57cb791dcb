package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// somePin is a pin as in an address.
var somePin = "#sha256=" + strings.Repeat("A", 43)

func TestParseAddress(t *testing.T) {
	tests := map[string]struct {
		want string // endpoint.String and base
		err  string
	}{
		"unix:///run/g.sock":            {want: "unix:///run/g.sock http://gctld"},
		"unix:/run/g.sock":              {want: "unix:///run/g.sock http://gctld"},
		"/run/g.sock":                   {want: "unix:///run/g.sock http://gctld"},
		"https://head:80/" + somePin:    {want: "https://head:80 https://head:80"},
		"https://[::1]:80" + somePin:    {want: "https://[::1]:80 https://[::1]:80"},
		"http://head:8080":              {err: "the controller speaks TLS"},
		"https://head:8080":             {err: "does not say which controller"},
		"https://head:80#sha256=abc":    {err: "is no pin"},
		"https://head/gbatch" + somePin: {err: "only the pin may follow"},
		"unix://g.sock":                 {err: "needs an absolute path"},
		"head:8080":                     {err: "want unix:///path"},
		"":                              {err: "want unix:///path"},
		"ftp://x":                       {err: "want unix:///path"},
		"http://":                       {err: "want unix:///path"},
		"http://me:secret@head":         {err: "must hold no user or password"},
		"https://head?a=b" + somePin:    {err: "only the pin may follow"},
		"/" + strings.Repeat("x", 107):  {err: "has at most 107 bytes, this one has 108"},
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
	for _, k := range []string{"GBATCH_CONTROLLER", "GBATCH_TOKEN", "GBATCH_TOKEN_FILE", "GBATCH_AUTH", "GBATCH_MUNGE_SOCKET"} {
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
	site, env := "https://site:1"+somePin, "https://env:1"+somePin
	cfg := write(t, filepath.Join(dir, "client.yaml"), "controller: "+site+"\ntokenFile: "+filepath.Join(dir, "site")+"\n", 0o644)
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
	if _, err := os.Stat(systemSocket); err != nil {
		check("nothing", Options{Config: write(t, filepath.Join(dir, "empty.yaml"), "{}", 0o644)}, filepath.Join(dir, "state/gbatch/dev/gctld.sock"), "")
	}
	check("config", Options{Config: cfg}, site, "site")
	mine := write(t, filepath.Join(dir, "config/gbatch/token"), "", 0o644)
	check("socket", Options{Config: cfg, Address: "/s"}, "/s", "") // gadm token create > that file would empty it before it is read
	write(t, mine, "mine", 0o600)
	if err := os.Chmod(mine, 0o600); err != nil {
		t.Fatal(err)
	}
	check("socket-with-token", Options{Config: cfg, Address: "/s"}, "/s", "")
	check("user-file", Options{Config: cfg}, site, "mine")
	t.Setenv("GBATCH_TOKEN_FILE", write(t, filepath.Join(dir, "env"), "env", 0o600))
	t.Setenv("GBATCH_CONTROLLER", env)
	check("environment", Options{Config: cfg}, env, "env")
	t.Setenv("GBATCH_TOKEN", "direct")
	check("token-variable", Options{Config: cfg}, env, "direct")
	t.Setenv("GBATCH_AUTH", "munge")
	check("token-over-munge", Options{Config: cfg}, env, "direct")
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
		"unknown-key": {cfg("a", "controler: /x\n"), []string{"a: controler (line 1): is not a field of this document; did you mean \"controller\"?"}},
		"no-key":      {cfg("g", "port: 7077\nauth: [munge]\n"), []string{"2 problems", "port (line 1)", "known here: auth, controller, mungeSocket, tokenFile", "auth (line 2)"}},
		"bad-address": {cfg("b", "controller: x\n"), []string{"want unix:///path"}},
		"bad-auth":    {cfg("c", "auth: magic\n"), []string{"want token or munge"}},
		"no-config":   {Options{Config: filepath.Join(dir, "none")}, []string{"read client configuration", "no such file"}},
		"open-token":  {Options{Config: cfg("d", "{}").Config, TokenFile: open}, []string{"is open to everyone"}},
		"no-token":    {Options{Config: cfg("e", "{}").Config, TokenFile: filepath.Join(dir, "none")}, []string{"read token", "no such file"}},
		"empty-token": {Options{Config: cfg("h", "{}").Config, TokenFile: write(t, filepath.Join(dir, "nothing"), "\n", 0o600)}, []string{"nothing is empty", "gadm token create --save"}},
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

// TestFindFiles: what the user's own file says goes before the site's, key by
// key, and MUNGE instead of a token leaves token files alone.
func TestFindFiles(t *testing.T) {
	dir := clearEnv(t)
	address := "https://mine:1" + somePin
	write(t, filepath.Join(dir, "config/gbatch/client.yaml"), "controller: "+address+"\nauth: munge\nmungeSocket: /m\n", 0o644)
	write(t, filepath.Join(dir, "config/gbatch/token"), "unused", 0o600)
	c, err := Find(Options{})
	if err != nil || c.Address != address || c.Munge == nil || c.Munge.Socket != "/m" || c.Token != "" {
		t.Errorf("found %+v, %v", c, err)
	}
}
