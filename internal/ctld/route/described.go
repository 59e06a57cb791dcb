package route

import (
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"gbatch/internal/ctld/access"
)

// Described is a route to the description of all routes, in the form that the end of
// its path names.
func Described(pattern, doc string) Route {
	return Route{Pattern: pattern, Who: access.ByAnyone, Doc: doc, serve: func(a huma.API, g *Guard, r *Route) {
		form := forms[path.Base(pattern)]
		made := sync.OnceValues(func() ([]byte, error) { return form.write(a.OpenAPI()) })
		g.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			b, err := made()
			if err != nil {
				writeError(w, g.fail(req.Context(), r, err))
				return
			}
			w.Header().Set("Content-Type", form.kind)
			_, _ = w.Write(b) // the client has gone: nobody to tell
		})
	}}
}

const (
	inJSON = "application/openapi+json"
	inYAML = "application/openapi+yaml"
)

// forms are the versions of the description, by the names that they are served under.
var forms = map[string]struct {
	kind  string
	write func(*huma.OpenAPI) ([]byte, error)
}{
	"openapi.json":     {inJSON, func(doc *huma.OpenAPI) ([]byte, error) { return json.Marshal(doc) }},
	"openapi.yaml":     {inYAML, (*huma.OpenAPI).YAML},
	"openapi-3.0.json": {inJSON, func(doc *huma.OpenAPI) ([]byte, error) { return older(doc).Downgrade() }},
	"openapi-3.0.yaml": {inYAML, func(doc *huma.OpenAPI) ([]byte, error) { return older(doc).DowngradeYAML() }},
}

// older is the description without what OpenAPI 3.0 has no words for and huma
// leaves as it is: the identifier of the license, and certificates of clients, for
// which it has the name of an HTTP scheme.
func older(doc *huma.OpenAPI) *huma.OpenAPI {
	out, info, license, components := *doc, *doc.Info, *doc.Info.License, *doc.Components
	license.Identifier = ""
	info.License = &license
	components.SecuritySchemes = maps.Clone(components.SecuritySchemes)
	components.SecuritySchemes[byCertificate] = &huma.SecurityScheme{Type: "http", Scheme: "mutual", Description: doc.Components.SecuritySchemes[byCertificate].Description}
	out.Info, out.Components = &info, &components
	return &out
}
