package apparmor

import (
	"strings"
	"testing"
)

func TestLoaded(t *testing.T) {
	const list = "lsb_release (enforce)\nother profile (complain)\ngbatch-job (enforce)\nidle (unconfined)\n"
	for name, want := range map[string]string{
		"gbatch-job": "", "gbatch": "has no profile", "other profile": "is not enforced", "idle": "is not enforced",
	} {
		err := loaded(strings.NewReader(list), name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReady(t *testing.T) {
	has, err := Ready("no such profile")
	if !has && err != nil {
		t.Errorf("a kernel without AppArmor: %v", err)
	}
	if has && err == nil {
		t.Error("there is such a profile")
	}
}
