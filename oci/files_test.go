package oci_test

import (
	"os"
	"path/filepath"
	"testing"

	"gbatch/oci"
)

// TestFiles: a container finds the files that it is given in place of its
// image's, as its own: it may change, replace and remove them, and neither the
// image nor the next container on the same shim sees anything of that.
func TestFiles(t *testing.T) {
	const script = "cat /etc/hosts /etc/none/new; stat -c %u:%g:%a /etc/hosts /etc/none /etc/none/new; " +
		"echo changed >>/etc/hosts && mv /etc/hosts /etc/gone && echo again >/etc/hosts && rm /etc/none/new && cat /etc/gone /etc/hosts"
	for _, text := range []string{"first\n", "second\n"} {
		b := newMapped(t, script)
		b.addLayer("etc/hosts", func(at string) error { return os.WriteFile(at, []byte("the image's, which is longer\n"), 0o600) })
		b.cfg.Files = []oci.File{{Path: "/etc/hosts", Text: text}, {Path: "/etc/none/new", Text: "new\n"}}
		want := text + "new\n0:0:644\n0:0:755\n0:0:644\n" + text + "changed\nagain\n"
		if exit, log := b.run(); log != want {
			t.Errorf("output %q, want %q, %v", log, want, exit.Failure)
		}
		got, err := os.ReadFile(filepath.Join(b.cfg.Layers[len(b.cfg.Layers)-1], "etc/hosts"))
		if err != nil || string(got) != "the image's, which is longer\n" {
			t.Errorf("the image has %q, %v", got, err)
		}
	}
}
