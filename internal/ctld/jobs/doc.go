// Package jobs has the handlers of jobs: submit, show, explain, act on them. It
// turns requests into events for the loop, and what the loop and the store have
// into answers. It decides nothing about jobs.
package jobs
