package api

import "encoding/json"

// ConvertRequest is the body of POST /v1/convert: a job file of any format that
// gsubmit reads, as text.
type ConvertRequest struct {
	Text  string `json:"text" maxLength:"1048576"`
	Image string `json:"image,omitempty"` // of formats whose files need not name one
	Zone  string `json:"zone,omitempty"`  // of dates without one, as Europe/Berlin; none: UTC
}

// ConvertResponse is its answer: the native document, with remarks on what became of
// what the file says. Nothing was submitted.
type ConvertResponse struct {
	Format string          `json:"format"`
	Job    json.RawMessage `json:"job"`
	Notes  []Note          `json:"notes,omitempty"`
}
