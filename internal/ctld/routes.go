package ctld

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/controllers"
	"gbatch/internal/ctld/convert"
	"gbatch/internal/ctld/jobs"
	"gbatch/internal/ctld/login"
	"gbatch/internal/ctld/nodes"
	"gbatch/internal/ctld/ports"
	"gbatch/internal/ctld/route"
	"gbatch/internal/ctld/streams"
	"gbatch/internal/ctld/trees"
	"gbatch/internal/ctld/usage"
	"gbatch/internal/ctld/whatif"
	"gbatch/internal/metrics"
	"gbatch/internal/web"
)

// routes is the API: each route with its path, who may use it, what it is for
// and what serves it. /openapi.json, docs/api.md and the tests of who may do
// what come from this table.
func (s *Server) routes() []route.Route {
	used := &usage.Used{View: s.loop.View, Samples: &s.samples, Now: s.loop.Now}
	submissions := &jobs.Submissions{Meters: s.meters, Conf: s.rules.Now, Rights: s.rights, Loop: s.loop, Jobs: s.jobs, HasTree: s.trees.Has}
	actions := &jobs.Actions{Loop: s.loop, Jobs: s.jobs, Rights: s.rights}
	queries := &jobs.Queries{Loop: s.loop, Jobs: s.jobs, Rights: s.rights, Keys: s.keys, Used: used, Kept: s.kept, Curves: s.curves, Untold: s.hooks.Untold}
	taken := nodes.NewLogs(s.rules.Now, s.jobs, s.kept, s.log)
	past := &usage.History{Loop: s.loop, Store: s.store, Jobs: s.jobs, Rights: s.rights, Used: used, Now: s.now}
	exchange := &nodes.Exchange{Conf: s.rules.Now, Loop: s.loop, Jobs: s.jobs, Streams: s.streams, Samples: &s.samples, Skews: s.skews, Curves: s.curves, UID: s.rights.People.UID, IDs: s.ids, Key: s.jobs.Vault.Key("records told to nodes"), Log: s.log, Now: s.now, Sign: s.pki.SignLayers}
	listed := &nodes.List{Conf: s.rules.Now, Rights: s.rights, View: s.loop.View, Samples: &s.samples, Skews: s.skews, Now: s.loop.Now}
	operator := &nodes.Operator{Loop: s.loop, Rights: s.rights}
	joined := &nodes.Keys{Keys: s.keys, Pki: s.pki, Loop: s.loop, Now: s.now}
	tokens := &access.Tokens{Conf: s.rules.Now, Keys: s.keys, Loop: s.loop, Now: s.now}
	audit := &auditLog{store: s.store}
	about := &about{started: s.started, now: s.now, rules: s.rules, rights: s.rights, loop: s.loop, meters: s.meters, streams: s.streams, pin: s.pki.Pin(), listeners: s.front.lns}
	backups := &backup.Maker{Dir: s.rules.Now().Dir, Pin: s.pki.Pin(), Version: Version, Loop: s.loop, Store: s.store, Log: s.log, Now: s.now}

	sessions := &access.Sessions{Tokens: tokens}
	return append(slices.Concat(submitting(submissions), asking(queries, convert.New(s.now)), s.foreseeing(), entering(s.opened, s.ports), s.logins(sessions), ofPage(sessions), s.ofControllers(), bringing(&trees.Handlers{Store: s.trees, Jobs: s.jobs})), []route.Route{
		route.Rows("GET "+api.PathJobs, access.ByUsers, queries.List).Is("list-jobs", "List jobs").InJobs().Large(),
		route.JSON("GET "+api.PathJob, access.ByUsers, queries.Show).Is("get-job", "Everything about one job, or wait for its next change").InJobs(),
		route.JSON("PATCH "+api.PathSecrets, access.ByUsers, actions.SetSecrets).Is("set-job-secrets", "Give a job new values of its secrets"),
		route.JSON("POST "+api.PathJobAction, access.ByUsers, actions.Act).Is("act-on-jobs", "What to do with jobs: cancel, hold, release, pause, resume, requeue, halt, signal or update").InJobs(),
		route.JSON("POST "+api.PathFormerAction, access.ByUsers, actions.Act).Former(),
		route.JSON("PATCH "+api.PathJob, access.ByUsers, actions.Resize).Is("resize-job", "Give a running job other CPU and memory"),
		route.Stream("GET "+api.PathEvents, access.ByUsers, s.changes.Stream, eventsResponse).Is("watch-events", "What changes, as server-sent events").InJobs(),
		route.JSON("GET "+api.PathCluster, access.ByUsers, listed.All).Is("get-cluster", "Nodes and GPUs").InJobs().Large(),
		route.JSON("GET "+api.PathPlan, access.ByUsers, listed.Plan).Is("get-plan", "What nodes do and are to do: jobs that run, starts that are promised, reservations").InJobs().Large(),
		route.JSON("GET "+api.PathNode, access.ByUsers, listed.One).Is("get-node", "A node and what became of it lately").InJobs(),
		route.JSON("GET "+api.PathStatus, access.ByUsersAndNodes, about.status).Is("get-status", "Version, counts, and who you are").InJobs(),
		route.JSON("GET "+api.PathHistory, access.ByUsers, past.List).Is("list-history", "Jobs that have ended, with what they used").InJobs().Large(),
		route.JSON("GET "+api.PathUsage, access.ByUsers, past.Usage).Is("get-usage", "What was used, by project, user, GPU model, cluster, day or month").InJobs().Large(),
		route.JSON("GET "+api.PathShares, access.ByUsers, past.Shares).Is("list-shares", "Fair share: shares, usage and factors").InJobs().Large(),
		route.JSON("POST "+api.PathNodeSync, access.ByNodes, exchange.Sync).Is("sync-node", "A node's exchange with the controller").InTurn(),
		route.JSON("POST "+api.PathNodeLaunch, access.ByNodes, exchange.Launch).Is("record-step", "What srun starts in a job"),
		route.JSON("POST "+api.PathNodeLogs, access.ByNodes, taken.Take).Is("keep-logs", "What a node's ranks write, to be kept"),
		route.Stream("GET "+api.PathJobLog, access.ByUsers, s.opened.Log, nil).Is("get-job-log", "The log of a job, as bytes"),
		route.JSON("POST "+api.PathDrain, access.ByOperators, operator.Drain).Is("drain-node", "Take a node or a GPU out of scheduling"),
		route.Done("POST "+api.PathResume, access.ByOperators, operator.Resume).Is("resume-node", "Put a node or a GPU back"),
		route.Done("DELETE "+api.PathNode, access.ByOperators, joined.Forget).Is("forget-node", "Drop a node that is gone for good"),
		route.JSON("GET "+api.PathReservations, access.ByUsers, operator.Reservations).Is("list-reservations", "List advance reservations").InJobs(),
		route.JSON("POST "+api.PathReservations, access.ByOperators, operator.Reserve).Is("make-reservation", "Keep nodes for some jobs or for nobody"),
		route.Done("DELETE "+api.PathReservation, access.ByOperators, operator.Unreserve).Is("drop-reservation", "Remove a reservation"),
		route.JSON("GET "+api.PathDiag, access.ByOperators, about.diag).Is("get-diagnosis", "How the controller fares"),
		route.JSON("GET "+api.PathSite, access.ByUsers, about.site).Is("get-site", "How to reach this controller"),
		route.JSON("GET "+api.PathProjects, access.ByUsers, s.rules.Projects).Is("list-projects", "List projects").InJobs(),
		route.JSON("PUT "+api.PathProject, access.ByAdmins, s.rules.PutProject).Is("put-project", "Make or change a project"),
		route.Done("DELETE "+api.PathProject, access.ByAdmins, s.rules.DropProject).Is("drop-project", "Remove a project"),
		route.JSON("GET "+api.PathPolicy, access.ByOperators, s.rules.Policy).Is("get-policy", "The rules in force"),
		route.JSON("POST "+api.PathPolicyTest, access.ByAdmins, s.rules.CheckPolicy).Is("check-policy", "What a reload would do"),
		route.JSON("POST "+api.PathPolicyLoad, access.ByAdmins, s.rules.ReloadPolicy).Is("reload-policy", "Take the rules as the file has them now"),
		route.JSON("GET "+api.PathAudit, access.ByOperators, audit.list).Is("get-audit", "Who changed what").Large(),
		route.JSON("GET "+api.PathTokens, access.ByUsers, tokens.List).Is("list-tokens", "List tokens"),
		route.JSON("POST "+api.PathTokens, access.ByUsers, tokens.Create).Is("create-token", "Make a token"),
		route.Done("DELETE "+api.PathToken, access.ByUsers, tokens.Revoke).Is("revoke-token", "Take a token out of force"),
		route.JSON("POST "+api.PathNodeJoin, access.ByJoiners, joined.Join).Is("join-node", "Get a node's first certificate"),
		route.JSON("POST "+api.PathNodeRenew, access.ByNodes, joined.Renew).Is("renew-node", "Get a node's next certificate"),
		route.Done("DELETE "+api.PathNodeKey, access.ByAdmins, joined.Revoke).Is("revoke-node", "Take a node's key away"),
		route.Plain("POST "+api.PathBackup, access.ByAdmins, "A backup as bytes; only root on the controller's machine. `?vault=false` leaves the key of secrets out", backups.Serve).Streams(),
		route.Plain("POST "+api.PathStream, access.ByNodes, "Between daemons: the bytes that a client asked for", s.streams.Serve).Streams(),
		route.Plain("GET "+api.PathStream, access.ByNodes, "Between daemons: a two-way stream that a client asked for", s.streams.Join).Streams(),
		route.Plain("GET /metrics", access.ByScrapers, "Metrics as Prometheus reads them", s.metrics),
		route.Plain("GET /healthz", access.ByAnyone, "200 while the controller serves", healthy),
		route.Described("GET /openapi.json", "This API as an OpenAPI 3.1 document; also `.yaml`, and `/openapi-3.0.json` and `.yaml`"),
		route.Described("GET /openapi.yaml", ""),
		route.Described("GET /openapi-3.0.json", ""),
		route.Described("GET /openapi-3.0.yaml", ""),
		route.Plain("/", access.ByAnyone, "", nothingHere),
	}...)
}

