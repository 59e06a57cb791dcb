// Package metrics is what the metrics of both daemons have in common: families
// that are read at scrape time, labels that no job, user or node can break a
// scrape with, bounds on how many there are, and the handler. It measures
// nothing itself. A Set belongs to the scrape that it is made for.
package metrics
