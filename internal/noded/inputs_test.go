package noded

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/transfer/s3test"
)

// dataSite is a node that may reach this machine, with an S3 server and a
// storage root.
type dataSite struct {
	*site
	s3  *s3test.Server
	top string // of the storage /project
}

func newDataSite(t *testing.T, change func(*config.Config)) *dataSite {
	needContainers(t)
	d := &dataSite{s3: s3test.New(t), top: shared(t)}
	d.site = newSite(t, func(c *config.Config) {
		c.Data = config.Data{Endpoint: d.s3.URL, PlainHTTP: true}
		c.Storage = []config.StorageRoot{{Name: "/project", Path: d.top}}
		if change != nil {
			change(c)
		}
	})
	return d
}

var s3Keys = map[string]string{"AWS_ACCESS_KEY_ID": s3test.AccessKey, "AWS_SECRET_ACCESS_KEY": s3test.SecretKey + "\n"}

// dataOrder is a rank with data and the keys of the S3 server.
func (d *dataSite) dataOrder(id job.RankID, line string, g job.Gbatch, change ...func(*api.RunOrder)) *api.RunOrder {
	d.setSecrets(id, 1, s3Keys)
	g.Secrets = []job.Secret{{Name: "AWS_ACCESS_KEY_ID"}, {Name: "AWS_SECRET_ACCESS_KEY"}}
	return order(line, append(change, func(o *api.RunOrder) { o.Spec.Gbatch = &g })...)
}

