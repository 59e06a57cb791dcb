package secret

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRead: where values come from, and that no error quotes one.
func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key=@x")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HF_TOKEN", "hunter3")
	t.Setenv("NOTHING", "")
	tests := map[string]struct {
		flags []string
		want  map[string]string
		err   string
	}{
		"none":      {nil, map[string]string{}, ""},
		"all":       {[]string{"A=x=@y,z", "key.pem@" + file, "HF_TOKEN"}, map[string]string{"A": "x=@y,z", "key.pem": "hunter2\n", "HF_TOKEN": "hunter3"}, ""},
		"twice":     {[]string{"A=hunter2", "A=hunter3"}, nil, "secret A is given twice"},
		"unset":     {[]string{"NOT_SET_HERE"}, nil, "secret NOT_SET_HERE: there is no variable of that name; write NOT_SET_HERE=VALUE or NOT_SET_HERE@FILE, or export it"},
		"empty":     {[]string{"NOTHING", "A="}, nil, "secret NOTHING: its value must not be empty\nsecret A: its value must not be empty"},
		"no file":   {[]string{"A@/nowhere"}, nil, "secret A: open /nowhere: no such file or directory"},
		"no name":   {[]string{"=hunter2"}, nil, `--secret: the name is "": a secret's name has 1 to 48 letters, digits and _ . -, and starts with a letter or digit`},
		"zero byte": {[]string{"A=hunter2\x00"}, nil, "secret A: its value must not contain a zero byte"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Read(tc.flags, os.LookupEnv)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.err, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}
