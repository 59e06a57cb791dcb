// Package data brings what jobs need before they start, and saves what they
// leave. How bytes are moved is package transfer's; when, and what an error
// means for the rank, is the rank's.
package data
