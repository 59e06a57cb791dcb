package data

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/storage"
	"gbatch/internal/transfer"
)

// Rank is whose inputs and outputs are meant, and what of it they need.
type Rank struct {
	ID           job.RankID
	Order        *api.RunOrder // is only read
	Dir          string        // of what is noted while outputs are sent
	ContainerDir string
	Storage      *storage.Roots
	Tenant       func() (storage.Tenant, error) // whose storage is meant
	Secrets      func() map[string]string       // the keys of S3 are among them
	Progress     func(text string)              // shows how far it is
	DiskError    func(error)                    // is told what may be the node's own disk's fault
	Log          *slog.Logger
}

// transfers are those of one rank.
type transfers struct {
	*Data
	Rank
}

// inputError says whose fault it is that an input did not come. The site's own
// server and the node's disk are not the job's.
func (t *transfers) inputError(uri string, err error) error {
	var failed *transfer.Error
	if !errors.As(err, &failed) {
		return err
	}
	why, text := job.InputFailed, "input "+failed.Error()
	switch {
	case failed.Kind == transfer.Local && failed.Unwrap() != nil:
		why, text = job.Server, "input "+uri+": the node could not store it; its administrator finds the reason in the node's log"
		t.Log.Error("store input", "uri", uri, "error", err)
		t.DiskError(err)
	case failed.Kind == transfer.Local, failed.Kind == transfer.Unreachable && t.siteServer(uri):
		why = job.Server
	}
	return &reason.Error{Reason: why, Text: text, Err: err}
}

// siteServer says whether the site, and not the job, said where a URI leads. What
// was brought along is on the controller.
func (t *transfers) siteServer(uri string) bool {
	if strings.HasPrefix(uri, "tree:") {
		return true
	}
	s3 := t.Order.Spec.Gbatch.S3
	return strings.HasPrefix(uri, "s3:") && (s3 == nil || s3.Endpoint == "") && t.cfg.Endpoint != ""
}

// expandURI fills in what tells one rank from the others.
func (t *transfers) expandURI(uri string) string {
	return strings.NewReplacer("{job}", fmt.Sprint(t.ID.Job), "{task}", fmt.Sprint(t.ID.Task),
		"{rank}", fmt.Sprint(t.ID.Rank), "{attempt}", fmt.Sprint(t.ID.Attempt)).Replace(uri)
}

// s3 is where s3:// leads for the job, with its keys.
func (t *transfers) s3() (transfer.S3, error) {
	var want job.S3
	if s := t.Order.Spec.Gbatch.S3; s != nil {
		want = *s
	}
	at := transfer.S3{Endpoint: want.Endpoint, Region: want.Region}
	if at.Endpoint == "" {
		at.Endpoint = t.cfg.Endpoint
		if at.Region == "" {
			at.Region = t.cfg.Region
		}
	}
	values := t.Secrets()
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

// fileDir opens the directory of a file:// URI, with the name of the file in it or "".
func (t *transfers) fileDir(uri string, write bool) (transfer.Dir, string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return transfer.Dir{}, "", transfer.At(transfer.Invalid, uri, "is no URI")
	}
	dir, name := u.Path, ""
	if !strings.HasSuffix(dir, "/") {
		dir, name = path.Dir(dir), path.Base(dir)
	}
	who, err := t.Tenant()
	if err != nil {
		return transfer.Dir{}, "", err
	}
	root, err := t.Storage.OpenRoot(path.Clean(dir), who, write)
	var refused *reason.Error
	if errors.As(err, &refused) {
		return transfer.Dir{}, "", transfer.At(transfer.NotFound, uri, refused.Text)
	}
	return transfer.Dir{Root: root, Rights: who.Rights}, name, err
}
