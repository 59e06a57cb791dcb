package oci_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/oci"
	"gbatch/oci/handed"
	"gbatch/oci/result"
	"gbatch/oci/stdio"
)

// withStdio runs a container whose files lie in a directory, by their names
// there: in, out, err.
func withStdio(t *testing.T, p *oci.Pool, script, dir string, has string) (result.Exit, string) {
	t.Helper()
	var files stdio.Files
	for name, f := range map[string]**os.File{"in": &files.Input, "out": &files.Output, "err": &files.Error} {
		if !strings.Contains(has, name) {
			continue
		}
		flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
		if name == "in" {
			flags = os.O_RDONLY
		}
		file, err := os.OpenFile(filepath.Join(dir, name), flags, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		*f = file
	}
	b := newBox(t, script)
	b.cfg.Stdio = files.Names()
	b.prepare()
	s, err := p.Start(b.dir, handed.Handover{Stdio: files})
	if err != nil {
		t.Fatal(err)
	}
	b.shim = s
	return b.exit(), b.log()
}

// TestStdio: what a program says is in its log, and in the files that it has.
func TestStdio(t *testing.T) {
	needContainers(t)
	p := &oci.Pool{Max: 1}
	defer p.Close()
	for has, want := range map[string]map[string]string{
		"out":        {"out": "before\n<>\noops\nlast\n"},
		"in out":     {"in": "typed", "out": "before\n<typed>\noops\nlast\n"},
		"out err":    {"out": "before\n<>\nlast\n", "err": "before\noops\n"},
		"in":         {"in": "typed"},
		"in out err": {"in": "typed", "out": "before\n<typed>\nlast\n", "err": "before\noops\n"},
	} {
		t.Run(strings.ReplaceAll(has, " ", "-"), func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range strings.Fields(has) {
				text := "before\n"
				if name == "in" {
					text = "typed"
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			exit, log := withStdio(t, p, "echo \"<$(cat)>\"; echo oops >&2; (sleep 0.1; echo last) & wait; exit 3", dir, has)
			if exit.Code != 3 || exit.LogBytes != int64(len(log)) {
				t.Errorf("%+v", exit)
			}
			typed := ""
			if strings.Contains(has, "in") {
				typed = "typed"
			}
			if !strings.Contains(log, "<"+typed+">\n") || !strings.Contains(log, "oops\n") || !strings.HasSuffix(log, "last\n") {
				t.Errorf("log: %q", log)
			}
			got := map[string]string{}
			for name := range want {
				b, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				got[name] = string(b)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStdioFull: a file that takes no more holds nothing up, and the log says so once.
func TestStdioFull(t *testing.T) {
	needContainers(t)
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	exit, log := withStdio(t, new(oci.Pool), "echo one; sleep 0.2; echo two", dir, "out")
	const said = "gbatch: cannot write the output to its file any more (no space left on device); all of it is here\n"
	if exit.Code != 0 || strings.Count(log, said) != 1 || strings.ReplaceAll(log, said, "") != "one\ntwo\n" {
		t.Errorf("%+v, log %q", exit, log)
	}
}
