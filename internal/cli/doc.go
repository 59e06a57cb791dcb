// Package cli is what the commands gsubmit, gqueue, gcancel, glog and ginfo
// do, without their flags' names: App has one method per command, which talks
// to the controller through internal/client and writes to App.Out and App.Err.
// The package also holds what the commands share: connection and output flags,
// exit codes, tables, and how times and sizes are written.
//
// It never reads a clock, a terminal or the environment by itself once App is
// made, so that tests see the bytes a user would. Text from the controller is
// shown only with its control characters escaped; a job's log is the
// exception, it goes to Out byte by byte.
package cli