// TestInputs: objects, prefixes, files of the storage and of web servers are
// there before the program starts, belong to its user, and go with it.
func TestInputs(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "fourth\n") }))
	defer web.Close()
	d := newDataSite(t, func(c *config.Config) { c.Data.Hosts = []string{strings.TrimPrefix(web.URL, "http://")} })
	d.start()
	large := strings.Repeat("0123456789abcdef", 2<<20)
	sum := sha256.Sum256([]byte(large))
	d.s3.Put("lab/data/one", "first\n")
	d.s3.Put("lab/data/sub/two", "second\n")
	d.s3.Put("lab/large", large)
	if err := os.WriteFile(filepath.Join(d.top, "conf"), []byte("third\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	id := rankID(1)
	e, out := d.run(id, d.dataOrder(id, `cd /in; find . -type f | sort; cat data/one data/sub/two conf; cat /web; wc -c </in/large; sha256sum </in/large | cut -c1-64
stat -c '%n %U %a' data data/sub data/sub/two conf /web; echo more >>data/one && echo can write; echo x >/cached/one; ls /var/secrets | head -1`, job.Gbatch{Inputs: []job.Input{
		{URI: "s3://lab/data/", Path: "/in/data"},
		{URI: "s3://lab/large", Path: "/in/large", SHA256: hex.EncodeToString(sum[:])},
		{URI: "file:///project/conf", Path: "/in/conf"},
		{URI: web.URL + "/x", Path: "/web"},
		{URI: "s3://lab/data/", Path: "/cached", Cache: true},
	}}, func(o *api.RunOrder) { o.Spec.Request.Docker.User = "bob" }))
	want := fmt.Sprintf(`./conf
./data/one
./data/sub/two
./large
first
second
third
fourth
%d
%x
data bob 755
data/sub bob 755
data/sub/two bob 644
conf bob 644
/web bob 644
can write
/bin/sh: can't create /cached/one: Read-only file system
AWS_ACCESS_KEY_ID
`, len(large), sum)
	if diff := cmp.Diff(want, out); diff != "" || e.Code != 0 {
		t.Errorf("output (-want +got):\n%s\n%+v", diff, e)
	}
	d.holdsNothing()
	if left, _ := filepath.Glob(filepath.Join(d.cfg.Data.Dir, "ranks", "*")); len(left) > 0 {
		t.Errorf("inputs are left: %v", left)
	}
	// The cache has it for the next, who shows by a byte that it may be read.
	d.s3.Hook(nil)
	id = rankID(2)
	e, out = d.run(id, d.dataOrder(id, "cat /cached/one", job.Gbatch{Inputs: []job.Input{{URI: "s3://lab/data/", Path: "/cached", Cache: true}}}))
	if asked := d.s3.Requests("GET /lab/data/"); e.Code != 0 || out != "first\n" || len(asked) != 1 || !strings.HasSuffix(asked[0], " bytes=0-0") {
		t.Errorf("from the cache: %q %+v, requests %v", out, e, d.s3.Requests("GET"))
	}
	d.holdsNothing()
	d.leavesNothing()
}

// TestInputsFail: each failure is told as whose it is, and names the URI.
func TestInputsFail(t *testing.T) {
	d := newDataSite(t, func(c *config.Config) { c.Data.MaxInput = 1 << 20 })
	d.start()
	d.s3.Put("lab/x", "x")
	d.s3.Put("lab/large", strings.Repeat("x", 1<<20+1))
	if err := os.Symlink("/etc/passwd", filepath.Join(d.top, "link")); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		in     job.Input
		s3     *job.S3
		values map[string]string
		reason job.Reason
		text   string
	}{
		"missing":  {in: job.Input{URI: "s3://lab/nothing"}, reason: job.InputFailed, text: "input s3://lab/nothing: there is no such object"},
		"keys":     {in: job.Input{URI: "s3://lab/"}, values: map[string]string{"AWS_ACCESS_KEY_ID": s3test.AccessKey, "AWS_SECRET_ACCESS_KEY": "wrong"}, reason: job.InputFailed, text: "input s3://lab/: the server does not take the keys (SignatureDoesNotMatch); check the job's secrets"},
		"one key":  {in: job.Input{URI: "s3://lab/x"}, values: map[string]string{"AWS_ACCESS_KEY_ID": "x"}, reason: job.InputFailed, text: "input s3://lab/x: the job's secrets have one of the two keys of S3, and not the other"},
		"too much": {in: job.Input{URI: "s3://lab/large"}, reason: job.InputFailed, text: "input s3://lab/large: has 1.0 MiB; with the job's other inputs that is more than 1.0 MiB, this site's limit"},
		"checksum": {in: job.Input{URI: "s3://lab/x", SHA256: strings.Repeat("0", 64)}, reason: job.InputFailed, text: fmt.Sprintf("input s3://lab/x: has the SHA-256 %x, and %064d was expected", sha256.Sum256([]byte("x")), 0)},
		"the node": {in: job.Input{URI: "http://localhost:1/"}, reason: job.InputFailed, text: "input http://localhost:1/: localhost is inside this site, which may not be reached for jobs; its administrator can allow the host"},
		"metadata": {in: job.Input{URI: "s3://lab/x"}, s3: &job.S3{Endpoint: "http://169.254.169.254"}, reason: job.InputFailed, text: "input s3://lab/x: 169.254.169.254 is inside this site, which may not be reached for jobs; its administrator can allow the host"},
		"no root":  {in: job.Input{URI: "file:///etc/passwd"}, reason: job.InputFailed, text: `input file:///etc/passwd: storage "/etc" is not offered by this node; its storage is: /project, tmpfs`},
		"dots":     {in: job.Input{URI: "file:///project/../etc/passwd"}, reason: job.InputFailed, text: `input file:///project/../etc/passwd: storage "/etc" is not offered by this node; its storage is: /project, tmpfs`},
		"link":     {in: job.Input{URI: "file:///project/link"}, reason: job.InputFailed, text: `input file:///project/link: file "link" cannot be read: path escapes from parent`},
	}
	n := 0
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n++
			id := rankID(n)
			tc.in.Path = "/in"
			o := d.dataOrder(id, "echo ran", job.Gbatch{Inputs: []job.Input{tc.in}, S3: tc.s3})
			if tc.values != nil {
				d.setSecrets(id, 1, tc.values)
			}
			e, _ := d.runNoLog(id, o)
			if diff := cmp.Diff(&node.Exit{Code: 125, Reason: tc.reason, Message: tc.text}, e, ignoreFigures); diff != "" {
				t.Errorf("exit (-want +got):\n%s", diff)
			}
		})
	}
	d.holdsNothing()
	d.leavesNothing()
}

