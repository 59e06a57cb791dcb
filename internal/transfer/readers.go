package transfer

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"gbatch/oci/atomicfile"
)

// Who may list what is below a prefix of S3 may not be who may read it, and objects have rights of
// their own. So keys that have not read all of an entry are shown to be let in to each of its
// objects before it is theirs; those that have, once in a while, and to one of them each time.

// readersFile is the file in an entry that says which access keys have read all of it, and when.
const readersFile = "readers"

// readerKnown is how long they need not show it for each object.
const readerKnown = 24 * time.Hour

// readers are Unix seconds by access key.
type readers map[string]int64

func (k *Cache) readers(key string, now time.Time) readers {
	all := readers{}
	if b, err := atomicfile.Read(filepath.Join(k.dir, key, readersFile)); err == nil {
		_ = json.Unmarshal(b, &all) // a damaged one knows nobody
	}
	for who, at := range all {
		if since := now.Unix() - at; since < 0 || since > int64(readerKnown/time.Second) {
			delete(all, who)
		}
	}
	return all
}

// noteReader says that keys have read all of an entry.
func (k *Cache) noteReader(key string, b *bucket, now time.Time) error {
	all := k.readers(key, now)
	all[b.accessKey] = now.Unix()
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(k.dir, key, readersFile), atomicfile.Sum(text))
}

// letIn shows that the keys of a bucket may read an entry.
func (k *Cache) letIn(ctx context.Context, key string, b *bucket, list []Object) error {
	now := time.Now()
	if _, known := k.readers(key, now)[b.accessKey]; known {
		return b.readable(ctx, list, 1)
	}
	if err := b.readable(ctx, list, len(list)); err != nil {
		return err
	}
	return local(k.noteReader(key, b, now))
}

// readable asks for a byte of so many objects below a prefix. A single object has shown with
// its version that it may be read.
func (b *bucket) readable(ctx context.Context, list []Object, most int) error {
	outer := ctx
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, b.c.Parallel))
	for _, o := range list {
		if o.Name == "" || o.Size == 0 {
			continue
		}
		if most--; most < 0 || ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			return named(o, false, b.c.retry(ctx, func(ctx context.Context) (bool, error) {
				ctx, cancel := context.WithTimeout(ctx, b.c.Stall)
				defer cancel()
				body, err := b.Open(ctx, o, 0, 1)
				if err != nil {
					return false, err
				}
				return false, body.Close()
			}))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(outer)
}