// submitting are for jobs that come in.
func submitting(s *jobs.Submissions) []route.Route {
	return []route.Route{
		route.JSON("POST "+api.PathJobs, access.ByUsers, s.Submit).Is("submit-job", "Submit a job").InJobs().InTurn(),
		route.Many("POST "+api.PathJobsMany, access.ByUsers, func(ctx context.Context, in *jobs.SubmitManyInput, each route.Each) (*api.SubmitManyResponse, error) {
			return s.SubmitMany(ctx, in, each.Another, each.Fail)
		}).Is("submit-jobs", "Submit several jobs, each of which is taken or refused for itself").InTurn(),
	}
}

// ofControllers are for those who run several.
func (s *Server) ofControllers() []route.Route {
	var members *controllers.Members // nil: there is one
	if s.leads != nil {
		members = s.leads.members
	}
	h := &controllers.Handlers{Members: members, Dir: s.rules.Now().Dir, Loop: s.loop}
	return []route.Route{
		route.JSON("GET "+api.PathLeader, access.ByAnyone, s.leader).Is("get-leader", "Which of several controllers leads. With `not`, one that does not lead answers when it is another one than that, or after a minute"),
		route.JSON("GET "+api.PathControllers, access.ByOperators, h.List).Is("list-controllers", "List the controllers that have all records in common"),
		route.JSON("POST "+api.PathControllers, access.ByAdmins, h.Add).Is("add-controller", "Let another controller take part; only root on the machine of the one that leads, as the answer has all keys"),
		route.Done("DELETE "+api.PathController, access.ByAdmins, h.Remove).Is("remove-controller", "Let a controller take part no longer"),
		route.Done("POST "+api.PathLead, access.ByAdmins, h.Transfer).Is("transfer-lead", "Let another controller lead"),
	}
}

