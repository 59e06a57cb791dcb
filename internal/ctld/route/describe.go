package route

import (
	"regexp"
	"slices"

	"github.com/danielgtaylor/huma/v2"

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
	doc.Info.Description = "Jobs, nodes and accounting of one gbatch controller. On its unix socket the kernel says who calls, and no token is needed."
	doc.Servers = []*huma.Server{{URL: "/", Description: "the controller that gave this document"}}
	if doc.Components.SecuritySchemes == nil {
		doc.Components.SecuritySchemes = map[string]*huma.SecurityScheme{}
	}
	doc.Components.SecuritySchemes[byToken] = &huma.SecurityScheme{Type: "http", Scheme: "bearer", Description: "a token as `gadm token create` makes it"}
	doc.Components.SecuritySchemes[byCertificate] = &huma.SecurityScheme{Type: "mutualTLS", Description: "a node's certificate"}
	if s := doc.Components.Schemas.Map()["Command"]; s != nil { // see job.Command
		*s = huma.Schema{Description: "a line for a shell, or a program with its arguments", OneOf: []*huma.Schema{
			{Type: huma.TypeString}, {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}}}
	}
}

// security is what a caller with this access gives. No access wants a choice of
// nothing: an empty list says that none is needed.
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
