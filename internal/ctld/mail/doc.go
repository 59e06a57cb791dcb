// Package mail says in words what became of a job, and hands mail to the site's relay.
// Who is told, and that it is tried again, is internal/ctld/webhook's.
package mail
