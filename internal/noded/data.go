package noded

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/storage"
	"gbatch/internal/transfer"
	"gbatch/oci/atomicfile"
)

// data is what the node has of jobs' inputs: a directory for each rank, which
// outlives a restart of the daemon so that nothing is fetched twice, and the
// cache.
type data struct {
	cfg    *config.Data
	dir    string // of the ranks' directories
	free   int64  // what must stay free
	client *transfer.Client
	cache  *transfer.Cache

	mu       sync.Mutex
	promised int64 // bytes that are still to come, of all ranks
}

// openData opens the directory. What was there before the machine's start may
// be cut off, and belongs to ranks that are gone.
func openData(c *config.Config, boot string) (*data, error) {
	d := &data{cfg: &c.Data, dir: filepath.Join(c.Data.Dir, "ranks"), free: int64(c.MinFree)}
	client, err := newClient(&c.Data)
	if err != nil {
		return nil, err
	}
	d.client = client
	mark := filepath.Join(c.Data.Dir, "boot")
	b, err := os.ReadFile(mark)
	fresh := err != nil || string(b) != boot
	if fresh {
		if err := os.RemoveAll(d.dir); err != nil {
			return nil, fmt.Errorf("empty the directory of inputs: %w", err)
		}
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of inputs: %w", err)
	}
	if fresh { // else nothing is written: a full disk must not keep the daemon from what runs
		if err := atomicfile.Write(mark, []byte(boot)); err != nil {
			return nil, fmt.Errorf("make the directory of inputs: %w", err)
		}
	}
	d.cache, err = transfer.OpenCache(filepath.Join(c.Data.Dir, "cache"), int64(c.Data.CacheSize))
	return d, err
}

// client is what transfers for jobs.
func newClient(c *config.Data) (*transfer.Client, error) {
	g := transfer.Guard{Hosts: c.Hosts, PlainHTTP: c.PlainHTTP}
	if u, err := url.Parse(c.Endpoint); err == nil && u.Host != "" {
		port := u.Port()
		if port == "" {
			port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
		}
		g.Hosts = append(g.Hosts[:len(g.Hosts):len(g.Hosts)], net.JoinHostPort(u.Hostname(), port)) // and no other service there
	}
	t := transfer.New(g)
	t.Parallel, t.Stall = c.Parallel, time.Duration(c.Stall)
	if c.CAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read data.caFile: %w", err)
	}
	t.Roots = x509.NewCertPool()
	if !t.Roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read data.caFile %s: it holds no PEM certificate", c.CAFile)
	}
	return t, nil
}

func (d *data) rankDir(id job.RankID) string { return filepath.Join(d.dir, id.String()) }

// drop forgets the inputs of a rank that has ended.
func (d *data) drop(id job.RankID) error {
	d.cache.Drop(id.String())
	return os.RemoveAll(d.rankDir(id))
}

// promise asks for room for bytes that are to come, or -1 if nobody knows how
// many. What is kept for other jobs makes way.
func (d *data) promise(bytes int64) (done func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left, err := d.left()
	if err == nil && left < max(bytes, 0) {
		_, _ = d.cache.Empty(time.Now()) // what it could not remove is not room
		left, err = d.left()
	}
	if err != nil {
		return nil, fmt.Errorf("look for free space: %w", err)
	}
	if left < max(bytes, 0) {
		return nil, transfer.At(transfer.Local, "", fmt.Sprintf("needs %s, and the node has %s free", config.FormatBytes(bytes), config.FormatBytes(max(left, 0))))
	}
	d.promised += max(bytes, 0)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.promised -= max(bytes, 0)
	}, nil
}

func (d *data) left() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail)*st.Bsize - d.free - d.promised, nil
}

// sweepData removes directories of ranks that nobody orders any more. It waits
// for the first desired set, which may order them again.
func (a *Agent) sweepData() {
	a.mu.Lock()
	known := a.order.seen > 0
	held := map[string]bool{}
	for id := range a.ranks {
		held[id.String()] = true
	}
	a.mu.Unlock()
	entries, err := os.ReadDir(a.data.dir)
	if err == nil && known {
		for _, e := range entries {
			if !held[e.Name()] {
				err = errors.Join(err, os.RemoveAll(filepath.Join(a.data.dir, e.Name())))
			}
		}
	}
	freed, cerr := a.data.cache.Collect(time.Now())
	if err = errors.Join(err, cerr); err != nil {
		a.log.Error("remove old inputs", "error", err)
	}
	if freed > 0 {
		a.log.Info("cache of inputs shrunk", "freed", config.FormatBytes(freed))
	}
}

