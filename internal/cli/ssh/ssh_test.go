package ssh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseHost(t *testing.T) {
	const uuid = "0f8fad5b-d9cb-469f-a165-70867728950e"
	for name, want := range map[string]Host{
		"12.gbatch":            {Job: "12"},
		"12":                   {Job: "12"},
		"12-3.gbatch":          {Job: "12", Rank: 3},
		"12_7.gbatch":          {Job: "12_7"},
		"12_7-1.GBATCH":        {Job: "12_7", Rank: 1},
		uuid + ".gbatch":       {Job: uuid},
		uuid + "-2.gbatch":     {Job: uuid, Rank: 2},
		"12345678-1234.gbatch": {Job: "12345678-1234"},
		"0f8fad5b.gbatch":      {Job: "0f8fad5b"},
		"":                     {},
		".gbatch":              {},
		"a/b.gbatch":           {},
		"12.example.gbatch":    {},
	} {
		got, err := ParseHost(name)
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (want.Job == "") {
			t.Errorf("%q: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestText(t *testing.T) {
	c := Config{Gexec: "/opt/it's 100%/gexec", Flags: []string{"--controller", "https://h:1#sha256=x"}, Dir: "/home/ann/.config/gbatch", Job: "12"}
	want := `Host 12.gbatch *.gbatch
    ProxyCommand '/opt/it'\''s 100%%/gexec' '--controller' 'https://h:1#sha256=x' --ssh-proxy %h
    User job
    HostKeyAlias gbatch
    UserKnownHostsFile "/home/ann/.config/gbatch/ssh_known_hosts"
    StrictHostKeyChecking yes
    UpdateHostKeys no
    PubkeyAuthentication no
    GSSAPIAuthentication no
`
	_, got, _ := strings.Cut(c.Text(), "Written by gexec --ssh-config.\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// TestInstall: the key stays, the user's own lines too, a link is followed, and a
// second time changes nothing.
func TestInstall(t *testing.T) {
	home := t.TempDir()
	real := filepath.Join(home, "dotfiles")
	if err := os.WriteFile(real, []byte("Host x\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(home, ".ssh", "config")); err != nil {
		t.Fatal(err)
	}
	c := Config{Gexec: "/usr/bin/gexec", Dir: filepath.Join(home, "conf")}
	var first string
	for range 2 {
		if err := c.Prepare(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Install(home); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(real)
		key, _ := os.ReadFile(filepath.Join(c.Dir, keyFile))
		known, _ := os.ReadFile(filepath.Join(c.Dir, knownHosts))
		if want := "Include \"" + c.Dir + "/ssh_config\"\n\nHost x\n"; string(text) != want {
			t.Errorf("the user's file:\n%swant\n%s", text, want)
		}
		all := string(key) + string(known)
		if first != "" && all != first {
			t.Error("the key changes")
		}
		first = all
	}
	for name, want := range map[string]os.FileMode{real: 0o640, filepath.Join(c.Dir, keyFile): 0o600, filepath.Join(c.Dir, knownHosts): 0o600} {
		if st, err := os.Stat(name); err != nil || st.Mode() != want {
			t.Errorf("%s: %v, want mode %v", name, st.Mode(), want)
		}
	}
	left, _ := filepath.Glob(filepath.Join(c.Dir, ".new-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := (Config{Dir: filepath.Join(home, `a"b`)}).Prepare(); err == nil {
		t.Error("a path that ssh cannot be told is taken")
	}
}
