package draft_test

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/oci/draft"
	"gbatch/oci/userns"
)

// FuzzBuild makes a spec of what anybody may write into an image's configuration and a
// job: it is refused, or what the container may do is as for any other image, and its
// program, variables and directory are such as the kernel takes.
func FuzzBuild(f *testing.F) {
	f.Add(`{"Env":["A=1","PATH=/bin"],"Entrypoint":["/init"],"Cmd":["x"],"WorkDir":"/srv","User":"www"}`, "train", "B=2", "/w", "bob:users")
	f.Add(`{"Env":["=x","A","A\u0000=1","LD_PRELOAD=/x"],"Cmd":["\u0000"],"WorkDir":"../..","User":"0:0"}`, "", "", "", "")
	f.Add(`{"Cmd":["sh"],"WorkDir":"/proc/self/fd/12","User":"-1"}`, "sh", "C=\x00", "//../x/./", ":")
	f.Add(`{"Cmd":[""],"Env":null}`, "", "=", "\n", "4294967296")
	fixed := draft.Request{CgroupPath: "/gbatch/n/1.0", IDs: userns.MapOf(userns.Owner{UID: 1003, GID: 1003, First: 0x20000000})}
	plain := fixed
	plain.Image.Cmd = []string{"sh"}
	want, err := draft.Build(plain)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, config, command, env, dir, user string) {
		r := fixed
		if json.Unmarshal([]byte(config), &r.Image) != nil {
			return
		}
		r.WorkDir, r.User = dir, user
		if command != "" {
			r.Command = []string{command}
		}
		if env != "" {
			r.Env = []string{env}
		}
		got, err := draft.Build(r)
		if err != nil {
			return
		}
		if got.Process.Args[0] == "" || !path.IsAbs(got.Process.Cwd) {
			t.Errorf("it runs %q in %q", got.Process.Args, got.Process.Cwd)
		}
		for _, s := range append(got.Process.Args, got.Process.Env...) {
			if strings.Contains(s, "\x00") {
				t.Errorf("%q has a NUL", s)
			}
		}
		for _, kv := range got.Process.Env {
			if strings.Index(kv, "=") < 1 {
				t.Errorf("a variable is %q", kv)
			}
		}
		// All else is none of the image's business.
		got.Process.Args, got.Process.Env, got.Process.Cwd, got.Process.User = want.Process.Args, want.Process.Env, want.Process.Cwd, want.Process.User
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the image changed what its container is (-want +got):\n%s", diff)
		}
	})
}
