// Package streams joins a client with the node of its job: logs, terminals,
// further commands, ports. It owns the connections and knows no job; who may have
// a stream, OfJobs says.
package streams
