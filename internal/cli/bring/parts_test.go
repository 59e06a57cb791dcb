package bring

import (
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// gitServer serves the repositories below a directory, and keeps of each request what it
// shows of logins.
type gitServer struct {
	*httptest.Server
	mu    sync.Mutex
	shown []string
}

func serveGit(t *testing.T, root string, wants bool) *gitServer {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not here")
	}
	s := &gitServer{}
	backend := &cgi.Handler{Path: program, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.shown = append(s.shown, r.Header.Get("X-Login")+r.Header.Get("Authorization"))
		s.mu.Unlock()
		if wants && r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="hostile"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// logins are all that it was shown since it was asked last; asked says that it was spoken to.
func (s *gitServer) logins() (text string, asked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, asked = strings.Join(s.shown, ""), len(s.shown) > 0
	s.shown = nil
	return text, asked
}

// TestPartsOfOthers: a repository that its user's logins are for may name parts at any
// address; no other server sees a login for that, and the repository's own sees it for
// what the user named alone.
func TestPartsOfOthers(t *testing.T) {
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"} {
		t.Setenv(name, value)
	}
	mine, hostile, asking := serveGit(t, home, false), serveGit(t, home, false), serveGit(t, home, true)
	repo := func(name string, parts ...string) {
		dir := filepath.Join(home, name)
		steps := [][]string{{"init", "-q", "-b", "main", dir}}
		for i, p := range parts {
			steps = append(steps, []string{"-C", dir, "-c", "http.extraHeader=Authorization: x", "submodule", "--quiet", "add", p, "part" + string(rune('a'+i))})
		}
		steps = append(steps, []string{"-C", dir, "commit", "-q", "--allow-empty", "-m", "x"})
		for _, args := range steps {
			if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v\n%s", args, err, out)
			}
		}
	}
	repo("code")
	repo("inner", hostile.URL+"/code")
	repo("other", hostile.URL+"/inner")
	repo("asks", asking.URL+"/code")
	if err := os.Mkdir(filepath.Join(home, "lab"), 0o755); err != nil {
		t.Fatal(err)
	}
	repo("lab/near", mine.URL+"/code", mine.URL+"/inner")
	for _, s := range []*gitServer{mine, hostile, asking} {
		s.logins()
	}
	config := "[http]\n\textraHeader = X-Login: hush\n[credential]\n\thelper = \"!echo username=ann; echo password=hush; :\"\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		from    string
		own     []string // what the addresses begin with that logins are for
		hostile bool     // it may see logins
		wrong   string
	}{
		"elsewhere":           {from: "/other", own: []string{mine.URL}},
		"elsewhere, named":    {from: "/other", own: []string{mine.URL, hostile.URL}, hostile: true},
		"in a part of a part": {from: "/lab/near", own: []string{mine.URL}},
		"asks for a login":    {from: "/asks", own: []string{mine.URL}, wrong: "its part " + asking.URL + "/code: git submodule: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := Repository{Address: mine.URL + tc.from, Own: func(address string) bool {
				for _, from := range tc.own {
					if strings.HasPrefix(address, from) {
						return true
					}
				}
				return false
			}}
			err := Clone(t.Context(), r, t.TempDir())
			var part *PartError
			if tc.wrong == "" && err != nil || tc.wrong != "" && (!errors.As(err, &part) || part.Own || !strings.Contains(err.Error(), tc.wrong)) {
				t.Errorf("got %v, want an error with %q", err, tc.wrong)
			}
			if shown, _ := mine.logins(); !strings.Contains(shown, "hush") {
				t.Errorf("the user's own server saw %q", shown)
			}
			if shown, asked := hostile.logins(); (shown != "") != tc.hostile || !asked && tc.wrong == "" {
				t.Errorf("another server (asked: %v) saw %q", asked, shown)
			}
			if shown, asked := asking.logins(); shown != "" || asked != (tc.wrong != "") {
				t.Errorf("a server that asks for a login (asked: %v) saw %q", asked, shown)
			}
		})
	}
	for own, want := range map[string]bool{mine.URL + "/lab": false, mine.URL: true} { // parts at the same server
		r := Repository{Address: mine.URL + "/lab/near", Own: func(a string) bool { return strings.HasPrefix(a, own+"/") }}
		if err := Clone(t.Context(), r, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		mine.mu.Lock()
		for i, s := range mine.shown {
			if i == len(mine.shown)-1 && (s != "") != want {
				t.Errorf("logins for %s: the last part is asked for with %q", own, s)
			}
		}
		mine.mu.Unlock()
		mine.logins()
	}
}
