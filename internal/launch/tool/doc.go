// Package tool is what the node runs in a container for a client that reaches
// into it, whatever the image has: files by SFTP, and connections from inside.
// It runs as the job, with the job's rights, and is a part of the program of
// internal/noded/inside. The client is at its standard input and output.
package tool
