package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// HistoryFilter selects jobs that have ended; what is empty selects all.
type HistoryFilter struct {
	Users    []string
	Projects []string
	Names    []string
	States   []string
	Reasons  []string
	Array    job.Number // tasks of this array
	Start    time.Time  // ended at it or later
	End      time.Time  // ended before it
	Newest   bool       // the last to end first
	Limit    int        // of a page; 0: what the controller gives at most
	After    string     // the page after this one
	Attempts bool       // with all their attempts; for operators
}

// History is one page of jobs that have ended.
func (c *Client) History(ctx context.Context, f HistoryFilter) (*api.History, error) {
	q := url.Values{}
	for key, list := range map[string][]string{"user": f.Users, "project": f.Projects, "name": f.Names, "state": f.States, "reason": f.Reasons} {
		for _, v := range list {
			q.Add(key, v)
		}
	}
	if f.Array != 0 {
		q.Set("array", strconv.FormatUint(uint64(f.Array), 10))
	}
	setTime(q, "start", f.Start)
	setTime(q, "end", f.End)
	if f.Newest {
		q.Set("newest", "true")
	}
	if f.Attempts {
		q.Set("attempts", "true")
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	if f.After != "" {
		q.Set("after", f.After)
	}
	out := new(api.History)
	return out, c.call(ctx, request{method: http.MethodGet, path: api.PathHistory, query: q, out: out, repeat: true})
}

func setTime(q url.Values, key string, t time.Time) {
	if !t.IsZero() {
		q.Set(key, t.UTC().Format(time.RFC3339Nano))
	}
}

// UsageFilter selects what a report of usage counts and how it is divided.
type UsageFilter struct {
	By         []string
	Users      []string
	Projects   []string
	Start, End time.Time
}

// Usage is a report of what was used.
func (c *Client) Usage(ctx context.Context, f UsageFilter) (*api.UsageReport, error) {
	q := url.Values{}
	q.Set("by", strings.Join(f.By, ","))
	for _, u := range f.Users {
		q.Add("user", u)
	}
	for _, p := range f.Projects {
		q.Add("project", p)
	}
	setTime(q, "start", f.Start)
	setTime(q, "end", f.End)
	out := new(api.UsageReport)
	return out, c.call(ctx, request{method: http.MethodGet, path: api.PathUsage, query: q, out: out, repeat: true})
}

// Shares is the share tree, as far as the caller may see it.
func (c *Client) Shares(ctx context.Context) (*api.ShareList, error) {
	out := new(api.ShareList)
	return out, c.call(ctx, request{method: http.MethodGet, path: api.PathShares, out: out, repeat: true})
}
