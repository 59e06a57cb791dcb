// Package mail tells users by mail what became of their jobs, where their
// documents ask for it.
package mail
