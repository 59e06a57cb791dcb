package sizes

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{"2000": 2000, "1G": 1024, "1g": 1024, "2GB": 2048, "1T": 1 << 20, "1025K": 2, "500M": 500, "0": 0, "": -1, "G": -1, "1.5G": -1, "-1": -1, "1X": -1} {
		got, err := Parse(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d MiB, want %d", text, got, want)
		}
	}
}
