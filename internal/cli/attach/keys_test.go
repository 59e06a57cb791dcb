package attach

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		typed []string
		sent  string
		leave bool
	}{
		"plain":         {[]string{"a~.b"}, "a~.b", false},
		"at_once":       {[]string{"~."}, "", true},
		"after_enter":   {[]string{"ls\r", "~", "."}, "ls\r", true},
		"after_newline": {[]string{"ls\n~.more"}, "ls\n", true},
		"tilde":         {[]string{"\r~~."}, "\r~.", false},
		"home":          {[]string{"\r~/x"}, "\r~/x", false},
		"enter_between": {[]string{"\r~\r~."}, "\r~\r", true},
	} {
		t.Run(name, func(t *testing.T) {
			k := keys{person: true, fresh: true}
			var sent []byte
			left := false
			for _, p := range tc.typed {
				send, leave := k.take([]byte(p))
				sent, left = append(sent, send...), leave
			}
			if diff := cmp.Diff(tc.sent, string(sent)); diff != "" || left != tc.leave {
				t.Errorf("sent (-want +got):\n%s, left %v", diff, left)
			}
		})
	}
	piped := keys{fresh: true}
	if send, leave := piped.take([]byte("~.")); string(send) != "~." || leave {
		t.Errorf("a pipe: %q, %v", send, leave)
	}
}