// slowly passes on what is asked of a key by pieces, and holds back all but the
// first few of them until it is let go.
func (d *dataSite) slowly(prefix string, first int) (letGo func()) {
	gate := make(chan struct{})
	var mu sync.Mutex
	seen := 0
	d.s3.Hook(func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.Method+" "+r.URL.Path, prefix) {
			return false
		}
		mu.Lock()
		seen++
		wait := seen > first
		mu.Unlock()
		if wait {
			select {
			case <-gate:
			case <-r.Context().Done():
			}
			panic(http.ErrAbortHandler) // who asked is dead, and all of a part that it sent may have come
		}
		return false
	})
	return sync.OnceFunc(func() { close(gate) })
}

// TestKilledDuringInput: the next daemon goes on with what is there, and the
// job runs once, with all of it.
func TestKilledDuringInput(t *testing.T) {
	d := newDataSite(t, func(c *config.Config) { c.Data.Parallel = 1 })
	large := strings.Repeat("0123456789abcdef", 4<<20) // four pieces
	sum := sha256.Sum256([]byte(large))
	d.s3.Put("lab/large", large)
	letGo := d.slowly("GET /lab/large", 2)
	defer letGo()
	p := d.spawn(0)
	id := rankID(1)
	d.want(id, d.dataOrder(id, "sha256sum </in | cut -c1-64", job.Gbatch{Inputs: []job.Input{{URI: "s3://lab/large", Path: "/in"}}}))
	d.await("the transfer to be shown", func() bool { return strings.HasSuffix(d.status[id].Progress, " MiB of 64 MiB") })
	until(t, "the third piece to be asked for", func() bool { return len(d.s3.Requests("GET /lab/large")) == 3 })
	p.kill()
	letGo()
	d.s3.Hook(nil)
	p = d.spawn(1)
	if e := d.exit(id); e.Code != 0 {
		t.Errorf("exit %+v", e)
	}
	if out := d.output(id); out != fmt.Sprintf("%x\n", sum) {
		t.Errorf("it read %s, want %x", out, sum)
	}
	if n := len(d.s3.Requests("GET /lab/large")); n != 2 {
		t.Errorf("the second daemon made %d requests, want 2", n)
	}
	d.empty()
	d.leavesNothing()
	p.term()
}

// TestCancelDuringInput: a stop does not wait for a server.
func TestCancelDuringInput(t *testing.T) {
	d := newDataSite(t, nil)
	d.start()
	d.s3.Put("lab/x", "x")
	defer d.slowly("GET /lab/x", 0)()
	id := rankID(1)
	d.want(id, d.dataOrder(id, "echo ran", job.Gbatch{Inputs: []job.Input{{URI: "s3://lab/x", Path: "/in"}}}))
	d.await("the transfer to be under way", func() bool { return strings.Contains(d.status[id].Progress, "input 1 of 1") })
	d.stop(id, api.Stop{Signal: "TERM", GraceMS: 1000, Reason: job.ByUser, Text: "cancelled by alice"})
	if e := d.exit(id); e.Reason != job.ByUser || e.StartedMS != 0 {
		t.Errorf("exit %+v", e)
	}
	d.empty()
	d.leavesNothing()
}

// TestStalledServer: the site's own server that does not answer is not the job's fault.
func TestStalledServer(t *testing.T) {
	d := newDataSite(t, func(c *config.Config) { c.Data.Stall = config.Duration(100 * time.Millisecond) })
	d.start()
	d.a.data.Client.Pause = time.Millisecond
	d.s3.Put("lab/x", "x")
	defer d.slowly("GET /lab/x", 0)()
	id := rankID(1)
	e, _ := d.runNoLog(id, d.dataOrder(id, "echo ran", job.Gbatch{Inputs: []job.Input{{URI: "s3://lab/x", Path: "/in"}}}))
	if e.Reason != job.Server || !strings.HasPrefix(e.Message, "input s3://lab/x: ") || !strings.Contains(e.Message, "given up after 6 tries") {
		t.Errorf("exit %+v", e)
	}
	d.holdsNothing()
	d.leavesNothing()
}
