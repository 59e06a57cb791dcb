// Package ctld is the controller process around internal/control: it turns
// requests into events, runs the loop that applies, stores and then answers,
// and serves the API to clients and nodes.
//
// One goroutine, the loop, owns the control.Controller and the store's writes.
// Everything else reads the published state.View or sends the loop a
// request. Nothing here decides about jobs.
package ctld
