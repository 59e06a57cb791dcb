package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/tree"
)

// Trees are the directories that users bring along for their jobs.
type Trees struct{ *Client }

// AddTree asks to keep a directory of chunks that were sent. It is safe to
// repeat.
func (c Trees) AddTree(ctx context.Context, m tree.Manifest) (*api.TreeResponse, error) {
	return answerOf[api.TreeResponse](ctx, c.Client, request{method: http.MethodPost, path: api.PathTrees, in: api.TreeRequest{Chunks: m.Chunks}, repeat: true})
}

// PutChunk sends a chunk of a directory. It is safe to repeat.
func (c Trees) PutChunk(ctx context.Context, sum string, data []byte) error {
	path := strings.Replace(api.PathTreeChunk, "{sum}", url.PathEscape(sum), 1)
	return c.call(ctx, request{method: http.MethodPut, path: path, raw: data, repeat: true})
}

// TreePart names bytes of the archive of a directory that a job takes along, from
// one offset to another.
type TreePart struct {
	Job, Tree string
	From, To  int64
}

// Open is for node name: bytes of an archive, and the length of all of it. Retry
// is not applied.
func (c Trees) Open(ctx context.Context, name string, p TreePart) (body io.ReadCloser, length int64, err error) {
	if err := c.open(); err != nil {
		return nil, 0, err
	}
	path := strings.NewReplacer("{name}", url.PathEscape(name), "{id}", url.PathEscape(p.Job), "{tree}", url.PathEscape(p.Tree)).Replace(api.PathNodeTree)
	resp, err := c.send(ctx, request{method: http.MethodGet, path: path, header: map[string]string{"Range": fmt.Sprintf("bytes=%d-%d", p.From, p.To-1)}}, nil)
	if err != nil {
		return nil, 0, err
	}
	began, total, _ := strings.Cut(resp.Header.Get("Content-Range"), "/")
	length, err = strconv.ParseInt(total, 10, 64)
	if resp.StatusCode != http.StatusPartialContent || err != nil || !strings.HasPrefix(began, fmt.Sprintf("bytes %d-", p.From)) {
		resp.Body.Close()
		return nil, 0, fmt.Errorf("the controller sent other bytes of directory %s than those that were asked for", p.Tree)
	}
	return resp.Body, length, nil
}