// ofPage are what the web page has beside the API.
func ofPage(sessions *access.Sessions) []route.Route {
	return []route.Route{
		route.Cookie("POST "+api.PathSession, access.ByLogins, sessions.Open).Is("open-session", "Between the web page and the controller: exchange a token for a session, in a cookie"),
		route.Cookie("DELETE "+api.PathSession, access.ByUsers, sessions.Close).Is("close-session", "Between the web page and the controller: end the session"),
		route.Plain("GET "+web.Base, access.ByAnyone, "The web page: a document, a script and a style sheet", web.Serve),
		route.Plain("GET /{$}", access.ByAnyone, "", web.Home),
	}
}

// logins are where those come who have logged in at the identity provider.
func (s *Server) logins(sessions *access.Sessions) []route.Route {
	logins := login.New(login.Options{Conf: s.rules.Now, Sessions: sessions, Account: s.rights.People.Account, Now: s.now, Log: s.log})
	return []route.Route{
		route.JSON("GET "+api.PathLogin, access.ByAnyone, logins.Site).Is("get-login", "Where to log in"),
		route.JSON("POST "+api.PathLogin, access.ByAnyone, logins.Enter).Is("log-in", "Get a token by what the identity provider said"),
		route.JSON("GET "+api.PathLoginPage, access.ByAnyone, logins.Pages).Is("get-login-page", "At which addresses the web page logs in at the identity provider"),
		route.Kept("POST "+api.PathLoginPage, access.ByAnyone, logins.Begin).Is("begin-login", "Between the web page and the controller: begin to log in at the identity provider"),
		route.Cookie("POST "+api.PathLoginReturn, access.ByAnyone, logins.Return).Is("return-from-login", "Between the web page and the controller: get a session by what the identity provider sent the browser back with"),
	}
}

