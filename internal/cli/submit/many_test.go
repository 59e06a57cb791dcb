package submit

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
)

// jobLine is a job in one line.
func jobLine(name string) string {
	return fmt.Sprintf(`{"name":%q,"request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"debian","command":"true"}}}`, name)
}

// manyServer takes jobs but those that are called denied, once for each key.
func manyServer(keys *[]string) *clitest.Fake {
	taken := map[string]job.Number{}
	return &clitest.Fake{Submit: func(r *api.SubmitRequest, key string) (*api.SubmitResponse, *api.Error) {
		if strings.Contains(string(r.Job), "denied") {
			return nil, api.Errorf(api.CodeDenied, "there is no such project")
		}
		*keys = append(*keys, key)
		n, again := taken[key]
		if !again {
			n = job.Number(len(taken) + 1)
			taken[key] = n
		}
		return &api.SubmitResponse{Number: n, State: job.Queued, Repeated: again}, nil
	}}
}

// TestLines: each line is a job of its own, a wrong or refused one is told by its
// place and keeps no other one out, and the same command with the same key gives the
// same jobs.
func TestLines(t *testing.T) {
	var keys []string
	fake := manyServer(&keys)
	b := clitest.Start(t, fake)
	text := jobLine("a") + "\n\n" + `{"request":{}}` + "\n" + jobLine("denied") + "\n" + jobLine("b")
	for range 2 {
		b.Out.Reset()
		b.Err.Reset()
		b.App.In = strings.NewReader(text)
		err := (&Submit{NDJSON: true, flags: flags{IdempotencyKey: "k"}}).Run(t.Context(), b.App)
		if exit.Code(err) != exit.Denied {
			t.Errorf("code %d: %v", exit.Code(err), err)
		}
		if diff := cmp.Diff("1\n2\n", b.Out.String()); diff != "" {
			t.Errorf("numbers (-want +got):\n%s", diff)
		}
		for _, want := range []string{"standard input:3: request.", "standard input:4: there is no such project"} {
			if !strings.Contains(b.Err.String(), want) {
				t.Errorf("%q is not said:\n%s", want, b.Err.String())
			}
		}
	}
	if diff := cmp.Diff([]string{"k.1", "k.3", "k.1", "k.3"}, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// TestLinesAlike: a fault of many lines is told once, and which others have it; so are
// what the controller refuses and notes.
func TestLinesAlike(t *testing.T) {
	var keys []string
	b := clitest.Start(t, manyServer(&keys))
	wrong, denied := `{"request":{}}`, jobLine("denied")
	b.App.In = strings.NewReader(strings.Join([]string{wrong, wrong, wrong, jobLine("a"), denied, wrong, "", denied}, "\n"))
	if err := (&Submit{NDJSON: true}).Run(t.Context(), b.App); exit.Code(err) == 0 {
		t.Error("it says that all went well")
	}
	said := b.Err.String()
	for _, want := range []string{"standard input:2-3, standard input:6: the same as standard input:1\n", "standard input:8: the same as standard input:5\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said:\n%s", want, said)
		}
	}
	if n := strings.Count(said, "there is no such project"); n != 1 {
		t.Errorf("a refusal is told %d times:\n%s", n, said)
	}
}

