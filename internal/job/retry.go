package job

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
)

// Retry says when a task that failed is tried again. Faults of the
// infrastructure (Reason.Class) never count against the limits.
type Retry struct {
	Limit    int         `json:"limit,omitempty"`    // failures of one task that are tried again; 0 with JobLimit or Window set: no bound of its own
	JobLimit *int        `json:"jobLimit,omitempty"` // failures of all tasks together; one more fails the job with BACKOFF_LIMIT
	On       []string    `json:"on,omitempty"`       // error, interruption; empty: both
	Window   Duration    `json:"window,omitempty"`   // no try later than this after the first failure in a row; 0: none
	Backoff  Duration    `json:"backoff,omitempty"`  // wait before the first retry, doubled for each further; 0: 10 seconds
	MaxWait  Duration    `json:"maxWait,omitempty"`  // longest wait; 0: 6 minutes
	Rules    []RetryRule `json:"rules,omitempty"`    // the first that fits decides, before the limits
}

// RetryRule decides for failures that fit: exit codes, reasons, or both.
type RetryRule struct {
	ExitCodes    []int    `json:"exitCodes,omitempty"`
	NotExitCodes []int    `json:"notExitCodes,omitempty"` // any other exit code than these; 0 is never one of a failure
	Reasons      []Reason `json:"reasons,omitempty"`
	Action       string   `json:"action"`
}

// Events of Retry.On.
const (
	OnError        = "error"        // the program failed
	OnInterruption = "interruption" // its node or GPU failed, or it was halted to make room
)

// Actions of a RetryRule.
const (
	FailJob  = "fail-job"  // the job fails, all of its tasks
	FailTask = "fail-task" // this task fails, with no more tries
	Ignore   = "ignore"    // tried again, and not counted
	Count    = "count"     // tried again as Retry's limits allow
)

const (
	maxRetries    = 1_000_000
	maxRetryRules = 20
	maxRuleValues = 255

	DefaultBackoff Duration = 10
	DefaultMaxWait Duration = 360
)

var retryFields = []field[Retry]{
	{"limit", func(d *decoder, n *node, r *Retry) { d.integer(n, &r.Limit, 1, maxRetries) }, false},
	{"jobLimit", func(d *decoder, n *node, r *Retry) { r.JobLimit = d.optional(n, 0, maxRetries) }, false},
	{"on", func(d *decoder, n *node, r *Retry) { d.strs(n, &r.On, oneOf(OnError, OnInterruption)) }, false},
	{"window", func(d *decoder, n *node, r *Retry) { d.duration(n, &r.Window, 1) }, false},
	{"backoff", func(d *decoder, n *node, r *Retry) { d.duration(n, &r.Backoff, 1) }, false},
	{"maxWait", func(d *decoder, n *node, r *Retry) { d.duration(n, &r.MaxWait, 1) }, false},
	{"rules", func(d *decoder, n *node, r *Retry) {
		d.elements(n, maxRetryRules, func(_ int, n *node) {
			var rule RetryRule
			if document.Object(d, n, retryRuleFields, &rule) {
				d.checkRule(n, rule)
				r.Rules = append(r.Rules, rule)
			}
		})
	}, false},
}

var retryRuleFields = []field[RetryRule]{
	{"exitCodes", func(d *decoder, n *node, r *RetryRule) { d.exitCodes(n, 1, &r.ExitCodes) }, false},
	{"notExitCodes", func(d *decoder, n *node, r *RetryRule) { d.exitCodes(n, 0, &r.NotExitCodes) }, false},
	{"reasons", func(d *decoder, n *node, r *RetryRule) {
		var words []string
		d.strs(n, &words, failureReason)
		for _, w := range words {
			r.Reasons = append(r.Reasons, Reason(w))
		}
	}, false},
	{"action", func(d *decoder, n *node, r *RetryRule) { d.str(n, &r.Action, oneOf(FailJob, FailTask, Ignore, Count)) }, true},
}

// readRetry reads an object, or how often alone.
func readRetry(d *decoder, n *node, g *Gbatch) {
	var r Retry
	switch {
	case n.Kind == document.NumberKind:
		d.integer(n, &r.Limit, 0, maxRetries)
		if r.Limit == 0 {
			return
		}
	case !document.Object(d, n, retryFields, &r):
		return
	}
	if r.MaxWait > 0 && r.MaxWait < r.Backoff {
		d.ProblemAt(n, "maxWait", fmt.Sprintf("must be at least backoff, %s, is %s", r.Backoff, r.MaxWait), "")
	}
	g.Retry = &r
}

func (d *decoder) checkRule(n *node, r RetryRule) {
	switch {
	case len(r.ExitCodes) == 0 && len(r.NotExitCodes) == 0 && len(r.Reasons) == 0:
		d.Problem(n, "fits nothing", "give \"exitCodes\", \"notExitCodes\" or \"reasons\"")
	case len(r.ExitCodes) > 0 && len(r.NotExitCodes) > 0:
		d.ProblemAt(n, "notExitCodes", "cannot be combined with \"exitCodes\"", "keep one of them")
	}
}

// exitCodes reads codes of failures. Among those that a rule is not for, 0 may
// stand, as it does where a rule is for all failures.
func (d *decoder) exitCodes(n *node, low int, to *[]int) {
	d.elements(n, maxRuleValues, func(_ int, n *node) {
		var code int
		d.integer(n, &code, low, 255)
		*to = append(*to, code)
	})
}

// oneOf is a check for str.
func oneOf(words ...string) func(string) string {
	return func(s string) string {
		if !slices.Contains(words, s) {
			return fmt.Sprintf("must be one of %s, is %s", strings.Join(words, ", "), document.Quote(s))
		}
		return ""
	}
}

func failureReason(s string) string {
	if slices.Contains(reasons, Reason(s)) {
		return ""
	}
	return fmt.Sprintf("is %s, which is no reason; reasons are listed in docs/job-format.md", document.Quote(s))
}

// Fits says whether the rule is for a failure.
func (r RetryRule) Fits(reason Reason, exitCode int) bool {
	if len(r.Reasons) > 0 && !slices.Contains(r.Reasons, reason) {
		return false
	}
	if len(r.ExitCodes) > 0 && !slices.Contains(r.ExitCodes, exitCode) {
		return false
	}
	return len(r.NotExitCodes) == 0 || !slices.Contains(r.NotExitCodes, exitCode)
}