// inputError says whose fault it is that an input did not come. The site's own
// server and the node's disk are not the job's.
func (r *rank) inputError(uri string, err error) error {
	var t *transfer.Error
	if !errors.As(err, &t) {
		return err
	}
	why, text := job.InputFailed, "input "+t.Error()
	switch {
	case t.Kind == transfer.Local && t.Unwrap() != nil:
		why, text = job.Server, "input "+uri+": the node could not store it; its administrator finds the reason in the node's log"
		r.log.Error("store input", "uri", uri, "error", err)
		r.a.health.diskError(err)
	case t.Kind == transfer.Local, t.Kind == transfer.Unreachable && r.siteServer(uri):
		why = job.Server
	}
	return &reason.Error{Reason: why, Text: text, Err: err}
}

// siteServer says whether the site, and not the job, said where a URI leads.
func (r *rank) siteServer(uri string) bool {
	s3 := r.order.Spec.Gbatch.S3
	return strings.HasPrefix(uri, "s3:") && (s3 == nil || s3.Endpoint == "") && r.a.data.cfg.Endpoint != ""
}

// expandURI fills in what tells one rank from the others.
func (r *rank) expandURI(uri string) string {
	return strings.NewReplacer("{job}", fmt.Sprint(r.id.Job), "{task}", fmt.Sprint(r.id.Task),
		"{rank}", fmt.Sprint(r.id.Rank), "{attempt}", fmt.Sprint(r.id.Attempt)).Replace(uri)
}

// s3 is where s3:// leads for the job, with its keys.
func (r *rank) s3() (transfer.S3, error) {
	var want job.S3
	if s := r.order.Spec.Gbatch.S3; s != nil {
		want = *s
	}
	at := transfer.S3{Endpoint: want.Endpoint, Region: want.Region}
	if at.Endpoint == "" {
		at.Endpoint = r.a.data.cfg.Endpoint
		if at.Region == "" {
			at.Region = r.a.data.cfg.Region
		}
	}
	values := map[string]string{}
	if s := r.secretsNow(); s != nil {
		values = s.Values
	}
	for _, key := range []struct {
		to          *string
		name, usual string
	}{
		{&at.AccessKey, want.AccessKey, "AWS_ACCESS_KEY_ID"},
		{&at.SecretKey, want.SecretKey, "AWS_SECRET_ACCESS_KEY"},
		{&at.Token, want.SessionToken, "AWS_SESSION_TOKEN"},
	} {
		name := key.name
		if name == "" {
			name = key.usual
		}
		*key.to = strings.TrimSpace(values[name])
	}
	if (at.AccessKey == "") != (at.SecretKey == "") {
		return at, transfer.At(transfer.Denied, "", "the job's secrets have one of the two keys of S3, and not the other")
	}
	return at, nil
}

// fileRoot opens the directory of a file:// URI, with the name of the file in it or "".
func (r *rank) fileRoot(uri string, write bool) (*os.Root, string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, "", transfer.At(transfer.Invalid, uri, "is no URI")
	}
	dir, name := u.Path, ""
	if !strings.HasSuffix(dir, "/") {
		dir, name = path.Dir(dir), path.Base(dir)
	}
	who, err := r.tenant()
	if err != nil {
		return nil, "", err
	}
	root, err := r.a.storage.OpenRoot(path.Clean(dir), who, write)
	var refused *reason.Error
	if errors.As(err, &refused) {
		return nil, "", transfer.At(transfer.NotFound, uri, refused.Text)
	}
	return root, name, err
}

func (r *rank) tenant() (storage.Tenant, error) {
	o, err := r.owner()
	return storage.Tenant{User: r.order.User, Project: r.order.Project, GID: r.order.ProjectGID, UID: int(o.UID), OwnGID: int(o.GID)}, err
}
