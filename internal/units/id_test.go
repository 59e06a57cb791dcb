package units

import "testing"

// TestParseID: a number is taken as it is or not at all.
func TestParseID(t *testing.T) {
	for text, want := range map[string]uint32{"0": 0, "1000": 1000, "2147483648": 1 << 31, "4294967294": MaxID} {
		if got, err := ParseID(text); err != nil || got != want {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "+1", "4294967295", "4294967296", "4294968296", "18446744073709551616", "0x10", "1e3", " 1", "root"} {
		if got, err := ParseID(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
