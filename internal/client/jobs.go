package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// Submit submits a job. key makes it safe to repeat, here and by the caller
// after an Unreachable: the same key gives the same job. Empty: a fresh one.
func (c *Client) Submit(ctx context.Context, req *api.SubmitRequest, key string) (*api.SubmitResponse, error) {
	key = cmp.Or(key, rand.Text())
	return answerOf[api.SubmitResponse](ctx, c, request{
		method: http.MethodPost, path: api.PathJobs, in: req, repeat: true, header: map[string]string{api.HeaderIdempotencyKey: key},
	})
}

// SubmitMany submits several jobs, MaxSubmissions at most, each of which is taken or
// refused for itself: the results are in their order. Each without a key gets a fresh
// one, and those for which the controller has no time yet are sent again as Retry
// allows, for as long as some are taken meanwhile.
func SubmitMany(ctx context.Context, c *Client, jobs []api.KeyedSubmission) ([]api.SubmitResult, error) {
	results := make([]api.SubmitResult, len(jobs))
	left := make([]int, len(jobs)) // indexes of jobs without a lasting answer
	for i := range jobs {
		jobs[i].Key = cmp.Or(jobs[i].Key, rand.Text())
		left[i] = i
	}
	for before := len(left) + 1; 0 < len(left) && len(left) < before; {
		before = len(left)
		err := c.Retry.repeat(ctx, func() (err error) {
			left, err = submitSome(ctx, c, many{jobs, results}, left)
			return err
		})
		if e, _ := errors.AsType[*api.Error](err); err != nil && (e == nil || e != results[left[0]].Error) {
			return results, err // of the request, and not of one of its jobs
		}
	}
	return results, nil
}

// many are jobs, with what became of them.
type many struct {
	jobs    []api.KeyedSubmission
	results []api.SubmitResult
}

// submitSome is one exchange for some of the jobs. It gives those that may be taken
// later, and the error of the first.
func submitSome(ctx context.Context, c *Client, m many, some []int) (left []int, err error) {
	req := &api.SubmitManyRequest{}
	for _, i := range some {
		req.Jobs = append(req.Jobs, m.jobs[i])
	}
	resp, err := answerOf[api.SubmitManyResponse](ctx, c, request{method: http.MethodPost, path: api.PathJobsMany, in: req})
	if e, _ := errors.AsType[*api.Error](err); e != nil && e.Code == api.CodeTooMany { // none of them was looked at
		for _, i := range some {
			m.results[i].Error = e
		}
	}
	if err != nil {
		return some, err
	}
	if len(resp.Results) != len(some) {
		return some, fmt.Errorf("the controller at %s answered for %d of %d jobs", c.peer, len(resp.Results), len(some))
	}
	for k, i := range some {
		m.results[i] = resp.Results[k]
		if e := m.results[i].Error; e != nil && IsUnavailable(e) {
			if left = append(left, i); err == nil {
				err = e
			}
		}
	}
	return left, err
}

// JobFilter selects jobs; what is empty selects all. All includes those that
// have ended. Limit 0 is no limit.
type JobFilter struct {
	States  []job.State
	User    string
	Project string
	Name    string
	Node    string
	Cluster int
	QOS     string
	All     bool
	Limit   int
	Factors bool // with the terms of the priorities of those that wait
	Steps   bool // with the steps that run
}

func (f JobFilter) query() query {
	states := make([]string, len(f.States))
	for i, s := range f.States {
		states[i] = string(s)
	}
	q := query{}.text("state", strings.Join(states, ",")).text("user", f.User).text("project", f.Project).text("name", f.Name)
	q.text("node", f.Node).text("qos", f.QOS).number("cluster", int64(f.Cluster)).number("limit", int64(max(f.Limit, 0)))
	return q.flag("factors", f.Factors).flag("steps", f.Steps).flag("all", f.All)
}

// Jobs lists jobs.
func (c *Client) Jobs(ctx context.Context, f JobFilter) (*api.JobList, error) {
	return get[api.JobList](ctx, c, api.PathJobs, f.query())
}

// JobOptions make a Job call wait for a change: up to Wait (whole seconds), until
// the job's version is no longer Version.
type JobOptions struct {
	Wait    time.Duration
	Version uint64
}

