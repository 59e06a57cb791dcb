// Package usage has the handlers of what was used: jobs that have ended, reports,
// shares. The sums are the ledger's; it reads the store and the view.
package usage
