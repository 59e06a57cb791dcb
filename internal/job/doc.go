// Package job is the job model: what a user asks for (Spec, the native GPULab
// v2 document), what can happen to it (State, Reason and the transition
// table), and the numbers that name jobs, tasks, attempts and ranks.
//
// The package is pure: it parses and validates bytes and returns values. It
// reads no clock, file or network, and knows nothing of nodes or queues.
// Values are owned by whoever made them; a Spec is not changed after Parse.
package job
