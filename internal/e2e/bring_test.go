package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// tree makes a directory of files.
func (s *site) tree(name string, files map[string]string) string {
	s.t.Helper()
	dir := filepath.Join(s.dir, name)
	for file, text := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	return dir
}

// TestBroughtAlong: a job has a directory of its user's, as it was at submission,
// in a copy of its own that it writes to, whatever is killed and whatever becomes
// of the directory; and the same again later.
func TestBroughtAlong(t *testing.T) {
	needs(t)
	s := newSite(t, siteOptions{})
	dir := s.tree("code", map[string]string{"main.sh": "#!/bin/sh\ncat lib/text\n", "lib/text": "first\n", ".gitignore": "out\n", "out/large": "x", "lib/user": ""})
	if err := os.Symlink("lib/text", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	args := []string{"--image", image, "-c", "1", "--mem", "1G", "--requeue", "--user", "1000", "--workdir-upload", dir, "--", "sh", "-c",
		"pwd; ./main.sh; cat link; test -e out && echo left-over; echo mine >out && cat out; stat -c %u lib/user; id -u"}
	id := strings.TrimSpace(s.must("gsubmit", append([]string{"--hold"}, args...)...))
	s.ctld.kill()
	s.tree("code", map[string]string{"lib/text": "second\n"})
	s.ctld.start()
	s.waitNodes("up", 1)
	s.must("gcancel", "--release", id)
	s.nodes[0].kill()
	s.nodes[0].start()
	want := "/workdir\nfirst\nfirst\nmine\n1000\n1000\n"
	look := func(id, want string) {
		t.Helper()
		d := s.wait(id)
		if diff := cmp.Diff(finished, endOf(d)); diff != "" {
			t.Fatalf("end (-want +got):\n%s\n%s", diff, describe(d))
		}
		if got := s.must("glog", id); got != want {
			t.Errorf("job %s wrote %q, want %q", id, got, want)
		}
	}
	look(id, want)
	look(strings.TrimSpace(s.must("gsubmit", args...)), strings.ReplaceAll(want, "first", "second"))
	look(strings.TrimSpace(s.must("gsubmit", "--again", id)), want)
	asStranger := s.as(stranger)
	if r := asStranger("gsubmit", "--again", id); r.code == 0 {
		t.Errorf("somebody else submitted it again: %v", r)
	}
	uri := s.job(id).Spec.Gbatch.Inputs[0].URI
	theirs := s.write(doc{command: sh("cat /x/lib/text"), gbatch: map[string]any{"inputs": []any{map[string]any{"uri": uri, "path": "/x"}}}}.json())
	if r := asStranger("gsubmit", theirs); r.code != 2 || !strings.Contains(r.err, "has not brought along") {
		t.Errorf("somebody else's job with it: %v", r)
	}
	look(strings.TrimSpace(s.must("gsubmit", theirs)), "first\n")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "passwords")); err != nil {
		t.Fatal(err)
	}
	if r := s.run("gsubmit", args...); r.code != 2 || !strings.Contains(r.err, `"passwords" is a link to "/etc/passwd"`) {
		t.Errorf("a link out of it: %v", r)
	}
}

// TestBroughtAlongAndLost: what the controller has no more is the site's fault,
// and said in a sentence.
func TestBroughtAlongAndLost(t *testing.T) {
	needs(t)
	s := newSite(t, siteOptions{})
	dir := s.tree("code", map[string]string{"x": "x"})
	id := strings.TrimSpace(s.must("gsubmit", "--hold", "--image", image, "-c", "1", "--mem", "1G", "--workdir-upload", dir, "--", "cat", "x"))
	s.ctld.kill()
	if err := os.RemoveAll(filepath.Join(s.dir, "ctld", "trees")); err != nil {
		t.Fatal(err)
	}
	s.ctld.start()
	s.waitNodes("up", 1)
	s.must("gcancel", "--release", id)
	d := s.wait(id)
	if d.Reason != string(job.InputFailed) || !strings.Contains(d.ReasonText, "submit the job again") && !strings.Contains(d.ReasonText, "is not on the controller") {
		t.Errorf("it ended by\n%s", describe(d))
	}
}
