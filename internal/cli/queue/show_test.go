package queue

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// TestShowProgram proves that what is shown of a program is what runs: the
// image's own only where the job names neither entrypoint nor command.
func TestShowProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		entrypoint []string
		command    job.Command
		want       string
	}{
		"neither":    {want: "Command  (the image's own)\n"},
		"line":       {command: job.Command{Line: "echo a b"}, want: "Command  echo a b\n"},
		"argv":       {command: job.Command{Argv: []string{"echo", "a b"}}, want: "Command  \"echo\" \"a b\"\n"},
		"entrypoint": {entrypoint: []string{"/bin/sh", "-e", "/x y"}, want: "Entrypoint  \"/bin/sh\" \"-e\" \"/x y\"\n"},
		"both": {entrypoint: []string{"/bin/bash", job.ScriptPath}, command: job.Command{Argv: []string{"--lr", "0.1"}},
			want: "Entrypoint  \"/bin/bash\" \"" + job.ScriptPath + "\"\nCommand     \"--lr\" \"0.1\"\n"},
	} {
		spec := &job.Spec{Gbatch: &job.Gbatch{Entrypoint: tc.entrypoint}}
		spec.Request.Docker.Command = tc.command
		f := table.NewFields()
		programFields(f, spec)
		var b strings.Builder
		if err := f.Write(&b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
