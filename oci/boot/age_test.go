package boot

import (
	"os"
	"testing"
	"time"
)

// TestAge: how old this process is agrees with how long it has lived at least, and
// with the machine's age.
func TestAge(t *testing.T) {
	age, err := AgeOf(os.Getpid())
	if err != nil || age <= 0 || age > time.Hour {
		t.Errorf("this process has run for %s (%v)", age, err)
	}
	first, err := AgeOf(1)
	if err != nil || first < age {
		t.Errorf("the first process has run for %s (%v), and this one for %s", first, err, age)
	}
	if _, err := AgeOf(-1); err == nil {
		t.Error("a process that is not there has an age")
	}
}
