package lease

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gbatch/oci/atomicfile"
	"gbatch/oci/boot"
)

// TestDamagedLease: a file of which a bit is another is no lease, but where what it says is the same. One of an earlier version, without
// a sum, is; and earlier versions read one of this.
func TestDamagedLease(t *testing.T) {
	want := Lease{UntilMS: (boot.Elapsed() + time.Hour).Milliseconds(), GuardMS: 8}
	whole, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	var old Lease
	if err := json.Unmarshal(whole, &old); err != nil || old != want {
		t.Errorf("an earlier version reads %v, %v", old, err)
	}
	file := filepath.Join(t.TempDir(), "lease")
	left := func(content []byte) (time.Duration, error) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return Left(file)
	}
	earlier, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"whole": whole, "of an earlier version": earlier} {
		if got, err := left(content); err != nil || got < time.Minute {
			t.Errorf("%s: %v left, %v", name, got, err)
		}
	}
	noticed := 0
	for bit := range 8 * len(whole) {
		damaged := append([]byte{}, whole...)
		damaged[bit/8] ^= 1 << (bit % 8)
		switch got, err := left(damaged); {
		case errors.Is(err, atomicfile.ErrDamaged):
			noticed++
		case err != nil:
			t.Errorf("bit %d: %v", bit, err)
		case got < time.Minute || got > time.Hour:
			t.Errorf("bit %d: %v left by %s", bit, got, damaged)
		}
	}
	if most := 8 * len(whole); noticed < most*2/3 {
		t.Errorf("%d of %d bits were noticed", noticed, most)
	}
}
