package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// query is what follows a path. Its methods add what is given and leave out
// what is empty, zero or false.
type query url.Values

func (q query) text(key, value string) query {
	if value != "" {
		q[key] = []string{value}
	}
	return q
}

func (q query) number(key string, n int64) query {
	if n != 0 {
		q.text(key, strconv.FormatInt(n, 10))
	}
	return q
}

func (q query) flag(key string, set bool) query {
	if set {
		q.text(key, "true")
	}
	return q
}

func (q query) moment(key string, t time.Time) query {
	if !t.IsZero() {
		q.text(key, t.UTC().Format(time.RFC3339Nano))
	}
	return q
}

// get reads what is at a path.
func get[T any](ctx context.Context, c *Client, path string, q query) (*T, error) {
	return answerOf[T](ctx, c, request{method: http.MethodGet, path: path, query: q, repeat: true})
}

// answerOf makes the exchange and gives the answer.
func answerOf[T any](ctx context.Context, c *Client, r request) (*T, error) {
	out := new(T)
	r.out = out
	return out, c.call(ctx, r)
}
