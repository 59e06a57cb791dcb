package site

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDiff: each change is told with its key, also where another one takes back
// what it does to the lines.
func TestDiff(t *testing.T) {
	const before = "operators: []\nprojects:\n- name: a\n  gpus: 1\n- name: b\n  gpus: 2\npolicy:\n  perUser:\n    gpus: 32\n  halfLife: 7d\n"
	for _, c := range []struct {
		what, after string
		want        []string
	}{
		{"nothing", before, nil},
		{"two that are exchanged", "operators: []\nprojects:\n- name: a\n  gpus: 2\n- name: b\n  gpus: 1\npolicy:\n  perUser:\n    gpus: 32\n  halfLife: 7d\n",
			[]string{"- projects[a].gpus: 1", "+ projects[a].gpus: 2", "- projects[b].gpus: 2", "+ projects[b].gpus: 1"}},
		{"the order", "operators: []\nprojects:\n- name: b\n  gpus: 2\n- name: a\n  gpus: 1\npolicy:\n  halfLife: 7d\n  perUser:\n    gpus: 32\n", nil},
		{"one value", "operators: []\nprojects:\n- name: a\n  gpus: 1\n- name: b\n  gpus: 2\npolicy:\n  perUser:\n    gpus: 16\n  halfLife: 7d\n",
			[]string{"- policy.perUser.gpus: 32", "+ policy.perUser.gpus: 16"}},
		{"what comes and goes", "operators:\n- ann\n- bob\nprojects:\n- name: a\n  gpus: 1\n- name: c\npolicy:\n  perUser: {}\n  halfLife: 7d\n",
			[]string{"- operators: []", "+ operators: [ann, bob]", "- projects[b].name: b", "- projects[b].gpus: 2", "- policy.perUser.gpus: 32", "+ projects[c].name: c", "+ policy.perUser: {}"}},
	} {
		if diff := cmp.Diff(c.want, Diff(before, c.after)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}
