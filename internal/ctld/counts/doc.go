// Package counts tells those who scrape what there is at the moment: the queue,
// the nodes, the accounts. It counts a published view off the loop and keeps the
// last count. What happens is counted by package meter.
package counts
