package copies

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"gbatch/internal/ctld/trees"
	"gbatch/internal/replica"
	"gbatch/internal/tree"
)

// Trees are the others as far as uploaded directories go.
func (o *Others) Trees() trees.Others { return peers{o} }

type peers struct{ o *Others }

// Peers are all others.
func (p peers) Peers() ([]trees.Peer, error) {
	all, err := p.o.members()
	var list []trees.Peer
	for _, m := range all {
		if m.Name != p.o.self {
			list = append(list, &peer{p.o, m})
		}
	}
	return list, err
}

// Do does something with each of the others that answer, at the same time. It has failed if
// those with which it worked are no majority together with this controller.
func (p peers) Do(ctx context.Context, what func(context.Context, trees.Peer) error) error {
	all, err := p.o.members()
	if err != nil {
		return err
	}
	var doing sync.WaitGroup
	went := make([]error, len(all))
	for i, m := range all {
		if m.Name == p.o.self {
			continue
		}
		if went[i] = p.o.spare(m); went[i] == nil {
			doing.Go(func() { went[i] = what(ctx, &peer{p.o, m}) }) // awaited below
		}
	}
	doing.Wait()
	voters, have := 0, 0
	for i, m := range all {
		if m.Voter {
			voters++
			if went[i] == nil {
				have++
			}
		}
	}
	if have <= voters/2 {
		return errors.Join(went...)
	}
	return nil
}

// peer is another controller's uploaded directories.
type peer struct {
	o *Others
	m replica.Member
}

// maxList bounds what another controller says: a list of trees, or of a tree's chunks.
const maxList = 256 << 20

func (p *peer) Name() string { return p.m.Name }

func (p *peer) Trees(ctx context.Context) (list map[string]map[string]time.Time, err error) {
	byUser := map[string]map[string]time.Time{}
	if there, err := p.get(ctx, treesPath, maxList, func(data []byte) error { return json.Unmarshal(data, &byUser) }); err != nil || !there {
		if err == nil {
			err = fmt.Errorf("controller %s: %w", p.m.Name, errOld)
		}
		return nil, err
	}
	list = map[string]map[string]time.Time{}
	for name, trees := range byUser {
		user, err := hex.DecodeString(name)
		if err != nil {
			return nil, fmt.Errorf("controller %s: user %q: %w", p.m.Name, name, err)
		}
		list[string(user)] = trees
	}
	return list, nil
}

func (p *peer) Tree(ctx context.Context, user, id string) (*trees.Copy, error) {
	var c trees.Copy
	there, err := p.get(ctx, treePath(user, id), maxList, func(data []byte) error { return json.Unmarshal(data, &c) })
	if err != nil || !there {
		return nil, err
	}
	return &c, nil
}

func (p *peer) Chunk(ctx context.Context, user, sum string) (chunk []byte, err error) {
	_, err = p.get(ctx, chunkPath(user, sum), tree.MaxChunk, func(data []byte) error { chunk = data; return nil })
	return chunk, err
}

// get reads what another controller has. False: it does not have it.
func (p *peer) get(ctx context.Context, path string, most int64, read func([]byte) error) (there bool, err error) {
	resp, err := p.o.do(ctx, p.m, http.MethodGet, path, nil)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotFound:
		return false, nil
	case http.StatusOK:
	default:
		return false, refused(p.m, resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	if err == nil {
		err = read(data)
	}
	if err != nil {
		return false, fmt.Errorf("controller %s: %s: %w", p.m.Name, path, err)
	}
	return true, nil
}

func (p *peer) Take(ctx context.Context, user string, c trees.Copy) (missing []string, err error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	answer, err := p.send(ctx, http.MethodPut, treePath(user, c.ID()), body)
	if err == nil {
		err = json.Unmarshal(answer, &missing)
	}
	return missing, err
}

func (p *peer) TakeChunk(ctx context.Context, user, sum string, data []byte) error {
	_, err := p.send(ctx, http.MethodPut, chunkPath(user, sum), data)
	return err
}

func (p *peer) Drop(ctx context.Context, user, id string) error {
	_, err := p.send(ctx, http.MethodDelete, treePath(user, id), nil)
	return err
}

// errOld is what a controller of an earlier version answers.
var errOld = errors.New("its version is too old to take uploaded directories")

// send has another controller do something, and gives its answer.
func (p *peer) send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	resp, err := p.o.do(ctx, p.m, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return io.ReadAll(io.LimitReader(resp.Body, maxList))
	case http.StatusNotFound:
		return nil, fmt.Errorf("controller %s: %w", p.m.Name, errOld)
	}
	return nil, refused(p.m, resp)
}
