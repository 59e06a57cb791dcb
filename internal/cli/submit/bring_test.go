package submit

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMayBring: a job's file names what lies where it does, and nothing else unless
// its submitter says so, whatever links are there.
func TestMayBring(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"job/code", "other", "job-2"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "job/link")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "job/task.yml")
	tests := map[string]struct {
		path string
		from []string
		want bool
	}{
		"where the file is": {"job", nil, true},
		"below":             {"job/code", nil, true},
		"above":             {".", nil, false},
		"beside":            {"job-2", nil, false},
		"up and down":       {"job/../other", nil, false},
		"by a link":         {"job/link", nil, false},
		"by a flag":         {"job/link", []string{filepath.Join(dir, "other")}, true},
		"by another flag":   {"other", []string{filepath.Join(dir, "job-2")}, false},
		"nothing":           {"job/none", nil, true}, // which is said elsewhere
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (&flags{FilesFrom: tc.from}).mayBring(file, dir+"/"+tc.path); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if (&flags{}).mayBring(file, "/etc/shadow") {
		t.Error("it may bring what is the system's")
	}
}

// TestMayUseLogins: a repository that a job's file names is read as its submitter only
// if he says so.
func TestMayUseLogins(t *testing.T) {
	o := &flags{FilesFrom: []string{"https://git.example/lab", "git@git.example:ann/code.git"}}
	for address, want := range map[string]bool{
		"https://git.example/lab/code":        true,
		"https://git.example/lab":             true,
		"https://git.example/laboratory":      false,
		"https://git.example/lab/../ann/code": false,
		"https://git.example/lab/%2e%2E/ann":  false,
		"https://git.example/lab%2f../ann":    false,
		"https://git.example/lab/a%20b":       true,
		"git@git.example:ann/code.git":        true,
		"git@git.example:ann/code":            false,
	} {
		if got := o.mayUseLogins(address); got != want {
			t.Errorf("%s: got %v", address, got)
		}
	}
}
