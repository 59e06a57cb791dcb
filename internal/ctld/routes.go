package ctld

import (
	"net"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gbatch/internal/api"
	"gbatch/internal/metrics"
)

// routes is the API: each route with its path, who may use it, what it is for
// and what serves it. /openapi.json, docs/api.md and the tests of who may do
// what come from this table.
func (s *Server) routes() []Route {
	used := &Used{view: s.loop.View, samples: &s.samples, now: s.now}
	submissions := &Submissions{conf: s.rules.Now, rights: s.rights, loop: s.loop, jobs: s.jobs}
	actions := &Actions{loop: s.loop, jobs: s.jobs, rights: s.rights}
	queries := &Queries{loop: s.loop, jobs: s.jobs, rights: s.rights, used: used}
	opened := &OfJobs{loop: s.loop, jobs: s.jobs, rights: s.rights, streams: s.streams}
	past := &History{loop: s.loop, store: s.store, jobs: s.jobs, rights: s.rights, used: used, now: s.now}
	exchange := &Exchange{conf: s.rules.Now, loop: s.loop, jobs: s.jobs, streams: s.streams, samples: &s.samples, skews: s.skews, now: s.now, people: s.rights.people}
	listed := &List{view: s.loop.View, samples: &s.samples, skews: s.skews}
	operator := &Operator{loop: s.loop}
	joined := &Keys{keys: s.keys, pki: s.pki, loop: s.loop, now: s.now}
	tokens := &Tokens{keys: s.keys, loop: s.loop, now: s.now}
	audit := &auditLog{store: s.store}
	about := &about{started: s.started, now: s.now, rules: s.rules, loop: s.loop, streams: s.streams, pin: s.pki.Pin(), listeners: func() []net.Listener { return s.lns }}
	backups := &Maker{dir: s.rules.Now().Dir, pin: s.pki.Pin(), version: Version, loop: s.loop, store: s.store, log: s.log, now: s.now}

	return []Route{
		JSON("submit-job", "POST "+api.PathJobs, byUsers, "Submit a job", submissions.Submit),
		JSON("list-jobs", "GET "+api.PathJobs, byUsers, "List jobs", queries.List).Large(),
		JSON("get-job", "GET "+api.PathJob, byUsers, "Everything about one job, or wait for its next change", queries.Show),
		JSON("explain-job", "GET "+api.PathExplain, byUsers, "Why a job waits, and what would help", queries.Explain),
		JSON("set-job-secrets", "PATCH "+api.PathSecrets, byUsers, "Give a job new values of its secrets", actions.SetSecrets),
		JSON("act-on-jobs", "POST "+api.PathJobAction, byUsers, "What to do with jobs: cancel, hold, release, pause, resume, requeue, halt, signal or update", actions.Act),
		JSON("resize-job", "PATCH "+api.PathJob, byUsers, "Give a running job other CPU and memory", actions.Resize),
		Stream("watch-events", "GET "+api.PathEvents, byUsers, "What changes, as server-sent events", s.changes.Stream, eventsResponse),
		JSON("get-cluster", "GET "+api.PathCluster, byUsers, "Nodes and GPUs", listed.All).Large(),
		JSON("get-status", "GET "+api.PathStatus, byUsersAndNodes, "Version, counts, and who you are", about.status),
		JSON("list-history", "GET "+api.PathHistory, byUsers, "Jobs that have ended, with what they used", past.List).Large(),
		JSON("get-usage", "GET "+api.PathUsage, byUsers, "What was used, by project, user, GPU model, cluster, day or month", past.Usage).Large(),
		JSON("list-shares", "GET "+api.PathShares, byUsers, "Fair share: shares, usage and factors", past.Shares).Large(),
		JSON("sync-node", "POST "+api.PathNodeSync, byNodes, "A node's exchange with the controller", exchange.Sync),
		Stream("get-job-log", "GET "+api.PathJobLog, byUsers, "The log of a job, as bytes", opened.Log, nil),
		Done("drain-node", "POST "+api.PathDrain, byOperators, "Take a node or a GPU out of scheduling", operator.Drain),
		Done("resume-node", "POST "+api.PathResume, byOperators, "Put a node or a GPU back", operator.Resume),
		Done("forget-node", "DELETE "+api.PathNode, byOperators, "Drop a node that is gone for good", joined.Forget),
		JSON("list-reservations", "GET "+api.PathReservations, byUsers, "List advance reservations", operator.Reservations),
		JSON("make-reservation", "POST "+api.PathReservations, byOperators, "Keep nodes for some jobs or for nobody", operator.Reserve),
		Done("drop-reservation", "DELETE "+api.PathReservation, byOperators, "Remove a reservation", operator.Unreserve),
		JSON("get-diagnosis", "GET "+api.PathDiag, byOperators, "How the controller fares", about.diag),
		JSON("get-site", "GET "+api.PathSite, byUsers, "How to reach this controller", about.site),
		JSON("list-projects", "GET "+api.PathProjects, byUsers, "List projects", s.rules.projects),
		JSON("put-project", "PUT "+api.PathProject, byAdmins, "Make or change a project", s.rules.putProject),
		Done("drop-project", "DELETE "+api.PathProject, byAdmins, "Remove a project", s.rules.dropProject),
		JSON("get-policy", "GET "+api.PathPolicy, byOperators, "The rules in force", s.rules.policy),
		JSON("check-policy", "POST "+api.PathPolicyTest, byAdmins, "What a reload would do", s.rules.checkPolicy),
		JSON("reload-policy", "POST "+api.PathPolicyLoad, byAdmins, "Take the rules as the file has them now", s.rules.reloadPolicy),
		JSON("get-audit", "GET "+api.PathAudit, byOperators, "Who changed what", audit.list).Large(),
		JSON("list-tokens", "GET "+api.PathTokens, byUsers, "List tokens", tokens.List),
		JSON("create-token", "POST "+api.PathTokens, byUsers, "Make a token", tokens.Create),
		Done("revoke-token", "DELETE "+api.PathToken, byUsers, "Take a token out of force", tokens.Revoke),
		JSON("join-node", "POST "+api.PathNodeJoin, byJoiners, "Get a node's first certificate", joined.Join),
		JSON("renew-node", "POST "+api.PathNodeRenew, byNodes, "Get a node's next certificate", joined.Renew),
		Done("revoke-node", "DELETE "+api.PathNodeKey, byAdmins, "Take a node's key away", joined.Revoke),
		Plain("POST "+api.PathBackup, byAdmins, "A backup as bytes; only root on the controller's machine. `?vault=false` leaves the key of secrets out", backups.Serve).Streams(),
		Plain("POST "+api.PathStream, byNodes, "Between daemons: the bytes that a client asked for", s.streams.serve).Streams(),
		Plain("GET "+api.PathStream, byNodes, "Between daemons: a two-way stream that a client asked for", s.streams.join).Streams(),
		Socket("exec-in-job", "GET "+api.PathJobExec, byUsers, "A WebSocket to a further command in a running job", opened.Open(api.StreamExec)),
		Socket("attach-to-job", "GET "+api.PathJobAttach, byUsers, "A WebSocket to the terminal of a running job", opened.Open(api.StreamAttach)),
		Socket("forward-to-job", "GET "+api.PathJobForward, byUsers, "A WebSocket to a port of a running job", opened.Open(api.StreamForward)),

		Plain("GET /metrics", byScrapers, "Metrics as Prometheus reads them", s.metrics),
		Plain("GET /healthz", byAnyone, "200 while the controller serves", healthy),
		Described("GET /openapi.json", "This API as an OpenAPI 3.1 document; also `.yaml`, and `/openapi-3.0.json` and `.yaml`"),
		Described("GET /openapi.yaml", ""),
		Described("GET /openapi-3.0.json", ""),
		Described("GET /openapi-3.0.yaml", ""),
		Plain("/", byAnyone, "", nothingHere),
	}
}

func healthy(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusOK)
	return nil
}

func nothingHere(_ http.ResponseWriter, r *http.Request) error {
	return &api.Error{Status: 404, Code: api.CodeNotFound, Message: "there is nothing at " + r.Method + " " + r.URL.Path, Hint: "the API is described at /openapi.json"}
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	metrics.Handler(s.loop.metrics.Reg).ServeHTTP(w, r)
	return nil
}

// eventsResponse says in the API's description what the stream is of.
var eventsResponse = map[string]*huma.Response{"200": {
	Description: "events job, node, reset and ping; each has an id to go on after",
	Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}},
}}
