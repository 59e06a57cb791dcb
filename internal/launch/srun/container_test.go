package srun

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gbatch/internal/launch"
)

// TestContainer: where tasks run by the options of pyxis, and with what; nil: in the job's
// container.
func TestContainer(t *testing.T) {
	info := &launch.Info{Image: "reg.example/lab/app:2", Mounts: []string{"/data", "/home/ann", "/in"}, Sources: []string{"/lustre/sets", "/home/ann", "/lustre/sets/in"}, ReadOnly: []string{"/in"}}
	none := func(string) (string, bool) { return "", false }
	decided := func(line string) (launch.Start, error) {
		o, err := parse(strings.Fields(line), none)
		s := launch.Start{Dir: "/home/ann/run", Output: launch.Stream, Errors: launch.Merged, Input: launch.Null}
		if err != nil {
			return s, err
		}
		s.Output = streamOr(o.out)
		return s, o.box.decide(info, &s)
	}
	for line, want := range map[string]launch.Start{
		"--container-image=reg.example#lab/app:2 p":                                  {Dir: "/home/ann/run"},
		"--container-image=lab/app:2 --container-workdir=/w p":                       {Dir: "/w"},
		"--container-mounts=/lustre/sets:/data,/home/ann p":                          {Dir: "/home/ann/run"},
		"--container-mounts=/lustre/sets/in:/in:ro --container-writable p":           {Dir: "/home/ann/run"},
		"--container-image=docker://other --container-env=A,B p":                     {In: &launch.Container{Image: "other"}, Over: []string{"A", "B"}},
		"--container-image other --container-workdir=/w p":                           {In: &launch.Container{Image: "other"}, Dir: "/w"},
		"--container-name=one p":                                                     {In: &launch.Container{Name: "one"}},
		"--container-name=one:auto --container-image=lab/app:2 p":                    {In: &launch.Container{Name: "one", Image: "reg.example/lab/app:2"}},
		"--container-readonly p":                                                     {In: &launch.Container{ReadOnly: true}},
		"--container-mounts=/home/ann:/home/ann:ro p":                                {In: &launch.Container{Mounts: []launch.Mount{{Source: "/home/ann", Target: "/home/ann", ReadOnly: true}}}},
		"--container-mounts=/lustre/sets/a:/a,/lustre/sets/in/b:/b:ro,/opt p":        {In: &launch.Container{Mounts: []launch.Mount{{Source: "/data/a", Target: "/a"}, {Source: "/in/b", Target: "/b", ReadOnly: true}, {Source: "/opt", Target: "/opt"}}}},
		"--container-image=other -o /data/out-%t p":                                  {In: &launch.Container{Image: "other"}, Output: "/data/out-%t"},
		"--container-image=other -o out-%t p":                                        {In: &launch.Container{Image: "other"}, Output: "/home/ann/run/out-%t"},
		"--container-image=other --no-container-mount-home --container-remap-root p": {In: &launch.Container{Image: "other"}},
	} {
		got, err := decided(line)
		if want.Output == "" {
			want.Output = launch.Stream
		}
		want.Errors, want.Input = launch.Merged, launch.Null
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", line, err, diff)
		}
	}
	for line, want := range map[string]string{
		"--container-image=/images/a.sqsh p":                              "squashed images are not read: name an image in a registry",
		"--container-name=a:exec p":                                       "has the word exec",
		"--container-mounts=/a:/b:x p":                                    "has the flag x: want ro or rw",
		"--container-mounts=a:/b p":                                       "want absolute paths",
		"--container-save=/x p":                                           "push it to a registry",
		"--container-image=other --container-entrypoint p":                "call the image's entrypoint in front of the command",
		"--container-image=other -o /tmp/out-%t p":                        "/tmp/out-%t: tasks in a container of their own have files of their own only where the job mounts storage",
		"--container-mounts=/opt:/data --container-image=o -o /data/%t p": "only where the job mounts storage",
	} {
		if _, err := decided(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
