package route

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
)

// How a caller says who it is, as /openapi.json names it.
const (
	byToken       = "token"
	byCertificate = "certificate"
)

// describe completes the description of the API with what huma does not draw out
// of the handlers: where it is served, who may call and how they say who they
// are, parameters of paths that are not read by huma, and types that write
// themselves otherwise than their fields.
func describe(doc *huma.OpenAPI) {
	doc.Info.Contact = &huma.Contact{Name: "the operators of this site"}
	doc.Info.License = &huma.License{Name: "as of the packages that the site has installed", Identifier: "LicenseRef-gbatch"}
	doc.Info.Description = "Jobs, nodes and accounting of one gbatch controller. On its unix socket the kernel says who calls, and no token is needed."
	doc.Servers = []*huma.Server{{URL: "/", Description: "the controller that gave this document"}}
	if doc.Components.SecuritySchemes == nil {
		doc.Components.SecuritySchemes = map[string]*huma.SecurityScheme{}
	}
	doc.Components.SecuritySchemes[byToken] = &huma.SecurityScheme{Type: "http", Scheme: "bearer", Description: "a token as `gadm token create` makes it"}
	doc.Components.SecuritySchemes[byCertificate] = &huma.SecurityScheme{Type: "mutualTLS", Description: "a node's certificate"}
	doc.Tags = tags
	refused := &huma.Response{Description: "what was wrong, and what to do", Content: map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/Error"}}}}
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Post, path.Put, path.Patch, path.Delete} {
			if op == nil {
				continue
			}
			op.Responses["4XX"] = refused
			for _, p := range op.Parameters {
				p.Description = cmp.Or(p.Description, parameters[p.Name])
			}
		}
	}
	if op := doc.Paths[api.PathJobs].Post; op != nil {
		op.RequestBody.Content["application/json"].Examples = map[string]*huma.Example{"hello": {Summary: "one core, and a line of output", Value: helloJob}}
	}
	if s := doc.Components.Schemas.Map()["Command"]; s != nil { // see job.Command
		*s = huma.Schema{Description: "a line for a shell, or a program with its arguments", OneOf: []*huma.Schema{
			{Type: huma.TypeString}, {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}}}
	}
}

// helloJob is the least that can be submitted.
var helloJob = map[string]any{"project": "vision", "job": map[string]any{"name": "hello", "request": map[string]any{
	"resources": map[string]any{"cpus": 1, "cpuMemoryGb": 1, "gpus": 0},
	"docker":    map[string]any{"image": "debian:stable-slim", "command": "echo hello"},
}}}

// tags are the parts of the API; see tagOf.
var tags = []*huma.Tag{
	{Name: "events", Description: "What changes"},
	{Name: "jobs", Description: "Submit jobs, look at them and act on them"},
	{Name: "nodes", Description: "Nodes, GPUs and reservations"},
	{Name: "site", Description: "The controller, projects, rules and tokens"},
	{Name: "usage", Description: "What ended, and what was used"},
}

// parameters describes, by name, the parameters that have no description of their own
// and mean the same in every operation.
var parameters = map[string]string{
	"action":  "what to do: cancel, hold, release, pause, resume, requeue, halt, signal or update",
	"cluster": "only of this cluster, by its number",
	"id":      "number of a job, NUMBER_TASK for a task, or UUID; of a token, its name",
	"limit":   "at most so many",
	"name":    "name of the node, project, reservation or job",
	"node":    "only what runs or ran on this node",
	"offset":  "bytes to leave out at the beginning",
	"project": "only of this project",
	"qos":     "only of this class of service",
	"rank":    "of the ranks of a gang, from 0",
	"since":   "only what happened from then on",
	"user":    "only of this user",
}

// tagOf is the part of the API to which a path belongs.
func tagOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/v1/"), "/")
	return cmp.Or(map[string]string{"jobs": "jobs", "actions": "jobs", "events": "events", "history": "usage", "usage": "usage", "shares": "usage",
		"cluster": "nodes", "nodes": "nodes", "node": "nodes", "reservations": "nodes"}[first], "site")
}

// callable says who may call an operation.
func callable(who access.Level) string {
	switch who {
	case access.ByAnyone:
		return "Nobody needs to say who they are."
	case access.ByNodes:
		return "Between daemons: for the node itself."
	case access.ByJoiners:
		return "Between daemons: for a node with a token to join."
	}
	return "For " + strings.ReplaceAll(string(who), ", ", " and ") + "."
}

// socketsKey is the key under which the description has the operations that become a
// WebSocket. They are not among its paths, as no generator makes a client of them.
const socketsKey = "x-websockets"

func addSocket(doc *huma.OpenAPI, op *huma.Operation) {
	if doc.Extensions == nil {
		doc.Extensions = map[string]any{}
	}
	sockets, _ := doc.Extensions[socketsKey].(map[string]*huma.PathItem)
	if sockets == nil {
		sockets = map[string]*huma.PathItem{}
	}
	sockets[op.Path] = &huma.PathItem{Get: op}
	doc.Extensions[socketsKey] = sockets
}

// security says by what a caller shows this right. The list is of alternatives: an
// empty one says that nothing is needed.
func security(who access.Level) []map[string][]string {
	token, certificate := map[string][]string{byToken: {}}, map[string][]string{byCertificate: {}}
	switch who {
	case access.ByAnyone:
		return []map[string][]string{}
	case access.ByNodes:
		return []map[string][]string{certificate}
	case access.ByUsersAndNodes:
		return []map[string][]string{token, certificate}
	}
	return []map[string][]string{token}
}

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// pathParameters declares those of a path that no handler's input declares.
func pathParameters(op *huma.Operation) {
	for _, m := range pathParameter.FindAllStringSubmatch(op.Path, -1) {
		if !slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "path" && p.Name == m[1] }) {
			op.Parameters = append(op.Parameters, &huma.Param{Name: m[1], In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}})
		}
	}
}
