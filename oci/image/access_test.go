package image

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gbatch/oci/ref"
)

// private makes a registry let in only users whose password is their name
// twice, and mallory nowhere but in mallory/.
func (f *fakeRegistry) private() {
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		user, password, ok := r.BasicAuth()
		switch {
		case !ok || password != user+user:
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		case user == "mallory" && r.URL.Path != "/v2/" && !strings.HasPrefix(r.URL.Path, "/v2/mallory/"):
			w.WriteHeader(http.StatusForbidden)
		default:
			return false
		}
		return true
	})
}

func login(user string) *ref.Credentials {
	return &ref.Credentials{Username: user, Password: user + user}
}

func TestPrivateImages(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "team/b:1", small(t, "x"))
	f.private()
	s := open(t, Config{})
	if img := pull(t, s, r, login("alice")); img.Digest != digest {
		t.Fatalf("got %s", img.Digest)
	}
	pinned := r.WithDigest(digest)
	cases := map[string]struct {
		creds *ref.Credentials
		want  string
	}{
		"mallory":        {login("mallory"), "login refused by registry " + f.host + " for user mallory, or that user may not read the image"},
		"wrong_password": {&ref.Credentials{Username: "alice", Password: "WRONGSECRET"}, "login refused by registry " + f.host + " for user alice"},
		"nobody":         {nil, "wants a login: the image is private or does not exist"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, r := range []ref.Ref{r, pinned} {
				_, err := s.Pull(t.Context(), PullRequest{Ref: r, Credentials: tc.creds})
				e := wantError(t, err, Denied, tc.want)
				if strings.Contains(fmt.Sprintf("%v %+v %v", e, e.cause, e.Detail), "SECRET") || e.Temporary {
					t.Errorf("temporary, or shows the password: %+v", e)
				}
			}
		})
	}
	// Whoever was let in needs no network; whoever was not, is not let in
	// because the registry is away.
	pull(t, s, pinned, login("bob"))
	f.Close()
	pull(t, s, pinned, login("alice"))
	pull(t, s, pinned, login("bob"))
	_, err := s.Pull(t.Context(), PullRequest{Ref: pinned, Credentials: login("mallory")})
	wantError(t, err, Unreachable, "cannot be reached")
	_, err = s.Pull(t.Context(), PullRequest{Ref: pinned})
	wantError(t, err, Unreachable, "cannot be reached")
}

// A public image that was first pulled with a login is everybody's once the
// registry has said so.
func TestPublicImageAfterLogin(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{})
	pull(t, s, r, login("alice"))
	f.reset()
	pull(t, s, r.WithDigest(digest), nil)
	if f.count("HEAD", digest) != 1 {
		t.Errorf("requests: %v", f.seen)
	}
	f.Close()
	pull(t, s, r.WithDigest(digest), login("carol"))
	// The right to a digest does not carry over to another repository.
	_, err := s.Pull(t.Context(), PullRequest{Ref: f.ref(t, "other/c@"+digest)})
	wantError(t, err, Unreachable, "cannot be reached")
}

