package slurm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestPassOn: what of a shell goes along, in the document or sealed, and what does not.
func TestPassOn(t *testing.T) {
	own := &job.Spec{Gbatch: &job.Gbatch{Secrets: []job.Secret{{Name: "TOKEN"}}}}
	own.Request.Docker = job.Docker{Image: "a", Environment: map[string]string{"GIVEN": "1", "CHANGED": "1", "SLURM_HINT": "x"}}
	began := []string{"PATH=/bin", "HOME=/root", "TOKEN=hush", "GIVEN=1", "CHANGED=1", "SLURM_HINT=x", "LANG=C"}
	now := []string{"PATH=/x:/bin", "HOME=/root", "TOKEN=hush", "GIVEN=1", "CHANGED=2", "SLURM_HINT=x", "SLURM_NEW=1", "GBATCH_X=1", "LANG=de", "SET=a b", "EMPTY=", "PWD=/y", "SHLVL=2", "_=/bin/x", "HERE=there",
		"_odd=1", "BASH_FUNC_f%%=() { :; }", "BIG=" + strings.Repeat("x", 40<<10)}
	for image, path := range map[string]string{"a": "/x:/bin", "b": ""} {
		sub := job.Submission{Spec: job.Spec{Gbatch: &job.Gbatch{}}}
		sub.Spec.Request.Docker = job.Docker{Image: image, Environment: map[string]string{"HERE": "mine"}}
		passOn(now, began, own, &sub)
		want := map[string]string{"HERE": "mine", "GIVEN": "1", "EMPTY": ""}
		if path != "" {
			want["PATH"] = path
		}
		if diff := cmp.Diff(want, sub.Spec.Request.Docker.Environment); diff != "" {
			t.Errorf("image %s: in the document (-want +got):\n%s", image, diff)
		}
		if diff := cmp.Diff(map[string]string{"TOKEN": "hush", "CHANGED": "2", "LANG": "de", "SET": "a b"}, sub.Secrets); diff != "" {
			t.Errorf("image %s: sealed (-want +got):\n%s", image, diff)
		}
		var names []string
		for _, s := range sub.Spec.Gbatch.Secrets {
			names = append(names, s.Name)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(sub.Secrets)), names); diff != "" {
			t.Errorf("image %s: named (-want +got):\n%s", image, diff)
		}
		if len(sub.Notes) != 1 || !strings.HasPrefix(sub.Notes[0].Message, "BASH_FUNC_f%%, BIG, _odd ") {
			t.Errorf("image %s: notes %v", image, sub.Notes)
		}
	}
}
