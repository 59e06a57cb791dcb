// Package jobs is what the commands say of a job: its columns in lists, its
// state in our words and in those of other systems, how far an array is, how it
// ended, and the exit code that this is for who waited. It asks the controller
// for nothing and prints nothing.
package jobs
