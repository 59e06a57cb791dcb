// Package transfer brings data to a machine and from it: objects of S3, files
// of HTTP servers, and directories. What was broken off goes on where it
// stopped, also by another process; nobody but a [Client]'s caller decides what
// is transferred, and it knows nothing of jobs.
//
// URIs come from strangers. A [Guard] keeps connections away from the services
// of this machine and its site, and names of objects never lead out of the
// directory that they are written to.
package transfer
