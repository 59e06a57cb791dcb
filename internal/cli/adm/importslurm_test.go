package adm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/internal/cli"
)

// TestImportIncludes: slurm.conf may be somebody else's, and who imports it may be
// root. What it includes is read from its folder and those that are named, and only
// where it is a file.
func TestImportIncludes(t *testing.T) {
	top := t.TempDir()
	dir, other, private := filepath.Join(top, "slurm"), filepath.Join(top, "other"), filepath.Join(top, "private")
	for _, d := range []string{filepath.Join(dir, "sub"), other, private} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(private, "shadow"), "root:hush:1\n")
	write(filepath.Join(dir, "sub", "nodes.conf"), "NodeName=here CPUs=1\n")
	write(filepath.Join(other, "more.conf"), "NodeName=there CPUs=1\n")
	for name, to := range map[string]string{"out": filepath.Join(private, "shadow"), "up": "../private/shadow", "zero": "/dev/zero", "in": "sub/nodes.conf", "fd": "/proc/self/fd/0"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "big"), "")
	if err := os.Truncate(filepath.Join(dir, "big"), 1<<40); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		include string
		from    []string
		want    string // of the output, or of the error
	}{
		"beside":          {include: "sub/nodes.conf", want: "gnoded.yaml on here:"},
		"by its path":     {include: dir + "/sub/nodes.conf", want: "gnoded.yaml on here:"},
		"link within":     {include: "in", want: "gnoded.yaml on here:"},
		"named folder":    {include: other + "/more.conf", from: []string{other}, want: "gnoded.yaml on there:"},
		"name in folder":  {include: "more.conf", from: []string{other}, want: "gnoded.yaml on there:"},
		"another folder":  {include: other + "/more.conf", want: "name its folder by --include-from"},
		"private":         {include: private + "/shadow", want: "name its folder by --include-from"},
		"private, dotted": {include: "../private/shadow", want: "path escapes"},
		"private, longer": {include: dir + "/sub/../../private/shadow", want: "name its folder by --include-from"},
		"private, linked": {include: "out", want: "path escapes"},
		"private, up":     {include: "up", want: "path escapes"},
		"of the system":   {include: "/etc/shadow", want: "name its folder by --include-from"},
		"device":          {include: "/dev/zero", want: "name its folder by --include-from"},
		"linked device":   {include: "zero", want: "path escapes"},
		"open file":       {include: "fd", want: "path escapes"},
		"pipe":            {include: "pipe", want: "is no file"},
		"folder":          {include: "sub", want: "is no file"},
		"big file":        {include: "big", want: "more than 16777216 bytes"},
		"none":            {include: "none", want: `"none" is not in`},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			conf := filepath.Join(dir, "slurm.conf")
			write(conf, "Include "+tc.include+"\n")
			var out bytes.Buffer
			err := (&ImportSlurm{Conf: conf, From: tc.from}).Run(&cli.App{Out: &out})
			said := out.String()
			if err != nil {
				said = err.Error()
			}
			if !strings.Contains(said, tc.want) || strings.Contains(said, "hush") || len(said) > 1000 {
				t.Errorf("it says %.1000s, want %q", said, tc.want)
			}
		})
	}
	err := (&ImportSlurm{Conf: "/dev/zero"}).Run(&cli.App{Out: &bytes.Buffer{}})
	if err == nil || !strings.Contains(err.Error(), "more than 16777216 bytes") {
		t.Errorf("/dev/zero as slurm.conf: %v", err)
	}
}
