package image

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gbatch/oci/image/certs"
	"gbatch/oci/image/share"
	"gbatch/oci/ref"
)

// origin is where the image of one pull comes from, read through a worker. It
// lives until the last who keeps it has released it.
type origin struct {
	s        *Store
	ref      ref.Ref
	identity string // of the login
	spec     session
	files    *localFiles // of a local image

	mu      sync.Mutex
	keepers int
	proc    *process            // with which the session has begun; nil: none yet
	lent    map[string]*os.File // by the names under which the worker may take them

	peers share.Asking // that may have the layers
}

// origin sets up a pull; the caller releases it. Users' credentials go to the
// registry that they were written for and to no other host.
func (s *Store) origin(r ref.Ref, creds *ref.Credentials) (*origin, error) {
	o := &origin{s: s, ref: r, identity: s.identify(creds), keepers: 1, spec: session{
		Ref: r, Insecure: s.config.Insecure, Stall: int64(s.config.StallTimeout), Parallel: s.config.Parallel, MaxBytes: s.config.MaxUnpackedBytes,
	}}
	if r.Local() {
		var err error
		o.identity = anyone
		o.files, err = s.openLocal(r)
		return o, err
	}
	for _, mirror := range s.config.Mirrors[r.Registry] {
		at, prefix, _ := strings.Cut(mirror, "/")
		l := hostLogin{Name: at, Repository: strings.TrimPrefix(prefix+"/"+r.Repository, "/"), Mirror: true}
		_ = s.addHost(o, l) // a mirror without its login is passed over
	}
	l := hostLogin{Name: r.Registry, Repository: r.Repository}
	if creds != nil {
		l.User, l.Login = creds.Username, credentials{Username: creds.Username, Password: creds.Password}
	}
	return o, s.addHost(o, l)
}

func (s *Store) addHost(o *origin, l hostLogin) (err error) {
	if l.Login == (credentials{}) {
		if l.Login, err = nodeLogin(s.config.DockerConfigDir, l.Name); err != nil {
			return err
		}
	}
	if l.Certs, err = certs.Read(s.config.CertsDir, l.Name); err != nil {
		return wrap(Internal, err, "%v", err)
	}
	o.spec.Hosts = append(o.spec.Hosts, l)
	return nil
}

// place is what vouches for a blob: a registry, or a file on the node.
func (o *origin) place() string {
	if o.ref.Local() {
		return o.ref.Name()
	}
	return o.ref.Registry
}

// who is the identity by which an answer was got: a mirror's is for all.
func (o *origin) who(mirror bool) string {
	if mirror {
		return anyone
	}
	return o.identity
}

// keep makes the origin live until one more release.
func (o *origin) keep() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keepers++
}

func (o *origin) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.keepers--; o.keepers > 0 {
		return
	}
	o.dropLocked()
	if o.files != nil {
		o.files.close()
	}
}

// dropLocked gives the worker back.
func (o *origin) dropLocked() {
	if o.proc == nil {
		return
	}
	o.proc.serves.Store(nil)
	o.s.workers.give(o.workerKey(), o.proc)
	o.s.disk.unpromise(o)
	o.proc = nil
}

// workerKey tells logins apart: no worker serves two, so that none who could
// take a worker over would see another's password.
func (o *origin) workerKey() string { return o.place() + " " + o.identity }

// worker returns the worker that reads the image. If there is none yet or the last has
// died it takes one, with which the session begins.
func (o *origin) worker(ctx context.Context) (*process, error) {
	p, _, err := o.begin(ctx, request{})
	return p, err
}

// begin is worker; where a session begins, what is asked first goes with that, and the answer
// is there.
func (o *origin) begin(ctx context.Context, first request) (p *process, r reply, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.proc != nil && !o.proc.gone() {
		return o.proc, r, nil
	}
	o.dropLocked()
	if p, err = o.s.workers.take(ctx, o.workerKey()); err != nil {
		return nil, r, err
	}
	o.proc = p
	p.serves.Store(o)
	first.Begin = &o.spec
	if r, err = o.judged(p.call(ctx, first, nil)); err != nil {
		o.dropLocked()
		return nil, r, err
	}
	return p, r, nil
}

func (o *origin) call(ctx context.Context, req request, seen func(int64)) (reply, error) {
	p, err := o.worker(ctx)
	if err != nil {
		return reply{}, err
	}
	return o.judged(p.call(ctx, req, seen))
}

