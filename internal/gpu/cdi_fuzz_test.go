package gpu

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/gpu/setup"
)

// FuzzCDI: whatever stands in a site's CDI file, a container gets its device or
// the rank fails with a sentence; no edit changes what the container runs. After
// an error the spec is half edited: its rank ends, and nothing reads it again.
func FuzzCDI(f *testing.F) {
	f.Add([]byte(`{"cdiVersion": "0.6.0", "kind": "example.com/rdma", "devices": [{"name": "all", "containerEdits": {"deviceNodes": [{"path": "/dev/null"}], "env": ["RDMA=1"],
		"mounts": [{"hostPath": "/etc", "containerPath": "/x", "options": ["ro"]}], "hooks": [{"hookName": "createContainer", "path": "/bin/true", "args": ["true"]}]}}]}`))
	f.Add([]byte(`{"cdiVersion": "0.6.0", "kind": "example.com/rdma", "devices": [{"name": "all", "containerEdits": {"env": ["A"], "deviceNodes": [{"path": ""}]}}], "containerEdits": {"env": ["B=1"]}}`))
	f.Add([]byte(`{"cdiVersion": "9", "kind": "x", "devices": []}`))
	f.Add([]byte("cdiVersion: &a [*a]\nkind: example.com/rdma"))
	dir := f.TempDir()
	const device = "example.com/rdma=all"
	in, err := newInjector(InjectorConfig{SpecDirs: []string{dir}, Injection: setup.Injection{Devices: []string{device}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, "site.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		spec := specOf("A=1")
		if err := in.editCDI(spec, nil); err != nil && err.Error() == "" {
			t.Error("an error without a word")
		}
		got, want := *spec.Process, *specOf("A=1").Process
		got.Env, got.User.AdditionalGids = nil, nil // what CDI may add to
		want.Env = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the process was changed (-want +got):\n%s", diff)
		}
	})
}
