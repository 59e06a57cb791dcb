// Package ssh is how stock SSH clients reach into running jobs. ssh runs `gexec
// --ssh-proxy HOST` in place of a connection, and the server that it speaks to is
// here, on the user's machine: each command, file transfer and forwarded
// connection becomes a stream to the job, as gexec's. Nothing listens on the
// network or runs in the container for it, and the rights are those of gexec.
// Config is the configuration for ssh that leads here.
package ssh
