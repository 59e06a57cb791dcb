package ctld

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"gbatch/internal/api"
	"gbatch/internal/metrics"
	"gbatch/internal/node"
)

// Version of the program, shown in status. Set by the build.
var Version = "dev"

const maxBody = 2 << 20 // of any request: a job document is at most 1 MiB

// schemaName names a type in the API's description: as Go does, but where two
// of different packages would have one name.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[node.GPU]() {
		return "InventoryGPU"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// routes is the API. What it serves at /openapi.json is made from the same
// registrations.
func (s *Server) routes() *guard {
	mux := &guard{mux: http.NewServeMux(), auth: s.auth, denied: s.auditDenied, measure: s.loop.metrics}
	cfg := huma.DefaultConfig("gbatch", "1")
	cfg.AllowAdditionalPropertiesByDefault = true // fields are only added: an older server ignores a newer client's
	cfg.SchemasPath, cfg.DocsPath = "", ""
	cfg.CreateHooks = nil // no $schema links in answers
	cfg.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	a := humago.New(mux, cfg)

	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, MaxBodyBytes: maxBody, BodyReadTimeout: bodyTime, SkipValidateBody: true}
	}
	huma.Register(a, op("submit-job", "POST", api.PathJobs, "Submit a job"), s.submit)
	huma.Register(a, op("list-jobs", "GET", api.PathJobs, "List jobs"), s.list)
	huma.Register(a, op("get-job", "GET", api.PathJob, "Everything about one job, or wait for its next change"), s.show)
	huma.Register(a, op("explain-job", "GET", api.PathExplain, "Why a job waits, and what would help"), s.explain)
	huma.Register(a, op("set-job-secrets", "PATCH", api.PathSecrets, "Give a job new values of its secrets"), s.setSecrets)
	huma.Register(a, op("act-on-jobs", "POST", api.PathJobAction, "What to do with jobs: cancel, hold, release, pause, resume, requeue, halt, signal or update"), s.act)
	huma.Register(a, op("resize-job", "PATCH", api.PathJob, "Give a running job other CPU and memory"), s.resize)
	huma.Register(a, eventsOperation(op("watch-events", "GET", api.PathEvents, "What changes, as server-sent events")), s.events)
	huma.Register(a, op("get-cluster", "GET", api.PathCluster, "Nodes and GPUs"), s.cluster)
	huma.Register(a, op("get-status", "GET", api.PathStatus, "Version, counts, and who you are"), s.status)
	huma.Register(a, op("list-history", "GET", api.PathHistory, "Jobs that have ended, with what they used"), s.listPast)
	huma.Register(a, op("get-usage", "GET", api.PathUsage, "What was used, by project, user, GPU model, cluster, day or month"), s.usage)
	huma.Register(a, op("list-shares", "GET", api.PathShares, "Fair share: shares, usage and factors"), s.shares)
	huma.Register(a, op("sync-node", "POST", api.PathNodeSync, "A node's exchange with the controller"), s.sync)
	huma.Register(a, op("get-job-log", "GET", api.PathJobLog, "The log of a job, as bytes"), s.jobLog)
	huma.Register(a, op("drain-node", "POST", api.PathDrain, "Take a node or a GPU out of scheduling"), s.drain)
	huma.Register(a, op("resume-node", "POST", api.PathResume, "Put a node or a GPU back"), s.resume)
	huma.Register(a, op("forget-node", "DELETE", api.PathNode, "Drop a node that is gone for good"), s.forget)
	huma.Register(a, op("list-reservations", "GET", api.PathReservations, "List advance reservations"), s.reservations)
	huma.Register(a, op("make-reservation", "POST", api.PathReservations, "Keep nodes for some jobs or for nobody"), s.reserve)
	huma.Register(a, op("drop-reservation", "DELETE", api.PathReservation, "Remove a reservation"), s.unreserve)
	huma.Register(a, op("get-diagnosis", "GET", api.PathDiag, "How the controller fares"), s.diag)
	huma.Register(a, op("get-site", "GET", api.PathSite, "How to reach this controller"), s.site)
	huma.Register(a, op("list-projects", "GET", api.PathProjects, "List projects"), s.projects)
	huma.Register(a, op("put-project", "PUT", api.PathProject, "Make or change a project"), s.putProject)
	huma.Register(a, op("drop-project", "DELETE", api.PathProject, "Remove a project"), s.dropProject)
	huma.Register(a, op("get-policy", "GET", api.PathPolicy, "The rules in force"), s.policy)
	huma.Register(a, op("check-policy", "POST", api.PathPolicyTest, "What a reload would do"), s.checkPolicy)
	huma.Register(a, op("reload-policy", "POST", api.PathPolicyLoad, "Take the rules as the file has them now"), s.reloadPolicy)
	huma.Register(a, op("get-audit", "GET", api.PathAudit, "Who changed what"), s.audit)
	huma.Register(a, op("list-tokens", "GET", api.PathTokens, "List tokens"), s.listTokens)
	huma.Register(a, op("create-token", "POST", api.PathTokens, "Make a token"), s.createToken)
	huma.Register(a, op("revoke-token", "DELETE", api.PathToken, "Take a token out of force"), s.revokeToken)
	huma.Register(a, op("join-node", "POST", api.PathNodeJoin, "Get a node's first certificate"), s.join)
	huma.Register(a, op("renew-node", "POST", api.PathNodeRenew, "Get a node's next certificate"), s.renew)
	huma.Register(a, op("revoke-node", "DELETE", api.PathNodeKey, "Take a node's key away"), s.revokeNode)
	mux.HandleFunc("POST "+api.PathBackup, s.backup)
	mux.HandleFunc("POST "+api.PathStream, s.streams.serve)
	mux.HandleFunc("GET "+api.PathStream, s.streams.join)
	for kind, o := range map[string]huma.Operation{
		api.StreamExec:    op("exec-in-job", "GET", api.PathJobExec, "A WebSocket to a further command in a running job"),
		api.StreamAttach:  op("attach-to-job", "GET", api.PathJobAttach, "A WebSocket to the terminal of a running job"),
		api.StreamForward: op("forward-to-job", "GET", api.PathJobForward, "A WebSocket to a port of a running job"),
	} {
		o.Responses = map[string]*huma.Response{"101": {Description: "messages both ways follow"}}
		a.OpenAPI().AddOperation(&o)
		mux.HandleFunc("GET "+o.Path, func(w http.ResponseWriter, r *http.Request) { s.jobStream(w, r, kind) })
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	s.loop.metrics.reg.MustRegister(s.collector(), s.slurmCollector())
	mux.HandleFunc("GET /metrics", metrics.Handler(s.loop.metrics.reg).ServeHTTP)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &api.Error{Status: 404, Code: api.CodeNotFound, Message: "there is nothing at " + r.Method + " " + r.URL.Path, Hint: "the API is described at /openapi.json"})
	})
	return mux
}

// body is an answer of huma's.
type body[T any] struct{ Body T }

type statusInput struct{}

func (s *Server) status(ctx context.Context, _ *statusInput) (*body[api.Status], error) {
	id := caller(ctx)
	out := api.Status{Version: Version, Started: s.started, You: id.user, Role: string(id.role), Jobs: countJobs(s.loop.view.Load())}
	for _, p := range s.cfg().Projects {
		out.Projects = append(out.Projects, p.Name)
	}
	return &body[api.Status]{out}, nil
}