// TestRepeats: places are runs of lines, few of them, and notes are counted.
func TestRepeats(t *testing.T) {
	b := clitest.Start(t, manyServer(new([]string)))
	var r repeats
	fault := func(name string) { r.wrong(b.App, name, fmt.Errorf("%s: name: is missing", name)) }
	for _, name := range []string{"a.json", "b.json", "c:\\x", "d:7", "d:8", "d:0"} {
		fault(name)
	}
	for n := range maxPlaces {
		fault(fmt.Sprint("e:", 2*n+1))
	}
	note := api.Note{Path: "gpu", Message: "is ignored"}
	for want := range []int{1, 0, 0} {
		if news := r.news([]api.Note{note}); len(news) != max(0, 1-want) {
			t.Errorf("note %d: %v", want, news)
		}
	}
	r.end(b.App)
	want := "a.json: name: is missing\nnote: gpu: is ignored (the same for 2 more jobs)\n" +
		`b.json, c:\x, d:7-8, d:0, e:1, e:3, e:5, e:7, e:9, e:11, e:13, e:15, e:17, e:19, e:21, e:23, e:25, e:27, e:29, e:31 and 4 more places: the same as a.json` + "\n"
	if diff := cmp.Diff(want, b.Err.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyInFewRequests: what comes together goes out together, files as lines.
func TestManyInFewRequests(t *testing.T) {
	var keys []string
	fake := manyServer(&keys)
	b := clitest.Start(t, fake)
	dir := t.TempDir()
	var files []string
	var text strings.Builder
	for i := range 2*api.MaxSubmissions + 1 {
		text.WriteString(jobLine(fmt.Sprint("j", i)) + "\n")
		if i < 3 {
			files = append(files, filepath.Join(dir, fmt.Sprint(i)))
			if err := os.WriteFile(files[i], []byte(jobLine("f")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := (&Submit{Files: files}).Run(t.Context(), b.App); err != nil {
		t.Fatal(err)
	}
	b.App.In = strings.NewReader(text.String())
	if err := (&Submit{NDJSON: true}).Run(t.Context(), b.App); err != nil {
		t.Fatal(err)
	}
	if want := 3 + 2*api.MaxSubmissions + 1; len(keys) != want || strings.Count(b.Out.String(), "\n") != want {
		t.Errorf("%d jobs came, %d numbers were told, of %d", len(keys), strings.Count(b.Out.String(), "\n"), want)
	}
	post := "POST " + api.PathJobsMany
	if diff := cmp.Diff([]string{post, post, post, post}, fake.Seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestLinesBroken: where an answer is lost, the key is told by which the same command
// finishes its work.
func TestLinesBroken(t *testing.T) {
	b := clitest.Start(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	b.App.In = strings.NewReader(jobLine("a") + "\n" + jobLine("b") + "\n")
	err := (&Submit{NDJSON: true, flags: flags{IdempotencyKey: "k"}}).Run(t.Context(), b.App)
	if exit.Code(err) != exit.Unreachable || !strings.Contains(fmt.Sprint(err), "--idempotency-key k submits") {
		t.Errorf("code %d: %v", exit.Code(err), err)
	}
	for _, wrong := range []Submit{{flags: flags{Follow: true}}, {flags: flags{DryRun: true}}, {Wrap: "true"}} {
		wrong.NDJSON = true
		if err := wrong.Run(t.Context(), b.App); exit.Code(err) != exit.Usage {
			t.Errorf("%+v: %v", wrong.flags, err)
		}
	}
}

// TestJobsOfOneFile: the jobs of one manifest go out together, each with what lies
// beside them; a fault is told by its line and keeps all of them out.
func TestJobsOfOneFile(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {GREETING: hello}\n"
	one := func(name, more string) string {
		return fmt.Sprintf("---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: debian, command: [env], envFrom: [{configMapRef: {name: shared}}]%s}]}}}\n", name, more)
	}
	var docs []string
	fake := &clitest.Fake{Submit: func(r *api.SubmitRequest, _ string) (*api.SubmitResponse, *api.Error) {
		docs = append(docs, string(r.Job))
		return &api.SubmitResponse{Number: job.Number(len(docs)), State: job.Queued}, nil
	}}
	b := clitest.Start(t, fake)
	b.App.In = strings.NewReader(head + one("first", "") + one("second", ""))
	if err := (&Submit{}).Run(t.Context(), b.App); err != nil {
		t.Fatal(err)
	}
	if b.Out.String() != "1\n2\n" || len(docs) != 2 {
		t.Fatalf("%d jobs came, and %q was told", len(docs), b.Out.String())
	}
	for k, name := range []string{"first", "second"} {
		if !strings.Contains(docs[k], `"`+name+`"`) || !strings.Contains(docs[k], "hello") {
			t.Errorf("job %d is\n%s", k+1, docs[k])
		}
	}
	b.App.In = strings.NewReader(head + one("first", "") + one("second", ", no: such"))
	if err := (&Submit{}).Run(t.Context(), b.App); exit.Code(err) != exit.Usage || !strings.Contains(fmt.Sprint(err), "line 14") || len(docs) != 2 {
		t.Errorf("a fault in the second: %v; %d jobs came", err, len(docs))
	}
	b.App.In = strings.NewReader(head + one("first", "") + one("second", ""))
	if err := (&Submit{flags: flags{Follow: true}}).Run(t.Context(), b.App); exit.Code(err) != exit.Usage {
		t.Errorf("two jobs are followed: %v", err)
	}
}