// asking are questions about one job, or about a file that may become one.
func asking(queries *jobs.Queries, files *convert.Handlers) []route.Route {
	return []route.Route{
		route.JSON("GET "+api.PathExplain, access.ByUsers, queries.Explain).Is("explain-job", "Why a job waits, and what would help"),
		route.JSON("GET "+api.PathCurves, access.ByUsers, queries.CurvesOf).Is("get-job-curves", "What a rank of a job has used over its time"),
		route.JSON("POST "+api.PathConvert, access.ByUsers, files.Convert).Is("convert-job", "The native document of a job file of another system"),
	}
}

// foreseeing is what would be.
func (s *Server) foreseeing() []route.Route {
	rules := func() (control.Config, error) { return s.rules.Now().Rules() }
	asked := whatif.New(whatif.Site{Rules: rules, Next: s.rules.Next, View: s.loop.View, Load: s.store.Load, Now: s.loop.Now})
	return []route.Route{
		route.JSON("POST "+api.PathWhatIf, access.ByOperators, asked.Ask).Is("what-if", "Who would wait for how long by other rules or with more nodes, by a simulation of what is there now"),
	}
}

// entering are the streams to jobs that run.
func entering(opened *streams.OfJobs, shown *ports.Ports) []route.Route {
	return []route.Route{
		route.Socket("GET "+api.PathJobExec, access.ByUsers, opened.Open(api.StreamExec)).Is("exec-in-job", "A WebSocket to a further command in a running job"),
		route.Socket("GET "+api.PathJobAttach, access.ByUsers, opened.Open(api.StreamAttach)).Is("attach-to-job", "A WebSocket to the terminal of a running job"),
		route.Socket("GET "+api.PathJobSave, access.ByUsers, opened.Open(api.StreamSave)).Is("save-job", "A WebSocket to what a running job has written over its image, as a layer"),
		route.Socket("GET "+api.PathJobForward, access.ByUsers, opened.Open(api.StreamForward)).Is("forward-to-job", "A WebSocket to a port of a running job"),
		route.JSON("POST "+api.PathJobPort, access.ByUsers, shown.Open).Is("open-job-port", "Between the web page and the controller: a link by which the browser of a session comes to a port of a running job, at a host name of its own"),
	}
}

// bringing are the directories that go along with jobs.
func bringing(brought *trees.Handlers) []route.Route {
	return []route.Route{
		route.JSON("POST "+api.PathTrees, access.ByUsers, brought.AddTree).Is("add-tree", "Keep a directory that jobs shall take along, of chunks that were sent"),
		route.Done("PUT "+api.PathTreeChunk, access.ByUsers, brought.PutChunk).Is("put-tree-chunk", "Send a chunk of a directory"),
		route.Plain("GET "+api.PathNodeTree, access.ByNodes, "Between daemons: a directory that a job takes along, as a tar archive", brought.Serve).Streams(),
	}
}

func healthy(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusOK)
	return nil
}

func nothingHere(_ http.ResponseWriter, r *http.Request) error {
	return api.Errorf(api.CodeNotFound, "there is nothing at %s %s", r.Method, r.URL.Path).WithHint("the API is described at /openapi.json")
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
