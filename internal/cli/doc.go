// Package cli is what all commands share: App, which is one run of a command
// and all that it may touch; the flags for the connection and the output; the
// exit codes; completion and man pages, which are made of the flags. What a
// command does is in the package of its name below this one, as a struct of its
// flags with a Run method; Slurm's commands are in slurm.
//
// The packages below reach the process through App: its streams, its clock, its
// environment and its terminal's size, which tests replace, so that they see the
// bytes a user would. There are three exceptions. Job files, secrets and scripts
// are read from the file system by name; timers that wait for news or for an end
// are the process's own; and client.Find looks for the controller's address and
// the user's token in the environment and in files. Text from the controller is
// shown only with its control characters escaped; a job's log is the exception,
// it goes to Out byte by byte.
package cli