func TestStoreKeepsNoPassword(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{})
	creds := &ref.Credentials{Username: "alice", Password: "SECRET-PASSWORD"}
	img := pull(t, s, r, creds)
	if strings.Contains(fmt.Sprintf("%+v %+v", img, s.Images()), creds.Password) {
		t.Error("shown in the API")
	}
	err := filepath.WalkDir(s.config.Dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(name)
		if strings.Contains(string(raw), creds.Password) {
			t.Errorf("%s holds the password", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(s.config.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("store has mode %v, %v", info.Mode(), err)
	}
}

// The token service that Docker Hub, GitLab and NGC use.
func TestTokenLogin(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "team/b:1", small(t, "x"))
	var scopes []string
	var generation atomic.Int32
	token := func(user string) string { return fmt.Sprint("T", generation.Load(), "-", user) }
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if password != user+user {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		scopes = append(scopes, r.FormValue("scope"))
		json.NewEncoder(w).Encode(map[string]any{"token": token(user), "expires_in": 300})
	}))
	defer tokens.Close()
	// A name, as the client sends no login to an address in a private network
	// unless it is the registry's own.
	realm := strings.Replace(tokens.URL, "127.0.0.1", "localhost", 1)
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer "+token("alice") {
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="test",scope="repository:team/b:pull"`, realm))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	s := open(t, Config{})
	pull(t, s, r, login("alice"))
	if len(scopes) == 0 || scopes[0] != "repository:team/b:pull" {
		t.Errorf("asked for scopes %q", scopes)
	}
	asked := len(scopes)
	if pull(t, s, r, login("alice")); len(scopes) != asked {
		t.Errorf("the next pull asked for scopes %q", scopes[asked:])
	}
	generation.Add(1) // the registry takes the old one no more
	if pull(t, s, r, login("alice")); len(scopes) != asked+1 {
		t.Errorf("a pull with a token that is over asked for scopes %q", scopes[asked:])
	}
	_, err := s.Pull(t.Context(), PullRequest{Ref: r, Credentials: &ref.Credentials{Username: "alice", Password: "no"}})
	wantError(t, err, Denied, "login refused by registry")
}

func TestNodeCredentials(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "team/b:1", small(t, "x"))
	f.private()

	dir := t.TempDir()
	auth := base64.StdEncoding.EncodeToString([]byte("node:nodenode"))
	write(t, dir, "config.json", fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, f.host, auth))
	pull(t, open(t, Config{DockerConfigDir: dir}), r, nil)

	// The same by a credential helper.
	helpers := t.TempDir()
	write(t, helpers, "docker-credential-testing", "#!/bin/sh\necho '{\"Username\":\"helped\",\"Secret\":\"helpedhelped\"}'\n")
	t.Setenv("PATH", helpers+":"+os.Getenv("PATH"))
	write(t, dir, "config.json", fmt.Sprintf(`{"credHelpers":{%q:"testing"}}`, f.host))
	pull(t, open(t, Config{DockerConfigDir: dir}), r, nil)

	// Without them there is no access, and a user's own come first.
	s := open(t, Config{DockerConfigDir: t.TempDir()})
	_, err := s.Pull(t.Context(), PullRequest{Ref: r})
	wantError(t, err, Denied, "wants a login")
	s = open(t, Config{DockerConfigDir: dir})
	_, err = s.Pull(t.Context(), PullRequest{Ref: r, Credentials: login("mallory")})
	wantError(t, err, Denied, "for user mallory")

	write(t, dir, "config.json", `{"auths":`)
	_, err = open(t, Config{DockerConfigDir: dir}).Pull(t.Context(), PullRequest{Ref: r})
	wantError(t, err, Internal, "the node's docker config cannot be read")
}

// Docker Hub is filed under a name of its own in docker's config.
func TestNodeCredentialsForHub(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "config.json", `{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"}}}`)
	for registry, want := range map[string]credentials{parse(t, "ubuntu").Registry: {Auth: "", Username: "u", Password: "p"}, "other.example": {}} {
		if got, err := nodeLogin(dir, registry); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", registry, got, err)
		}
	}
}

func TestMirrors(t *testing.T) {
	origin, mirror, empty := newRegistry(t), newRegistry(t), newRegistry(t)
	img := small(t, "x")
	r, _ := origin.push(t, "a/b:1", img)
	mirror.push(t, "proxy/a/b:1", img)
	dead := httptest.NewServer(nil)
	dead.Close()
	mirrors := []string{strings.TrimPrefix(dead.URL, "http://"), empty.host, mirror.host + "/proxy"}

	var leaked atomic.Bool
	mirror.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
		if _, _, ok := r.BasicAuth(); ok {
			leaked.Store(true)
		}
		return false
	})
	s := open(t, Config{Mirrors: map[string][]string{origin.host: mirrors}})
	pull(t, s, r, login("alice"))
	if len(origin.seen) != 0 || mirror.count("GET", "/blobs/") != 3 {
		t.Errorf("origin saw %v, mirror saw %v", origin.seen, mirror.seen)
	}
	if leaked.Load() {
		t.Error("the user's credentials went to the mirror")
	}

	// A mirror that breaks off or sends wrong bytes is left for the origin.
	for name, body := range map[string]string{"short": "", "wrong": "wrong bytes"} {
		t.Run(name, func(t *testing.T) {
			mirror.setFault(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
					if body == "" {
						w.Header().Set("Content-Length", "1000")
					}
					fmt.Fprint(w, body)
					return true
				}
				return false
			})
			pull(t, open(t, Config{Mirrors: map[string][]string{origin.host: mirrors}}), r, nil)
		})
	}
	// The origin's refusal is what counts.
	_, err := s.Pull(t.Context(), PullRequest{Ref: origin.ref(t, "a/none:1")})
	wantError(t, err, NotFound, "no such tag at registry "+origin.host)
}

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}
