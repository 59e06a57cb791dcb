// Package apitest compares answers of a controller with the description of the
// API that it gives itself, for tests. It is no part of any program.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document is /openapi.json, with its schemas ready to be used.
type document struct {
	Operations []operation

	compiler *jsonschema.Compiler
	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema // by place in the document
}

// operation is one of the document.
type operation struct {
	Method, Path string
	responses    map[string]bool // whether it is JSON, by status
	match        *regexp.Regexp
}

// parse reads a document. What an answer has and the document does not is a fault
// too, though clients must bear it: all objects are taken to be closed.
func parse(body []byte) (*document, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, err
	}
	d := &document{compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	d.compiler.AssertFormat()
	seal(v)
	if err := d.compiler.AddResource(base, v); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for method, op := range doc.Paths[path] {
			o := operation{Method: strings.ToUpper(method), Path: path, responses: map[string]bool{}}
			for status, r := range op.Responses {
				_, o.responses[status] = r.Content[jsonType]
			}
			o.match = regexp.MustCompile("^" + regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`) + "$")
			d.Operations = append(d.Operations, o)
		}
	}
	if len(d.Operations) == 0 {
		return nil, errors.New("the document has no operations")
	}
	return d, nil
}

const (
	base     = "file:///openapi.json"
	jsonType = "application/json"
)

// seal takes from all objects with named fields that they may have others.
func seal(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, named := v["properties"].(map[string]any); named && v["additionalProperties"] == true {
			v["additionalProperties"] = false
		}
		for _, kid := range v { // each by itself: order does not matter
			seal(kid)
		}
	case []any:
		for _, kid := range v {
			seal(kid)
		}
	}
}

// check says what of an answer is not as described. Paths that are not described are
// not looked at.
func (d *document) check(method, path string, status int, body []byte) error {
	i := slices.IndexFunc(d.Operations, func(o operation) bool { return o.Method == method && o.match.MatchString(path) })
	if i < 0 {
		return nil
	}
	o := &d.Operations[i]
	for _, key := range []string{fmt.Sprint(status), fmt.Sprintf("%dXX", status/100), "default"} {
		isJSON, described := o.responses[key]
		switch {
		case !described:
			continue
		case !isJSON:
			return nil
		}
		s, err := d.schema(fmt.Sprintf("/paths/%s/%s/responses/%s/content/%s/schema", escape(o.Path), strings.ToLower(method), key, escape(jsonType)))
		if err != nil {
			return err
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err == nil {
			err = s.Validate(v)
		}
		if err != nil {
			return fmt.Errorf("%s %s answers %d with what is not described: %w\n%.2000s", method, path, status, err, body)
		}
		return nil
	}
	return fmt.Errorf("%s %s answers %d, which is not described", method, path, status)
}

// escape writes a key as a part of a JSON pointer in a URI.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(key)
}

func (d *document) schema(at string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.compiled[at]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(base + "#" + at)
	if err == nil {
		d.compiled[at] = s
	}
	return s, err
}

// Description is the document of the first controller that was asked for it. Making
// and reading it is more work than most tests, so those of one program share it.
type Description struct {
	mu       sync.Mutex
	document *document
}

// Transport has each answer in JSON compared with the description.
type Transport struct {
	Base *http.Transport
	Of   *Description
	Bad  func(error) // is told of what is not as described
}

// Socket is a Transport to a controller's unix socket.
func Socket(path string, of *Description, bad func(error)) *Transport {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &Transport{Base: &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: 16}, Of: of, Bad: bad}
}

// CloseIdleConnections is what an http.Client looks for.
func (t *Transport) CloseIdleConnections() { t.Base.CloseIdleConnections() }

// RoundTrip makes the exchange.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.Base.RoundTrip(r)
	if err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), jsonType) || resp.StatusCode == http.StatusMisdirectedRequest {
		return resp, err // a controller that does not lead has no document
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	d, err := t.Of.get(t.Base, r)
	if err == nil {
		err = d.check(r.Method, r.URL.EscapedPath(), resp.StatusCode, body)
	}
	if err != nil {
		t.Bad(err)
	}
	return resp, nil
}

// get is the document, which is asked for once, as like was.
func (d *Description) get(over http.RoundTripper, like *http.Request) (*document, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.document != nil {
		return d.document, nil
	}
	r := like.Clone(like.Context())
	u := *like.URL
	r.Method, r.Body, r.ContentLength, u.Path, u.RawPath, u.RawQuery = http.MethodGet, nil, 0, "/openapi.json", "", ""
	r.URL = &u
	resp, err := over.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil {
		d.document, err = parse(body)
	}
	return d.document, err
}
