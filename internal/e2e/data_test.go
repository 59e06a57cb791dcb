package e2e

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/transfer/s3test"
)

// withS3 is a site whose s3:// leads to a server of the test.
func withS3(t *testing.T) (*site, *s3test.Server) {
	needs(t)
	s3 := s3test.New(t)
	return newSite(t, siteOptions{nodeConfig: fmt.Sprintf("data: {endpoint: %q, plainHTTP: true}\n", s3.URL)}), s3
}

// keyFile is a file outside of the site with a secret in it.
func keyFile(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDataInAndOut is a job as its user meets it: data from S3, a secret that
// is replaced while it runs, progress, results to S3. The keys are nowhere.
func TestDataInAndOut(t *testing.T) {
	t.Parallel() // it mostly waits
	s, s3 := withS3(t)
	s3.Put("lab/data/a", "2\n")
	s3.Put("lab/data/b/c", "40\n")
	hidden := "e2e-hidden-" + rand.Text()
	work := s.write(doc{name: "sum", env: map[string]string{"TOKEN": "the secret wins over this"}, storage: []any{"/project"}, command: sh(`mkdir /out
printf %s "$TOKEN" | sha256sum | cut -c1-64
echo '{"percentComplete":50,"name":"half"}' >/out/p.json
until cmp -s /var/secrets/TOKEN /project/expect; do sleep 0.1; done
printf %s "$TOKEN" | sha256sum | cut -c1-64
cat /data/a /data/b/c | awk '{s+=$1} END {print s}' >/out/sum.txt
echo '{"percentComplete":100}' >/out/p.json`), gbatch: map[string]any{
		"inputs":       []any{map[string]any{"uri": "s3://lab/data/", "path": "/data", "cache": true}},
		"outputs":      []any{map[string]any{"path": "/out", "uri": "s3://lab/runs/{job}/", "pattern": "*.txt"}},
		"secrets":      []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "TOKEN"},
		"progressFile": "/out/p.json", "requireProgress": true,
	}}.json())
	if r := s.run("gsubmit", "--secret", "AWS_ACCESS_KEY_ID@"+keyFile(t, s3test.AccessKey), work); r.code != 2 ||
		!strings.Contains(r.err, "secret AWS_SECRET_ACCESS_KEY has no value") || !strings.Contains(r.err, "secret TOKEN has no value") {
		t.Fatalf("secrets without values: %v", r)
	}
	id := strings.TrimSpace(s.must("gsubmit", "--secret", "AWS_ACCESS_KEY_ID@"+keyFile(t, s3test.AccessKey), "--secret", "AWS_SECRET_ACCESS_KEY@"+keyFile(t, s3test.SecretKey),
		"--secret", "TOKEN@"+keyFile(t, hidden+"-1"), work))
	eventually(t, "its progress is shown", func() bool { return strings.Contains(s.must("gqueue", "show", id), "50% (half)") })
	s.nowhere(hidden, id)
	s.nowhere(s3test.SecretKey, id)
	for _, d := range append([]*daemon{s.ctld}, s.nodes...) {
		d.kill()
		d.start()
	}
	s.waitNodes("up", 1)
	out := s.must("gqueue", "secret", id, "TOKEN@"+keyFile(t, hidden+"-2"))
	if !strings.Contains(out, "processes that run keep the variables") {
		t.Errorf("gqueue secret: %s", out)
	}
	sum := sha256.Sum256([]byte(hidden + "-1"))
	expect := filepath.Join(s.project(), "expect")
	if err := os.WriteFile(expect, []byte(hidden+"-2"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := s.wait(id)
	if err := os.Remove(expect); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(finished, endOf(d)); diff != "" {
		t.Fatalf("end (-want +got):\n%s\n%s", diff, describe(d))
	}
	if want, got := fmt.Sprintf("%x\n%x\n", sum, sum), s.must("glog", id); got != want {
		t.Errorf("it printed %q, want %q", got, want)
	}
	if got, _ := s3.Get("lab/runs/" + id + "/sum.txt"); got != "42\n" {
		t.Errorf("saved %q", got)
	}
	s.nowhere(hidden, id)
	if r := s.run("gqueue", "secret", id, "TOKEN=x"); r.code == 0 {
		t.Errorf("a secret of a job that has ended: %v", r)
	}
}

// TestDataThatFails: the timeline says what was wrong, in words of the job.
func TestDataThatFails(t *testing.T) {
	s, s3 := withS3(t)
	s3.Put("lab/x", "x")
	keys := []string{"--secret", "AWS_ACCESS_KEY_ID@" + keyFile(t, s3test.AccessKey), "--secret", "AWS_SECRET_ACCESS_KEY@" + keyFile(t, s3test.SecretKey)}
	tests := map[string]struct {
		gbatch map[string]any
		reason job.Reason
		text   string
	}{
		"missing":  {map[string]any{"inputs": []any{map[string]any{"uri": "s3://lab/y", "path": "/y"}}}, job.InputFailed, "input s3://lab/y: there is no such object"},
		"inside":   {map[string]any{"inputs": []any{map[string]any{"uri": "http://localhost:22/", "path": "/y"}}}, "", "is a directory, and web servers do not list what is in one"},
		"the node": {map[string]any{"inputs": []any{map[string]any{"uri": "http://localhost:22/x", "path": "/y"}}}, job.InputFailed, "localhost is inside this site"},
		"nothing":  {map[string]any{"outputs": []any{map[string]any{"path": "/y", "uri": "s3://lab/y"}}}, job.OutputFailed, "the program left no /y"},
		"progress": {map[string]any{"progressFile": "/p", "requireProgress": true}, job.Progress, "never wrote its progress to /p"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := s.run("gsubmit", append(keys, s.write(doc{command: "true", gbatch: tc.gbatch}.json()))...)
			if tc.reason == "" {
				if r.code != 2 || !strings.Contains(r.err, tc.text) {
					t.Errorf("gsubmit: %v", r)
				}
				return
			}
			d := s.wait(strings.TrimSpace(r.out))
			if diff := cmp.Diff(ended{job.Failed, tc.reason, 125}, endOf(d)); diff != "" || !strings.Contains(d.ReasonText, tc.text) {
				t.Errorf("end (-want +got):\n%s\n%s", diff, d.ReasonText)
			}
		})
	}
}

// TestTasksSaveTheirOwn: each task of an array gets the job's secrets, and
// saves where its number says.
func TestTasksSaveTheirOwn(t *testing.T) {
	s, s3 := withS3(t)
	work := s.write(doc{name: "sweep", command: sh(`mkdir /out; echo "$GBATCH_TASK $(cat /var/secrets/TOKEN | wc -c)" >/out/n`), gbatch: map[string]any{
		"tasks":   "1-3",
		"outputs": []any{map[string]any{"path": "/out", "uri": "s3://lab/sweep/{task}/"}},
		"secrets": []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "TOKEN"},
	}}.json())
	id := strings.TrimSpace(s.must("gsubmit", "--secret", "AWS_ACCESS_KEY_ID@"+keyFile(t, s3test.AccessKey), "--secret", "AWS_SECRET_ACCESS_KEY@"+keyFile(t, s3test.SecretKey), "--secret", "TOKEN@"+keyFile(t, "12345"), work))
	if d := s.wait(id); d.State != job.Finished {
		t.Fatalf("the array ended so:\n%s", describe(d))
	}
	for _, n := range []string{"1", "2", "3"} {
		if got, _ := s3.Get("lab/sweep/" + n + "/n"); got != n+" 5\n" {
			t.Errorf("task %s saved %q", n, got)
		}
	}
	s.nowhere(s3test.SecretKey, id)
}
