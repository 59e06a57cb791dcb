package deploy

import (
	"strings"
	"testing"
)

// TestSet: a key gets its value where it stands, once, also where it is a
// comment; what is not there is added.
func TestSet(t *testing.T) {
	text := Gctld
	for key, value := range map[string]string{"dir": "/x", "listen": "0.0.0.0:7077", "advertise": "head.example.org:7077", "other": `a "b"`} {
		text = Set(text, key, value)
	}
	for _, want := range []string{"\ndir: \"/x\"\n", "\nlisten: \"0.0.0.0:7077\"\n", "\nadvertise: \"head.example.org:7077\"\n", "\nother: \"a \\\"b\\\"\"\n"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is there %d times", want, strings.Count(text, want))
		}
	}
	if strings.Contains(text, "\n# advertise:") {
		t.Error("the comment is there still")
	}
}