// Job is everything about one job. id is its number, its UUID, or the
// beginning of its UUID.
func (c *Client) Job(ctx context.Context, id string, o JobOptions) (*api.JobDetail, error) {
	q := query{}
	if secs := int64(o.Wait / time.Second); secs > 0 {
		q.number("wait", secs).text("version", strconv.FormatUint(o.Version, 10))
	}
	return answerOf[api.JobDetail](ctx, c, request{method: http.MethodGet, path: idPath(api.PathJob, id), query: q, hold: o.Wait, repeat: true})
}

// Resize asks for other CPU and memory for a running job.
func (c *Client) Resize(ctx context.Context, id string, req *api.ResourcesRequest) (*api.ResourcesResponse, error) {
	return answerOf[api.ResourcesResponse](ctx, c, request{method: http.MethodPatch, path: idPath(api.PathJob, id), in: req, repeat: true})
}

// Explain is why a job waits and what would help.
func (c *Client) Explain(ctx context.Context, id string) (*api.Explanation, error) {
	return get[api.Explanation](ctx, c, idPath(api.PathExplain, id), nil)
}

// Curves is what a rank of a job has used over its time, in an attempt; 0: the last.
func (c *Client) Curves(ctx context.Context, id string, rank int, attempt uint32) (*api.Curves, error) {
	return get[api.Curves](ctx, c, idPath(api.PathCurves, id), query{}.number("rank", int64(rank)).number("attempt", int64(attempt)))
}

// LogOptions select bytes of a log: from Offset, or the last Tail lines of it
// if Tail is not 0, then, with Follow, those to come until the task ends.
type LogOptions struct {
	Offset int64
	Tail   int64
	Since  time.Time // only what was written then or later; zero: all
	Rank   int
	Try    uint32 // number of the attempt, from 1; 0: the last
	Follow bool
}

// Log is an open log. Reading it to io.EOF means that all was sent; a
// connection that breaks gives *Unreachable.
type Log struct {
	io.ReadCloser
	Offset int64 // where in the log the first byte stands; -1 if the controller did not say

	// Copied is when the last byte came to the controller whose copy this is, as the
	// node cannot be asked or has it no more; zero: it is the node's own.
	Copied   time.Time
	Complete bool // the copy is all of the log
}

// Log opens a job's log. The caller closes it.
func (c *Client) Log(ctx context.Context, id string, o LogOptions) (*Log, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	q := query{}.number("offset", max(o.Offset, 0)).number("tail", max(o.Tail, 0)).number("rank", int64(max(o.Rank, 0))).number("attempt", int64(o.Try)).flag("follow", o.Follow)
	if !o.Since.IsZero() {
		q.number("since", o.Since.UnixMilli())
	}
	r := request{method: http.MethodGet, path: idPath(api.PathJobLog, id), query: q}
	var log *Log
	err := c.Retry.repeat(ctx, func() error {
		resp, err := c.send(ctx, r, nil)
		if err != nil {
			return err
		}
		log = &Log{ReadCloser: resp.Body, Offset: -1}
		if at, err := strconv.ParseInt(resp.Header.Get(api.HeaderOffset), 10, 64); err == nil && at >= 0 {
			log.Offset = at
		} else if o.Tail == 0 && o.Since.IsZero() {
			log.Offset = o.Offset
		}
		if ms, err := strconv.ParseInt(resp.Header.Get(api.HeaderLogCopy), 10, 64); err == nil {
			log.Copied, log.Complete = time.UnixMilli(ms), resp.Header.Get(api.HeaderLogComplete) != ""
		}
		return nil
	})
	return log, err
}

// Action does what action says ("cancel", "hold", "release") to the jobs that
// req names. All of them are idempotent.
func (c *Client) Action(ctx context.Context, action string, req *api.ActionRequest) (*api.ActionResponse, error) {
	path := strings.Replace(api.PathJobAction, "{action}", url.PathEscape(action), 1)
	return answerOf[api.ActionResponse](ctx, c, request{method: http.MethodPost, path: path, in: req, repeat: true})
}

func idPath(pattern, id string) string {
	return strings.Replace(pattern, "{id}", url.PathEscape(id), 1)
}

// SetSecrets gives a job new values of its secrets, by name. What values does
// not name stays as it is.
func (c *Client) SetSecrets(ctx context.Context, id string, values map[string]string) (*api.SecretsResponse, error) {
	return answerOf[api.SecretsResponse](ctx, c, request{method: http.MethodPatch, path: idPath(api.PathSecrets, id), in: &api.SecretsRequest{Values: values}, repeat: true})
}
