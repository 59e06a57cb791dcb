// Package noded is the node daemon: it makes the containers of this machine
// equal to what the controller desires, and tells the controller what is.
//
// It decides nothing about who runs where. It keeps one long poll open to the
// controller, whose answer is the node's desired set; each rank in it is taken
// through ordered steps (image, cores, storage, record, container), each of
// which can be undone without having been done, and twice. What runs is owned
// by a shim process per rank and not by the daemon, so that the daemon may be
// killed, upgraded or restarted at any time.
//
// The daemon joins its parts and decides nothing in their place: package
// contact hears the controller, rank takes one container through its life,
// streams joins clients with it, and each of the others has one thing of the
// machine. An Agent owns the parts and the table of ranks.
//
// # The state directory
//
//	lock                 flock of the daemon that uses it; holds its pid
//	instance             random id made with the directory: the node's memory
//	contact              when a sync last succeeded, and the lease in force
//	images/              the image store (elsewhere by images.dir)
//	hook/                a link to this program, by which containers' hooks run it
//	prologs/ID.json      how far the site's prolog and epilog are for a rank
//	gpus.json            what the driver has reported of GPUs since the last boot
//	health.json          that the machine is not fit for jobs, and why
//	faults.json          what the controller is to drain the node for
//	ranks/ID/rank.json   the order without credentials, cores and digest;
//	                     durable before the rank's first instruction
//	ranks/ID/stop.json   that and why the rank is being stopped
//	ranks/ID/verdict.json
//	                     how it ended when its outputs were saved, if it has any
//	ranks/ID/mnt/N       storage, bound here by handle before the start
//	ranks/ID/box/        the runtime's own directory of the container: spec,
//	                     begun marker, log, exit record
//	ranks/ID/alone       the rank runs on where contact is lost
//	ranks/ID/ended       the controller has released the rank; its log is
//	                     kept for a while
//
// ID is a rank id as 123_0.1.0. A rank directory without rank.json never ran
// anything: it is removed at start, and the controller orders the rank again.
//
// An Agent owns everything below the state directory and every cgroup and
// mount that carries the node's prefix; what is there at start without a rank
// that explains it is removed.
package noded
