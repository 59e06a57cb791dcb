// Package ctld is the controller process: it opens the state directory, puts the
// parts together, listens, and says in one table what the API's routes are. The
// parts are packages below it. Nothing here decides about jobs.
package ctld
