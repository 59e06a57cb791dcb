package ctld

import (
	"net"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/jobs"
	"gbatch/internal/ctld/nodes"
	"gbatch/internal/ctld/route"
	"gbatch/internal/ctld/streams"
	"gbatch/internal/ctld/usage"
	"gbatch/internal/metrics"
)

// routes is the API: each route with its path, who may use it, what it is for
// and what serves it. /openapi.json, docs/api.md and the tests of who may do
// what come from this table.
func (s *Server) routes() []route.Route {
	used := &usage.Used{View: s.loop.View, Samples: &s.samples, Now: s.now}
	submissions := &jobs.Submissions{Meters: s.meters, Conf: s.rules.Now, Rights: s.rights, Loop: s.loop, Jobs: s.jobs}
	actions := &jobs.Actions{Loop: s.loop, Jobs: s.jobs, Rights: s.rights}
	queries := &jobs.Queries{Loop: s.loop, Jobs: s.jobs, Rights: s.rights, Used: used}
	opened := &streams.OfJobs{Loop: s.loop, Jobs: s.jobs, Rights: s.rights, Streams: s.streams}
	past := &usage.History{Loop: s.loop, Store: s.store, Jobs: s.jobs, Rights: s.rights, Used: used, Now: s.now}
	exchange := &nodes.Exchange{Conf: s.rules.Now, Loop: s.loop, Jobs: s.jobs, Streams: s.streams, Samples: &s.samples, Skews: s.skews, Now: s.now}
	listed := &nodes.List{View: s.loop.View, Samples: &s.samples, Skews: s.skews}
	operator := &nodes.Operator{Loop: s.loop}
	joined := &nodes.Keys{Keys: s.keys, Pki: s.pki, Loop: s.loop, Now: s.now}
	tokens := &access.Tokens{Keys: s.keys, Loop: s.loop, Now: s.now}
	audit := &auditLog{store: s.store}
	about := &about{started: s.started, now: s.now, rules: s.rules, loop: s.loop, meters: s.meters, streams: s.streams, pin: s.pki.Pin(), listeners: func() []net.Listener { return s.lns }}
	backups := &backup.Maker{Dir: s.rules.Now().Dir, Pin: s.pki.Pin(), Version: Version, Loop: s.loop, Store: s.store, Log: s.log, Now: s.now}

	return []route.Route{
		route.JSON("submit-job", "POST "+api.PathJobs, access.ByUsers, "Submit a job", submissions.Submit),
		route.JSON("list-jobs", "GET "+api.PathJobs, access.ByUsers, "List jobs", queries.List).Large(),
		route.JSON("get-job", "GET "+api.PathJob, access.ByUsers, "Everything about one job, or wait for its next change", queries.Show),
		route.JSON("explain-job", "GET "+api.PathExplain, access.ByUsers, "Why a job waits, and what would help", queries.Explain),
		route.JSON("set-job-secrets", "PATCH "+api.PathSecrets, access.ByUsers, "Give a job new values of its secrets", actions.SetSecrets),
		route.JSON("act-on-jobs", "POST "+api.PathJobAction, access.ByUsers, "What to do with jobs: cancel, hold, release, pause, resume, requeue, halt, signal or update", actions.Act),
		route.JSON("resize-job", "PATCH "+api.PathJob, access.ByUsers, "Give a running job other CPU and memory", actions.Resize),
		route.Stream("watch-events", "GET "+api.PathEvents, access.ByUsers, "What changes, as server-sent events", s.changes.Stream, eventsResponse),
		route.JSON("get-cluster", "GET "+api.PathCluster, access.ByUsers, "Nodes and GPUs", listed.All).Large(),
		route.JSON("get-status", "GET "+api.PathStatus, access.ByUsersAndNodes, "Version, counts, and who you are", about.status),
		route.JSON("list-history", "GET "+api.PathHistory, access.ByUsers, "Jobs that have ended, with what they used", past.List).Large(),
		route.JSON("get-usage", "GET "+api.PathUsage, access.ByUsers, "What was used, by project, user, GPU model, cluster, day or month", past.Usage).Large(),
		route.JSON("list-shares", "GET "+api.PathShares, access.ByUsers, "Fair share: shares, usage and factors", past.Shares).Large(),
		route.JSON("sync-node", "POST "+api.PathNodeSync, access.ByNodes, "A node's exchange with the controller", exchange.Sync),
		route.Stream("get-job-log", "GET "+api.PathJobLog, access.ByUsers, "The log of a job, as bytes", opened.Log, nil),
		route.Done("drain-node", "POST "+api.PathDrain, access.ByOperators, "Take a node or a GPU out of scheduling", operator.Drain),
		route.Done("resume-node", "POST "+api.PathResume, access.ByOperators, "Put a node or a GPU back", operator.Resume),
		route.Done("forget-node", "DELETE "+api.PathNode, access.ByOperators, "Drop a node that is gone for good", joined.Forget),
		route.JSON("list-reservations", "GET "+api.PathReservations, access.ByUsers, "List advance reservations", operator.Reservations),
		route.JSON("make-reservation", "POST "+api.PathReservations, access.ByOperators, "Keep nodes for some jobs or for nobody", operator.Reserve),
		route.Done("drop-reservation", "DELETE "+api.PathReservation, access.ByOperators, "Remove a reservation", operator.Unreserve),
		route.JSON("get-diagnosis", "GET "+api.PathDiag, access.ByOperators, "How the controller fares", about.diag),
		route.JSON("get-site", "GET "+api.PathSite, access.ByUsers, "How to reach this controller", about.site),
		route.JSON("list-projects", "GET "+api.PathProjects, access.ByUsers, "List projects", s.rules.Projects),
		route.JSON("put-project", "PUT "+api.PathProject, access.ByAdmins, "Make or change a project", s.rules.PutProject),
		route.Done("drop-project", "DELETE "+api.PathProject, access.ByAdmins, "Remove a project", s.rules.DropProject),
		route.JSON("get-policy", "GET "+api.PathPolicy, access.ByOperators, "The rules in force", s.rules.Policy),
		route.JSON("check-policy", "POST "+api.PathPolicyTest, access.ByAdmins, "What a reload would do", s.rules.CheckPolicy),
		route.JSON("reload-policy", "POST "+api.PathPolicyLoad, access.ByAdmins, "Take the rules as the file has them now", s.rules.ReloadPolicy),
		route.JSON("get-audit", "GET "+api.PathAudit, access.ByOperators, "Who changed what", audit.list).Large(),
		route.JSON("list-tokens", "GET "+api.PathTokens, access.ByUsers, "List tokens", tokens.List),
		route.JSON("create-token", "POST "+api.PathTokens, access.ByUsers, "Make a token", tokens.Create),
		route.Done("revoke-token", "DELETE "+api.PathToken, access.ByUsers, "Take a token out of force", tokens.Revoke),
		route.JSON("join-node", "POST "+api.PathNodeJoin, access.ByJoiners, "Get a node's first certificate", joined.Join),
		route.JSON("renew-node", "POST "+api.PathNodeRenew, access.ByNodes, "Get a node's next certificate", joined.Renew),
		route.Done("revoke-node", "DELETE "+api.PathNodeKey, access.ByAdmins, "Take a node's key away", joined.Revoke),
		route.Plain("POST "+api.PathBackup, access.ByAdmins, "A backup as bytes; only root on the controller's machine. `?vault=false` leaves the key of secrets out", backups.Serve).Streams(),
		route.Plain("POST "+api.PathStream, access.ByNodes, "Between daemons: the bytes that a client asked for", s.streams.Serve).Streams(),
		route.Plain("GET "+api.PathStream, access.ByNodes, "Between daemons: a two-way stream that a client asked for", s.streams.Join).Streams(),
		route.Socket("exec-in-job", "GET "+api.PathJobExec, access.ByUsers, "A WebSocket to a further command in a running job", opened.Open(api.StreamExec)),
		route.Socket("attach-to-job", "GET "+api.PathJobAttach, access.ByUsers, "A WebSocket to the terminal of a running job", opened.Open(api.StreamAttach)),
		route.Socket("forward-to-job", "GET "+api.PathJobForward, access.ByUsers, "A WebSocket to a port of a running job", opened.Open(api.StreamForward)),

		route.Plain("GET /metrics", access.ByScrapers, "Metrics as Prometheus reads them", s.metrics),
		route.Plain("GET /healthz", access.ByAnyone, "200 while the controller serves", healthy),
		route.Described("GET /openapi.json", "This API as an OpenAPI 3.1 document; also `.yaml`, and `/openapi-3.0.json` and `.yaml`"),
		route.Described("GET /openapi.yaml", ""),
		route.Described("GET /openapi-3.0.json", ""),
		route.Described("GET /openapi-3.0.yaml", ""),
		route.Plain("/", access.ByAnyone, "", nothingHere),
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
	metrics.Handler(s.meters.Reg).ServeHTTP(w, r)
	return nil
}

// eventsResponse says in the API's description what the stream is of.
var eventsResponse = map[string]*huma.Response{"200": {
	Description: "events job, node, reset and ping; each has an id to go on after",
	Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}},
}}
