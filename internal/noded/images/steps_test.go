package images

import (
	"fmt"
	"strings"
	"testing"

	"gbatch/oci/ref"
)

// TestSteps: an image stays the same for a rank's steps, also over restarts, a name's counts
// before what is asked for beside it, and there is an end to them.
func TestSteps(t *testing.T) {
	dir := t.TempDir()
	parse := func(s string) ref.Ref {
		r, _, err := ref.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	digest := func(n int) string { return fmt.Sprintf("sha256:%064d", n) }
	own := parse("reg.example/job:1").WithDigest(digest(0))
	s, err := LoadSteps(dir)
	if err != nil {
		t.Fatal(err)
	}
	find := func(asked, name, want string) {
		t.Helper()
		if r, _, err := s.Find(asked, name, own); err != nil || r.String() != want {
			t.Errorf("%q by the name %q: %v, %v, want %s", asked, name, r, err, want)
		}
	}
	find("", "", own.String())
	find("reg.example/job:1", "", own.String())
	find("reg.example/a:1", "n", parse("reg.example/a:1").String())
	a := parse("reg.example/a:1").WithDigest(digest(1))
	if err := s.Pin("reg.example/a:1", "n", a); err != nil {
		t.Fatal(err)
	}
	if s, err = LoadSteps(dir); err != nil {
		t.Fatal(err)
	}
	find("reg.example/a:1", "", a.String())
	find("reg.example/b:1", "n", a.String())
	find("", "n", a.String())
	for i := 2; i <= maxStepImages; i++ {
		at := fmt.Sprintf("reg.example/more:%d", i)
		if err := s.Pin(at, "", parse(at).WithDigest(digest(i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Find("reg.example/b:1", "", own); err == nil || !strings.Contains(err.Error(), "which is the most") {
		t.Errorf("one too many: %v", err)
	}
	for i := 1; i < maxStepNames; i++ {
		if err := s.Pin("", fmt.Sprint("name", i), own); err != nil {
			t.Fatal(err)
		}
	}
	find("", "name1", own.String())
	if _, _, err := s.Find("", "other", own); err == nil || !strings.Contains(err.Error(), "64 names of containers") {
		t.Errorf("one name too many: %v", err)
	}
	if got := s.Digests(); len(got) < maxStepImages {
		t.Errorf("it holds %v", got)
	}
}
