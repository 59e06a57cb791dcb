package bring

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func always(own bool) func(string) bool { return func(string) bool { return own } }

// TestClone: of a repository elsewhere come all files of the commit that is asked for,
// also such as its own list of ignored names has, and nothing that git knows of it.
func TestClone(t *testing.T) {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not here")
	}
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"} {
		t.Setenv(name, value)
	}
	repo := filepath.Join(home, "lab", "code")
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(program, append([]string{"-C", repo}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.MkdirAll(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	run("init", "-q", "-b", "main")
	write := func(text string) string {
		for name, text := range map[string]string{"text": text, ".gitignore": "out\n", "out": "tracked all the same"} {
			if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		run("add", "--force", ".")
		run("commit", "-q", "-m", text)
		return run("rev-parse", "--short", "HEAD")
	}
	first := write("first")
	write("second")
	run("checkout", "-q", "-b", "other")
	write("of another branch")
	run("checkout", "-q", "main")
	server := httptest.NewServer(&cgi.Handler{Path: program, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + home, "GIT_HTTP_EXPORT_ALL=1"}})
	defer server.Close()
	run("config", "--global", "url."+server.URL+"/lab/.insteadOf", "http://short.example/")
	for name, tc := range map[string]struct {
		from  string
		at    Repository
		want  string
		wrong string
	}{
		"newest":     {from: "/lab/code", want: "second"},
		"branch":     {from: "/lab/code", at: Repository{Branch: "other"}, want: "of another branch"},
		"commit":     {from: "/lab/code", at: Repository{Branch: "main", Hash: first}, want: "first"},
		"no branch":  {from: "/lab/code", at: Repository{Branch: "none"}, wrong: "none"},
		"no commit":  {from: "/lab/code", at: Repository{Hash: "0123456789"}, wrong: "0123456789"},
		"repository": {from: "/lab/nothing", wrong: "/lab/nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tc.at.Address, tc.at.Own = server.URL+tc.from, always(name == "branch")
			err := Clone(t.Context(), tc.at, dir)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("got %v, want an error about %s", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := os.ReadFile(filepath.Join(dir, "text")); string(got) != tc.want {
				t.Errorf("text is %q, want %q", got, tc.want)
			}
			if p, err := PackAll(t.Context(), dir); err != nil || p.Size.Files != 3 {
				t.Errorf("%+v comes along: %v; want text, out and .gitignore", p, err)
			}
		})
	}
	repo = filepath.Join(home, "lab", "whole") // which has the other as a part
	if err := os.MkdirAll(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	run("init", "-q", "-b", "main")
	run("submodule", "--quiet", "add", server.URL+"/lab/code", "part")
	run("commit", "-q", "-m", "whole")
	dir := t.TempDir()
	if err := Clone(t.Context(), Repository{Address: server.URL + "/lab/whole", Own: always(false)}, dir); err != nil {
		t.Fatal(err)
	}
	if p, err := PackAll(t.Context(), dir); err != nil || p.Size.Files != 5 {
		t.Errorf("%+v comes along: %v; want .gitmodules, part and the three files in it", p, err)
	}
	if err := Clone(t.Context(), Repository{Address: "ext::touch " + home + "/ran", Own: always(true)}, t.TempDir()); err == nil {
		t.Error("a command in place of an address was run")
	}
	for own, want := range map[bool]string{true: "second", false: ""} { // by a setting of the user's
		dir := t.TempDir()
		err := Clone(t.Context(), Repository{Address: "http://short.example/code", Own: always(own)}, dir)
		if got, _ := os.ReadFile(filepath.Join(dir, "text")); string(got) != want || own != (err == nil) {
			t.Errorf("with the user's settings %v: %q and %v", own, got, err)
		}
	}
	if got := redacted("https://ann:hush@example.org/x"); strings.Contains(got, "hush") {
		t.Errorf("an address is shown with its password: %s", got)
	}
}

// TestCloneForStrangers: what the environment has of git's settings and client
// certificates is for the user's own repositories alone, and none that git works in
// already is touched.
func TestCloneForStrangers(t *testing.T) {
	here := []string{"HOME=/home/ann", "GIT_DIR=/work/.git", "GIT_WORK_TREE=/work", "GIT_INDEX_FILE=x", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader",
		"GIT_CONFIG_VALUE_0=Authorization: hush", "GIT_CONFIG_PARAMETERS='x.y=z'", "GIT_SSL_CERT=/c", "GIT_SSL_KEY=/k", "GIT_SSL_CAINFO=/ca", "GIT_PROXY_COMMAND=/p"}
	for own, want := range map[bool][]string{
		false: {"HOME=/home/ann", "GIT_SSL_CAINFO=/ca"},
		true:  append([]string{"HOME=/home/ann"}, here[4:]...),
	} {
		if diff := cmp.Diff(want, environment(here, own)); diff != "" {
			t.Errorf("git's environment, own %v (-want +got):\n%s", own, diff)
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	headers := make(chan http.Header, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		http.NotFound(w, r)
	}))
	defer server.Close()
	for name, value := range map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": "X-Login: hush", "GIT_DIR": t.TempDir()} {
		t.Setenv(name, value)
	}
	for own, want := range map[bool]string{false: "", true: "hush"} {
		if err := Clone(t.Context(), Repository{Address: server.URL + "/x", Own: always(own)}, t.TempDir()); err == nil {
			t.Error("nothing was cloned without an error")
		}
		if got := (<-headers).Get("X-Login"); got != want {
			t.Errorf("the server is shown the login %q, own %v, want %q", got, own, want)
		}
		for len(headers) > 0 {
			<-headers
		}
	}
}
