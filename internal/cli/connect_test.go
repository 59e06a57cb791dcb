package cli

import (
	"strings"
	"testing"
	"time"
)

// TestPatience: what can be asked again is asked again while another one of several
// controllers is about to lead; of one controller only where the command says so.
func TestPatience(t *testing.T) {
	pin := "#sha256=" + strings.Repeat("A", 43)
	for _, tc := range []struct {
		address string
		retry   bool
		timeout time.Duration
		want    time.Duration
	}{
		{"https://a:1" + pin, false, time.Minute, 0},
		{"https://a:1" + pin, true, time.Minute, 10 * time.Second},
		{"https://a:1,b:1,c:1" + pin, false, time.Minute, 5 * time.Second},
		{"https://a:1,b:1,c:1" + pin, true, time.Minute, 10 * time.Second},
		{"https://a:1,b:1,c:1" + pin, false, 2 * time.Second, 2 * time.Second},
	} {
		a := &App{}
		if err := a.connect(Program{Name: "gqueue", Retry: tc.retry}, &Connection{Controller: tc.address, Timeout: tc.timeout}); err != nil {
			t.Fatal(err)
		}
		if got := a.Client.Retry.For; got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
		a.Client.Close()
	}
}
