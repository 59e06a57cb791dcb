// Package rights does work on files with the rights of a job's user instead of
// the daemon's, who is root. It knows no files and no jobs: what is done is its
// callers', who also say whose rights are meant.
package rights
