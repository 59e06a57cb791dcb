package storage

import (
	"strings"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

func TestHostileNames(t *testing.T) {
	st := New(&config.Config{Storage: []config.StorageRoot{{Name: "/p", Path: "/srv/{project}/{user}", Create: true}}})
	for _, who := range []Tenant{{User: "a", Project: ".."}, {User: "a/b", Project: "p"}, {User: "", Project: "p"}} {
		if _, err := st.Open(job.Storage{HostPath: "/p"}, who); err == nil || !strings.Contains(err.Error(), "cannot name a storage directory") {
			t.Errorf("%+v: %v", who, err)
		}
	}
}