// judged turns a worker's complaint about this node into one about the image,
// unless the node itself shows that something is wrong with it.
func (o *origin) judged(r reply, err error) (reply, error) {
	e, ok := errors.AsType[*PullError](err)
	if !ok || e.Fault() != FaultNode {
		return r, err
	}
	if seen := o.s.disk.evidence(); seen != nil {
		return r, seen
	}
	mine := *e
	mine.Kind = Unsupported
	return r, &mine
}

// resolve returns the digest of what the reference names now. Its success
// means that the caller may read the image; identity says as whom.
func (o *origin) resolve(ctx context.Context) (digest v1.Hash, identity string, err error) {
	ask := request{Resolve: true}
	p, r, err := o.begin(ctx, ask)
	if err == nil && !r.Done {
		r, err = o.judged(p.call(ctx, ask, nil))
	}
	if err != nil {
		return digest, "", err
	}
	if r.Digest == nil {
		return digest, "", errNoAnswer
	}
	return *r.Digest, o.who(r.Mirror), nil
}

// errNoAnswer is about a worker that breaks the rules between us.
var errNoAnswer = fail(Corrupt, "the process that pulls it gave no sensible answer")

// manifest returns a manifest or index, which matches the digest.
func (o *origin) manifest(ctx context.Context, digest v1.Hash) ([]byte, error) {
	r, err := o.call(ctx, request{Manifest: &digest}, nil)
	if err != nil {
		return nil, err
	}
	if err := checkBytes(r.Raw, digest); err != nil {
		return nil, wrap(Corrupt, err, "its manifest does not match its digest")
	}
	return r.Raw, nil
}

// config returns a blob as small as a config, which matches its digest.
func (o *origin) config(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	r, err := o.call(ctx, request{Blob: &d}, nil)
	if err != nil {
		return nil, err
	}
	if err := checkBytes(r.Raw, d.Digest); err != nil {
		return nil, wrap(Corrupt, err, "its config does not match its digest")
	}
	return r.Raw, nil
}

// has says whether the place gives a blob to this login.
func (o *origin) has(ctx context.Context, d v1.Descriptor) (has bool, identity string, err error) {
	r, err := o.call(ctx, request{Has: &d}, nil)
	return r.Has, o.who(r.Mirror), err
}

// verify downloads a layer to see that it is what it should be, and keeps none
// of it.
func (o *origin) verify(ctx context.Context, l layer, seen func(int64)) (identity string, err error) {
	r, err := o.call(ctx, request{Layer: &layerOrder{Desc: l.desc, DiffID: l.diffID}}, seen)
	return o.who(r.Mirror), err
}

// unpacking is what came of unpacking a layer.
type unpacking struct {
	info     unpacked
	identity string
	kept     bool // all its compressed bytes are in the file that was lent for them
}

// unpack downloads a layer and unpacks it as to/fs, where to is a directory of
// the store's own.
func (o *origin) unpack(ctx context.Context, l layer, to string, f lent) (u unpacking, err error) {
	order := layerOrder{Desc: l.desc, DiffID: l.diffID}
	done, err := o.lend(&order, f)
	if err != nil {
		return u, err
	}
	defer done()
	p, err := o.worker(ctx)
	if err != nil {
		return u, err
	}
	name := p.number()
	at := filepath.Join(p.dir, name)
	if err := makeDir(at, 0o755); err != nil { // ours, as a layer's root directory is root's
		return u, classifyLocal(err)
	}
	defer os.RemoveAll(at)
	order.Dir = name
	r, err := o.judged(p.call(ctx, request{Layer: &order}, f.seen))
	if err != nil {
		return u, err
	}
	if err := checkLayer(r.Layer, r.Opaque); err != nil {
		return u, err
	}
	fs := filepath.Join(to, "fs")
	if err := os.Rename(at, fs); err != nil {
		return u, classifyLocal(err)
	}
	u = unpacking{info: *r.Layer, identity: o.who(r.Mirror), kept: r.Kept}
	u.info.DiffID = l.diffID
	return u, markOpaque(fs, r.Opaque)
}

// checkLayer sees to it that what a worker says of a layer leads nowhere else.
func checkLayer(info *unpacked, opaque []string) error {
	if info == nil || info.Size < 0 || info.Entries < 0 {
		return errNoAnswer
	}
	for _, dir := range info.Implicit {
		if dir == "/" || path.Clean("/"+dir) != dir {
			return errNoAnswer
		}
	}
	for _, dir := range opaque {
		if !filepath.IsLocal(dir) {
			return errNoAnswer
		}
	}
	return nil
}
